package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// limit bounds waits for other processes.
const limit = 20 * time.Second

// ports finds free ports, and keeps them until its caller needs them.
type ports struct{ held []io.Closer }

func (p *ports) udp(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.held = append(p.held, c)
	return c.LocalAddr().String()
}

func (p *ports) tcp(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.held = append(p.held, l)
	return l.Addr().String()
}

func (p *ports) release() {
	for _, c := range p.held {
		_ = c.Close()
	}
}

// twoSites writes a sites file with sites a, of two gateways, and b, of one, and keys.
func twoSites(t *testing.T) (file string) {
	t.Helper()
	dir := t.TempDir()
	for _, key := range []string{"jobs.key", "wan.key"} {
		if _, errs, status := clitest.Weft(t, "", "gateway", "keygen", filepath.Join(dir, key)); status != 0 {
			t.Fatalf("keygen: status %d, %s", status, errs)
		}
	}
	var p ports
	gw := func(name string) string {
		return fmt.Sprintf("  gateway %s lan %s wan %s status %s\n", name, p.udp(t), p.udp(t), p.tcp(t))
	}
	text := "jobs key-file jobs.key\nsite a\n  ranks 0\n" + gw("x") + gw("y") + "site b 3\n  ranks 1\n" + gw("x") +
		"leg a b key-file wan.key associations 2 rate 800mbit\njob-class bulk weight 2 rate 400mbit\n"
	p.release()
	file = filepath.Join(dir, "sites")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// running is a gateway in a process of its own.
type running struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	log  bytes.Buffer // guarded by mu
	done chan error
}

func (r *running) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(b)
}

func (r *running) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{cmd: clitest.Command(t, append([]string{"gateway"}, args...)...), done: make(chan error, 1)}
	r.cmd.Stderr = r
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("gateway %q:\n%s", args, r.text())
		}
	})
	return r
}

// wantLog waits until the log has a text.
func (r *running) wantLog(t *testing.T, want string) {
	t.Helper()
	r.wantLogs(t, want, 1)
}

// wantLogs waits until the log has n times want.
func (r *running) wantLogs(t *testing.T, want string, n int) {
	t.Helper()
	for end := time.Now().Add(limit); strings.Count(r.text(), want) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log has no %q within %v", want, limit)
		}
	}
}

// wantEnd waits for the end with status 0.
func (r *running) wantEnd(t *testing.T) {
	t.Helper()
	select {
	case err := <-r.done:
		if err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
	case <-time.After(limit):
		t.Errorf("the gateway goes on")
	}
}

