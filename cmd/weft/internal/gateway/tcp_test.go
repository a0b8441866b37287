package gateway

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/internal/testenv"
)

// A connection by the SOCKS5 port of one gateway to a host in the ranges of the other one's site; both count it.
func TestSOCKS(t *testing.T) {
	file := twoSites(t)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), "site b 3\n", "site b 3\n  tcp 127.0.0.1/32\n", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := sites.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	port := testenv.FreePort(t)
	socks := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	near := start(t, "-sites", file, "-site", "a", "-gateway", "x", "-socks", socks)
	sibling := start(t, "-sites", file, "-site", "a", "-gateway", "y")
	far := start(t, "-sites", file, "-site", "b")
	for _, g := range []*running{near, far} {
		g.wantLog(t, "TCP connections are carried")
	}
	status(t, f.Site("a").Gateways[0])

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(c, c)
		c.Close()
	}()
	c, err := net.Dial("tcp", socks)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(limit))
	request := binary.BigEndian.AppendUint16([]byte("\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01"), uint16(l.Addr().(*net.TCPAddr).Port))
	msg := bytes.Repeat([]byte("through two gateways "), 10_000)
	go func() {
		_, _ = c.Write(append(request, msg...))
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	want := append([]byte("\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"), msg...)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
	}
	c.Close()
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		a, b := status(t, f.Site("a").Gateways[0]).TCP, status(t, f.Site("b").Gateways[0]).TCP
		if a != nil && b != nil && a.Active+b.Active == 0 && a.Connected == 1 && b.Dialed == 1 &&
			a.Sent == uint64(len(msg)) && b.Received == a.Sent && b.Sent == a.Sent {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v\n%+v", a, b)
		}
	}
	if s := status(t, f.Site("a").Gateways[1]); s.TCP != nil {
		t.Error("a gateway of a site without ranges, and without ports, carries TCP connections")
	}
	out, _, _ := clitest.Weft(t, "", "gateway", "status", f.Site("a").Gateways[0].Status.String())
	if !strings.Contains(out, "1 taken in, 1 connected") {
		t.Errorf("status:\n%s", out)
	}
	resp, err := http.Get("http://" + f.Site("a").Gateways[0].Status.String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, _ := io.ReadAll(resp.Body)
	if !strings.Contains(string(metrics), "\nweft_gateway_tcp_connected_total 1\n") {
		t.Errorf("metrics:\n%s", metrics)
	}
	for _, g := range []*running{near, sibling, far} {
		if err := g.cmd.Process.Signal(os.Interrupt); err != nil {
			_ = g.cmd.Process.Kill() // on Windows
			continue
		}
		g.wantEnd(t)
	}
}

// -tcp-rules prints rules for the ranges of other sites, and needs neither root nor a network.
func TestPrintRules(t *testing.T) {
	file := twoSites(t)
	args := []string{"gateway", "-sites", file, "-site", "a", "-gateway", "y", "-tcp", ":5749", "-tcp-rules"}
	if out, errs, code := clitest.Weft(t, "", args...); code == 0 || !strings.Contains(errs, "no ranges of other sites") {
		t.Errorf("without ranges: status %d, %s%s", code, out, errs)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), "site b 3\n", "site b 3\n  tcp 10.2.0.0/16 fd02::/32\n", 1)
	text = strings.Replace(text, "site a\n", "site a\n  tcp 10.1.0.0/16\n", 1)
	file = filepath.Join(filepath.Dir(file), "ranges")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	args[2] = file
	out, errs, code := clitest.Weft(t, "", args...)
	if code != 0 || !strings.Contains(out, "table inet weft_tcp_1_2 {") || !strings.Contains(out, "ip daddr { 10.2.0.0/16 } meta l4proto tcp redirect to :5749") ||
		!strings.Contains(out, "ip6 daddr { fd02::/32 }") || strings.Contains(out, "10.1.") {
		t.Errorf("status %d, %s%s", code, out, errs)
	}
}
