package interop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"golang.org/x/sys/unix"
)

// tcpSites is two sites in two namespaces: a program and the gateway of the first one are in ours, those of the second
// one in the peer's.
type tcpSites struct {
	*multinet
	weft, file string
	logs       [2]*lockedBuffer
	gateways   [2]*exec.Cmd
}

func newTCPSites(t *testing.T) *tcpSites {
	t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		testenv.Lacking(t, "nft not found: install Debian's nftables")
	}
	s := &tcpSites{multinet: newMultinet(t, false), weft: tool(t, "weft")}
	dir := t.TempDir()
	for _, key := range []string{"jobs.key", "wan.key"} {
		if said, err := command(t, s.weft, "gateway", "keygen", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("keygen: %v: %s", err, said)
		}
	}
	s.file = filepath.Join(dir, "sites")
	text := "jobs key-file jobs.key\nleg a b key-file wan.key\n"
	for i, name := range []string{"a", "b"} {
		text += fmt.Sprintf("site %s\n ranks %d\n gateway g lan %v:5747 wan %[3]v:5748 status 127.0.0.1:9180\n tcp %[3]v/32 %[4]v/128\n",
			name, i, linkAddr(0, i), linkAddr6(0, i))
	}
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts the gateway of a site, and waits until it carries connections.
func (s *tcpSites) start(i int, flags ...string) {
	s.t.Helper()
	ns := []string{s.ours, s.peer}[i]
	args := append([]string{"netns", "exec", ns, s.weft, "gateway", "-sites", s.file, "-site", string(rune('a' + i))}, flags...)
	cmd := command(s.t, "ip", args...)
	s.logs[i] = new(lockedBuffer)
	cmd.Stderr = s.logs[i]
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.gateways[i] = cmd
	s.t.Cleanup(func() { s.end(i, syscall.SIGTERM) })
	for end := time.Now().Add(patience); !strings.Contains(s.logs[i].String(), "TCP connections are carried"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("gateway %d does not carry connections:\n%s", i, s.logs[i].String())
		}
	}
}

// ready waits until the gateways have their leg.
func (s *tcpSites) ready() {
	s.t.Helper()
	for i, ns := range []string{s.ours, s.peer} {
		said, err := command(s.t, "ip", "netns", "exec", ns, s.weft, "gateway", "status", "-wait", "20s", "127.0.0.1:9180").CombinedOutput()
		if err != nil {
			s.t.Fatalf("gateway %d: %v: %s\n%s", i, err, said, s.logs[i].String())
		}
	}
}

func (s *tcpSites) end(i int, sig os.Signal) {
	if cmd := s.gateways[i]; cmd != nil {
		s.gateways[i] = nil
		_ = cmd.Process.Signal(sig)
		_ = cmd.Wait()
	}
}

// rules returns what is left of rules in a namespace.
func (s *tcpSites) rules(ns string) string {
	s.t.Helper()
	tables, err := command(s.t, "ip", "netns", "exec", ns, "nft", "list", "tables").CombinedOutput()
	if err != nil {
		s.t.Fatalf("nft: %v: %s", err, tables)
	}
	text := string(tables)
	for _, f := range []string{"-4", "-6"} {
		rules, err := command(s.t, "ip", f, "-n", ns, "rule").CombinedOutput()
		if err != nil {
			s.t.Fatalf("ip rule: %v: %s", err, rules)
		}
		for line := range strings.Lines(string(rules)) {
			if strings.Contains(line, "fwmark") {
				text += line
			}
		}
	}
	return text
}