// status asks a gateway for its status until it is ready.
func status(t *testing.T, g *sites.Gateway) *Status {
	t.Helper()
	out, errs, code := clitest.Weft(t, "", "gateway", "status", "-json", "-wait", limit.String(), g.Status.String())
	if code != 0 {
		t.Fatalf("status %d: %s", code, errs)
	}
	var s Status
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// process makes a process of a site.
func newProcess(t *testing.T, f *sites.File, rank int, job uint32) *relay.Node {
	t.Helper()
	p, err := f.ProcessOf("here", rank, 0, job)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	n, err := relay.NewNode(ctx, relay.NodeConfig{
		Address: relay.Address{Site: p.Site, Node: p.Node, Process: p.Process}, Job: job, Key: p.Key, Gateways: p.Gateways, Transport: tr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// transfer sends messages from one process to another, and checks that they arrive.
func transfer(t *testing.T, from, to *relay.Node, messages int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, err := from.Sender(to.Address(), 1)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for i := range messages {
			if err := s.Send(ctx, fmt.Appendf(nil, "message %d %s", i, strings.Repeat("x", 10_000)), relay.SendOptions{}); err != nil {
				t.Errorf("message %d: %v", i, err)
				return
			}
		}
	}()
	buf, n := make([]byte, 20_000), 0
	for i := 0; i < messages; {
		r, err := to.Next(ctx)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		for {
			m, info, err := r.TryRecv(buf[n:])
			if err != nil {
				break // nothing more has arrived
			}
			if n += m; !info.EOR {
				continue
			}
			if want := fmt.Sprintf("message %d ", i); n != len(want)+10_000 || !strings.HasPrefix(string(buf[:n]), want) {
				t.Fatalf("got %d bytes %.20q, want %q", n, buf[:n], want)
			}
			n = 0
			i++
		}
	}
}

// Gateways of a sites file find each other, relay for a job that they were not told of, tell their state, and
// continue when one of them is killed.
func TestDaemon(t *testing.T) {
	file := twoSites(t)
	f, err := sites.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	a, b := f.Site("a"), f.Site("b")
	ax := start(t, "-sites", file, "-site", "a", "-gateway", "x")
	ay := start(t, "-sites", file, "-site", "a", "-gateway", "y", "-log-json")
	bx := start(t, "-sites", file, "-site", "b")
	for _, g := range []*sites.Gateway{a.Gateways[0], a.Gateways[1], b.Gateways[0]} {
		status(t, g)
	}
	for _, r := range []*running{ax, ay, bx} {
		r.wantLog(t, "all legs are up")
	}
	if !strings.Contains(ay.text(), `"msg":"gateway has started","site":"a","gateway":"y"`) || !strings.Contains(ax.text(), "site=a gateway=x") {
		t.Errorf("logs:\n%s%s", ax.text(), ay.text())
	}
	job := f.NewJob(f.Class("bulk"))
	p, q := newProcess(t, f, 0, job), newProcess(t, f, 1, job)
	transfer(t, p, q, 50)

	s := status(t, b.Gateways[0])
	if s.Site != "b" || s.SiteNumber != 3 || s.Gateway != "x" || s.Jobs != 1 || s.FlowCount != 2 || len(s.Flows) != 2 {
		t.Errorf("status %+v", s)
	}
	if f := s.Flows[0]; f.From != "a 1/1" || f.To != "b 1/2" || f.Job != job || f.Bytes < 500_000 || f.Stream != 1 {
		t.Errorf("flow %+v", f)
	}
	var peers []string
	for _, l := range s.Legs {
		peers = append(peers, fmt.Sprintf("%s.%d", l.Peer, l.Association))
		if !l.Up || l.CWND == 0 || l.RTT <= 0 || l.Paths != 1 || l.ActivePaths != 1 {
			t.Errorf("leg %+v", l)
		}
	}
	if got, want := strings.Join(peers, " "), "a/x.1 a/x.2 a/y.1 a/y.2 b 1/2.1"; got != want {
		t.Errorf("legs %s, want %s", got, want)
	}
	out, _, _ := clitest.Weft(t, "", "gateway", "status", b.Gateways[0].Status.String())
	for _, want := range []string{"gateway x of site b (3.1), ready\n", "a/x", "a/y (2)", "b 1/2", "bulk", "legs lost: 0   flows moved: 0   peers refused: 0   frames not forwarded: 0\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("status has no %q:\n%s", want, out)
		}
	}
	checkMetrics(t, b.Gateways[0].Status.String())

	_ = ax.cmd.Process.Kill()
	<-ax.done
	transfer(t, p, q, 50)
	bx.wantLogs(t, "leg down", 2) // of both associations
	if _, errs, code := clitest.Weft(t, "", "gateway", "status", "-wait", "10ms", b.Gateways[0].Status.String()); code != 1 ||
		!strings.Contains(errs, "not all legs are up after 10ms: a/x (association 1), a/x (association 2)") {
		t.Errorf("status %d: %s", code, errs)
	}
	ax = start(t, "-sites", file, "-site", "a", "-gateway", "x")
	if s := status(t, b.Gateways[0]); s.Counters.LegsLost < 2 {
		t.Errorf("%d legs lost, want at least 2", s.Counters.LegsLost)
	}
	transfer(t, p, q, 50)

	if runtime.GOOS == "windows" {
		return // no signals
	}
	_ = p.Close()
	for i, r := range []*running{ax, ay, bx} {
		if err := r.cmd.Process.Signal([]os.Signal{os.Interrupt, process.TermSignal, process.TermSignal}[i]); err != nil {
			t.Error(err)
		}
		r.wantEnd(t)
		r.wantLog(t, "gateway ends")
	}
}

// A leg uses all addresses of its gateways. One gateway listens behind an address that is not its own.
func TestMultihomedLeg(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is not an address of the loopback interface here")
	}
	file := twoSites(t)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`wan 127\.0\.0\.1:(\d+)`).ReplaceAllString(string(b), "wan 127.0.0.1:$1 127.0.0.2:$1")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := sites.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	x, y, z := f.Site("a").Gateways[0], f.Site("a").Gateways[1], f.Site("b").Gateways[0]
	start(t, "-sites", file, "-site", "a", "-gateway", "x")
	start(t, "-sites", file, "-site", "a", "-gateway", "y", "-bind-wan", fmt.Sprintf("0.0.0.0:%d", y.WAN[0].Port()))
	start(t, "-sites", file, "-site", "b")
	active := func(s *Status, peer string) (n int) {
		for _, l := range s.Legs {
			if l.Peer == peer && l.Association == 1 {
				n = l.ActivePaths
			}
		}
		return n
	}
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		s := status(t, x)
		if active(s, "b/x") == 2 && active(s, "a/y") >= 1 && active(status(t, z), "a/x") == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("legs %+v", s.Legs)
		}
	}
	status(t, y)
}

