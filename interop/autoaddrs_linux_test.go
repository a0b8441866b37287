package interop

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
)

const autoAddrsEnv = "WEFT_AUTOADDRS"

// The test binary is both ends, each in its network namespace.
func init() {
	ends := map[string]func() error{"server": autoAddrsServer, "client": autoAddrsClient}
	if f := ends[os.Getenv(autoAddrsEnv)]; f != nil {
		fmt.Fprintln(os.Stderr, f())
		os.Exit(1)
	}
}

// autoAddrsServer answers every message with the addresses that it comes from.
func autoAddrsServer() error {
	var at addrList
	for i := range 2 {
		at = append(at, linkAddr(i, theirs))
	}
	t, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: at.udp()})
	if err != nil {
		return err
	}
	e, err := t.Listen(multiPort, &sctp.Config{ChangeAddrs: true})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	a, err := e.Accept(context.Background())
	if err != nil {
		return err
	}
	for buf := make([]byte, 100); ; {
		if _, _, err := a.Recv(context.Background(), buf); err != nil {
			return err
		}
		if err := a.Send(context.Background(), []byte(addrsOf(a.RemoteAddr().Addrs)), sctp.SendOptions{}); err != nil {
			return err
		}
	}
}

// autoAddrsClient follows the addresses of its namespace, and prints them and what
// the server makes of them.
func autoAddrsClient() error {
	t, err := sctp.NewTransport(sctp.TransportConfig{AutoAddrs: &sctp.AutoAddrs{Interval: 100 * time.Millisecond},
		LocalAddrs: []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), multiPort)}})
	if err != nil {
		return err
	}
	e, err := t.Listen(0, &sctp.Config{ChangeAddrs: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a, err := e.Connect(ctx, sctp.Addr{Port: multiPort, Addrs: addrList{linkAddr(0, theirs), linkAddr(1, theirs)}.udp()})
	if err != nil {
		return err
	}
	for buf := make([]byte, 1000); ; time.Sleep(20 * time.Millisecond) {
		if err := a.Send(context.Background(), []byte("who am I?"), sctp.SendOptions{}); err != nil {
			return err
		}
		n, _, err := a.Recv(context.Background(), buf)
		if err != nil {
			return err
		}
		fmt.Printf("%s as %s\n", addrsOf(t.LocalAddrs()), buf[:n])
	}
}

// addrsOf returns IP addresses in order.
func addrsOf(list []netip.AddrPort) string {
	var words []string
	for _, a := range list {
		words = append(words, a.Addr().String())
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

// TestAutoAddrs takes addresses away from a host and gives them back, one after the
// other, while an association echoes: it follows (RFC 6458, Section 8.1.23).
func TestAutoAddrs(t *testing.T) {
	bounded(t)
	m := newMultinet(t, false)
	start := func(ns, what string) *bufio.Scanner {
		cmd := command(t, "ip", "netns", "exec", ns, os.Args[0])
		cmd.Env = append(os.Environ(), autoAddrsEnv+"="+what)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		return bufio.NewScanner(out)
	}
	server := start(m.peer, "server")
	if !server.Scan() {
		t.Fatal("no server")
	}
	client := start(m.ours, "client")
	wait := func(links ...int) {
		t.Helper()
		var list []netip.AddrPort
		for _, i := range links {
			list = append(list, netip.AddrPortFrom(linkAddr(i, ours), multiPort))
		}
		want := addrsOf(list) + " as " + addrsOf(list)
		last := ""
		for began := time.Now(); client.Scan(); {
			if last = client.Text(); last == want {
				t.Logf("%s after %v", last, time.Since(began).Round(time.Millisecond))
				return
			}
		}
		t.Fatalf("the client has ended, or is stuck with %q, want %q", last, want)
	}
	change := func(op string, i int) {
		m.ip("-n", m.ours, "addr", op, linkAddr(i, ours).String()+"/24", "dev", fmt.Sprintf("bridge%d", i))
	}
	wait(0, 1)
	change("del", 0)
	wait(1)
	change("add", 0)
	wait(0, 1)
	change("del", 1)
	wait(0)
	change("del", 0)
	time.Sleep(time.Second) // nothing is left but the address of the loopback interface
	change("add", 1)
	wait(1)
}