// inNamespace runs f on a thread of its own in a network namespace.
func inNamespace(t testing.TB, name string, f func() error) {
	t.Helper()
	ns, err := os.Open("/run/netns/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// server listens in the second site, and echoes; seen gets the addresses of its clients.
func (s *tcpSites) server(at netip.Addr) (to netip.AddrPort, seen chan netip.Addr) {
	s.t.Helper()
	seen = make(chan netip.Addr, 1000)
	var l net.Listener
	inNamespace(s.t, s.peer, func() (err error) {
		l, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
		return err
	})
	s.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			seen <- c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
			go func() {
				_ = c.SetDeadline(time.Now().Add(patience))
				_, _ = io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort(), seen
}

// dial connects from the first site.
func (s *tcpSites) dial(to netip.AddrPort) (c *net.TCPConn, err error) {
	s.t.Helper()
	inNamespace(s.t, s.ours, func() error {
		c, err = net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(to))
		return nil
	})
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(patience))
	}
	return c, err
}

// transfer sends bytes to the echo and back.
func (s *tcpSites) transfer(to netip.AddrPort, n int) {
	s.t.Helper()
	c, err := s.dial(to)
	if err != nil {
		s.t.Errorf("%v: %v", to, err)
		return
	}
	defer c.Close()
	msg := bytes.Repeat([]byte(to.String()+" "), n/len(to.String()))
	go func() {
		_, _ = c.Write(msg)
		_ = c.CloseWrite()
	}()
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, msg) {
		s.t.Errorf("%v: %d bytes of %d came back: %v", to, len(got), len(msg), err)
	}
}

// TestGatewayTCP has programs that know nothing of gateways connect to hosts of another site, by IPv4 and IPv6, and in both
// modes: bytes, refused connections, and the rules, which are there while the gateway is, and replace those that a killed
// one has left.
func TestGatewayTCP(t *testing.T) {
	bounded(t)
	for _, mode := range []string{"redirect", "tproxy"} {
		t.Run(mode, func(t *testing.T) {
			s := newTCPSites(t)
			flags := []string{"-tcp", ":5749", "-tcp-install", "-tcp-mode", mode}
			if mode == "tproxy" {
				flags = append(flags, "-tcp-source")
			}
			s.start(0, flags...)
			s.start(1, flags...)
			s.ready()
			for i, at := range []netip.Addr{linkAddr(0, theirs), linkAddr6(0, theirs)} {
				to, seen := s.server(at)
				s.transfer(to, 1<<20)
				want := at // of the far gateway
				if mode == "tproxy" {
					want = []netip.Addr{linkAddr(0, ours), linkAddr6(0, ours)}[i]
				}
				select {
				case got := <-seen:
					if got != want {
						t.Errorf("%v: the client is %v, want %v", at, got, want)
					}
				case <-time.After(patience):
					t.Errorf("%v: no client", at)
				}
				var many sync.WaitGroup
				for range 30 {
					many.Go(func() { s.transfer(to, 10_000) })
				}
				many.Wait()

				// Where nothing listens the kernel has accepted already: it becomes a reset.
				c, err := s.dial(netip.AddrPortFrom(at, 1))
				if err == nil {
					_, err = c.Read(make([]byte, 1))
					c.Close()
				}
				if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("%v: a port where nothing listens: %v", at, err)
				}
			}
			log := s.logs[1].String()
			if !strings.Contains(log, "connection refused") {
				t.Errorf("the far gateway does not say what was refused:\n%s", log)
			}

			s.end(0, syscall.SIGKILL)
			left := s.rules(s.ours)
			if !strings.Contains(left, "weft_tcp_1_1") || strings.Contains(left, "fwmark") != (mode == "tproxy") {
				t.Errorf("after a kill: %q", left)
			}
			s.start(0, flags...)
			if again := s.rules(s.ours); again != left {
				t.Errorf("rules of the next gateway: %q, want %q", again, left)
			}
			s.ready()
			to, _ := s.server(linkAddr(0, theirs))
			s.transfer(to, 100_000)
			for i, ns := range []string{s.ours, s.peer} {
				s.end(i, []os.Signal{syscall.SIGTERM, syscall.SIGINT}[i])
				if left := s.rules(ns); left != "" {
					t.Errorf("gateway %d leaves %q", i, left)
				}
			}
		})
	}
}