// checkMetrics checks that each line of /metrics is of the text format, and that each family is told once.
func checkMetrics(t *testing.T, addr string) {
	t.Helper()
	r, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^([a-z_]+)(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[0-9.e+-]+$`)
	kinds := make(map[string]string)
	series := make(map[string]bool)
	for text := range strings.Lines(string(b)) {
		text = strings.TrimSuffix(text, "\n")
		if rest, ok := strings.CutPrefix(text, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			if kinds[name] != "" || kind != "gauge" && kind != "counter" || (kind == "counter") != strings.HasSuffix(name, "_total") {
				t.Errorf("line %q", text)
			}
			kinds[name] = kind
			continue
		}
		if strings.HasPrefix(text, "# HELP ") {
			continue
		}
		m := line.FindStringSubmatch(text)
		name, _, _ := strings.Cut(text, " ")
		if m == nil || kinds[m[1]] == "" || series[name] {
			t.Errorf("line %q", text)
			continue
		}
		series[name] = true
	}
	for _, want := range []string{
		`weft_gateway_info{site="b",gateway="x"}`, `weft_gateway_leg_up{peer="a/y",association="2"}`, `weft_gateway_class_sent_bytes_total{class="bulk"}`,
		`weft_gateway_refused_frames_total{reason="forged"}`, `weft_gateway_flows`, `weft_gateway_leg_retransmits_total{peer="a/x",association="1"}`,
	} {
		if !series[want] {
			t.Errorf("no series %s in:\n%s", want, b)
		}
	}
}

// Requests that are not those of a status are refused, and a status server does not take the place of another one.
func TestStatusServer(t *testing.T) {
	file := twoSites(t)
	f, err := sites.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	g := f.Site("b").Gateways[0]
	r := start(t, "-sites", file, "-site", "b")
	r.wantLog(t, "gateway has started")
	for path, want := range map[string]int{"/status": 200, "/metrics": 200, "/": 404, "/status/x": 404} {
		res, err := http.Get("http://" + g.Status.String() + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, res.StatusCode, want)
		}
	}
	res, err := http.Post("http://"+g.Status.String()+"/status", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", res.StatusCode)
	}
	_, errs, code := clitest.Weft(t, "", "gateway", "-sites", file, "-site", "a", "-gateway", "x", "-status", g.Status.String())
	if code != 1 || !strings.Contains(errs, "weft gateway: status server: listen tcp "+g.Status.String()) {
		t.Errorf("status %d: %s", code, errs)
	}
	if _, errs, code := clitest.Weft(t, "", "gateway", "-sites", file, "-site", "b", "-status", "off"); code != 1 ||
		!strings.Contains(errs, "weft gateway: LAN side: ") || !strings.Contains(errs, g.LAN[0].String()) {
		t.Errorf("a second gateway at the same address: status %d: %s", code, errs)
	}
}
