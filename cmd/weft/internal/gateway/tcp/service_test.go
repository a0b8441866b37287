package tcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// patience bounds what a test waits for, on a busy machine.
const patience = 30 * time.Second

// pair is two sites on the loopback, each with a gateway and its service. The second one has what the loopback has.
type pair struct {
	t        *testing.T
	services [2]*Service
	lan      [2]*sctp.Transport
	relays   [2]*relay.Gateway
}

func newPair(t *testing.T, near Options, ranges ...netip.Prefix) *pair {
	t.Helper()
	return newPairWith(t, patience, near, ranges...) // a busy machine is no dead gateway
}

// newPairWith is newPair with a time after which a gateway that does not answer is dead.
func newPairWith(t *testing.T, timeout time.Duration, near Options, ranges ...netip.Prefix) *pair {
	t.Helper()
	if ranges == nil {
		ranges = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")}
	}
	p := &pair{t: t}
	t.Cleanup(p.close)
	var lan, wan [2]netip.AddrPort
	var wans [2]*sctp.Transport
	open := func(at *netip.AddrPort) *sctp.Transport {
		*at = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(testenv.FreePort(t)))
		tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{*at}})
		wantNil(t, err)
		return tr
	}
	addr := func(a netip.AddrPort, port uint16) sctp.Addr {
		return sctp.Addr{Addrs: []netip.AddrPort{a}, Port: port}
	}
	key := []byte("a key of the job, for tests only")
	for i := range 2 {
		p.lan[i], wans[i] = open(&lan[i]), open(&wan[i])
		t.Cleanup(func() { wans[i].Close() })
	}
	for i := range 2 {
		var err error
		p.relays[i], err = relay.NewGateway(relay.GatewayConfig{
			Site: uint16(i + 1), Number: 1, LAN: p.lan[i], WAN: wans[i], Jobs: map[uint32][]byte{9: key}, Log: testLog(),
			Peers: []relay.Peer{{
				Site: uint16(2 - i), Gateway: 1, Addr: addr(wan[1-i], relay.DefaultGatewayWAN), Key: []byte("a key of two sites, for tests"),
			}},
		})
		wantNil(t, err)
	}
	sites := [2]Site{{1, []uint16{1}, []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}, {2, []uint16{1}, ranges}}
	far := sites
	far[1].Ranges = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")}
	for i, o := range [2]Options{near, {Mode: "redirect"}} {
		var err error
		p.services[i], err = o.Start(t.Context(), Config{
			Gateway: 1, Own: far[i], Others: sites[1-i : 2-i], Job: 9, Key: key,
			LAN: []sctp.Addr{addr(lan[i], relay.DefaultGatewayLAN)}, Log: testLog(), peerTimeout: timeout,
		})
		wantNil(t, err)
	}
	return p
}

func (p *pair) close() {
	for i := range 2 {
		if s := p.services[i]; s != nil {
			s.Close()
		}
		if p.relays[i] != nil {
			_ = p.relays[i].Close()
		}
		if p.lan[i] != nil {
			_ = p.lan[i].Close()
		}
	}
}

func testLog() *slog.Logger {
	if os.Getenv("WEFT_RELAY_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}

func wantNil(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listen returns a listener on the loopback, whose connections handle gets.
func listen(t *testing.T, handle func(*net.TCPConn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	wantNil(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(patience))
			go handle(c.(*net.TCPConn))
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func echo(c *net.TCPConn) {
	_, _ = io.Copy(c, c)
	_ = c.CloseWrite()
	_ = c.Close()
}

// dial connects by SOCKS5, and returns the reply to the request.
func (p *pair) dial(to string) (*net.TCPConn, byte) {
	p.t.Helper()
	c, err := net.Dial("tcp", p.services[0].SOCKSAddr().String())
	wantNil(p.t, err)
	p.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	_, err = c.Write([]byte("\x05\x01\x00"))
	wantNil(p.t, err)
	var b [10]byte
	if _, err := io.ReadFull(c, b[:2]); err != nil || string(b[:2]) != "\x05\x00" {
		p.t.Fatalf("methods: %x, %v", b[:2], err)
	}
	host, port, err := net.SplitHostPort(to)
	wantNil(p.t, err)
	n, err := net.LookupPort("tcp", port)
	wantNil(p.t, err)
	req := []byte("\x05\x01\x00")
	if a, err := netip.ParseAddr(host); err != nil {
		req = append(append(req, 3, byte(len(host))), host...)
	} else if a.Is4() {
		req = append(append(req, 1), a.AsSlice()...)
	} else {
		req = append(append(req, 4), a.AsSlice()...)
	}
	_, err = c.Write(binary.BigEndian.AppendUint16(req, uint16(n)))
	wantNil(p.t, err)
	if _, err := io.ReadFull(c, b[:]); err != nil || b[0] != 5 {
		p.t.Fatalf("reply: %x, %v", b, err)
	}
	return c.(*net.TCPConn), b[1]
}

func (p *pair) connect(to netip.AddrPort) *net.TCPConn {
	p.t.Helper()
	c, reply := p.dial(to.String())
	if reply != 0 {
		p.t.Fatalf("reply %d", reply)
	}
	return c
}

var loopback = Options{SOCKS: "127.0.0.1:0", Mode: "redirect"}

func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// Bytes come through as they were sent, on many connections at once; the end of one direction leaves the other.
func TestConnections(t *testing.T) {
	p := newPair(t, loopback)
	to := listen(t, echo)
	var wg sync.WaitGroup
	const conns = 100
	for i := range conns {
		wg.Go(func() {
			c := p.connect(to)
			msg := pattern(1+i*2_000, uint64(i))
			go func() {
				_, _ = c.Write(msg)
				_ = c.CloseWrite()
			}()
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, msg) {
				t.Errorf("connection %d: %d bytes of %d, %v", i, len(got), len(msg), err)
			}
			c.Close()
		})
	}
	wg.Wait()
	c, reply := p.dial(fmt.Sprintf("localhost:%d", to.Port())) // a name
	if reply != 0 {
		t.Errorf("by name: reply %d", reply)
	}
	c.Close()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		near, far := p.services[0].Stats(), p.services[1].Stats()
		if near.Active+far.Active == 0 && near.Connected == conns+1 && far.Dialed == conns+1 && near.Resets == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v\n%+v", near, far)
		}
	}
}

// What the far side cannot connect is refused with the reason that SOCKS5 has for it.
func TestRefusals(t *testing.T) {
	everywhere := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("10.1.2.0/24")}
	p := newPair(t, loopback, everywhere...)
	for _, tt := range []struct {
		to    string
		reply byte
	}{
		{fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)), 5}, // nobody listens
		{"192.0.2.1:80", 2}, // of no site
		{"10.1.0.1:80", 2},  // of the own site
		{"127.0.0.2:80", 2}, // the far side does not have it
		{"[fd00::1]:80", 2},
		{"10.1.2.3:80", 2}, // in the longer range of the other site, which does not have it
		{"name.invalid:80", 4},
	} {
		if _, reply := p.dial(tt.to); reply != tt.reply {
			t.Errorf("%s: reply %d, want %d", tt.to, reply, tt.reply)
		}
	}
	near, far := p.services[0].Stats(), p.services[1].Stats()
	if near.Outside != 2 || far.Forbidden != 3 || far.DialFailed != 1 || near.Failed != 4 {
		t.Errorf("near %+v\nfar %+v", near.Counters, far.Counters)
	}
}

// A reset of one side is one of the other.
func TestResets(t *testing.T) {
	p := newPair(t, loopback)
	accepted := make(chan *net.TCPConn, 1)
	to := listen(t, func(c *net.TCPConn) { accepted <- c })
	for _, far := range []bool{false, true} {
		a := p.connect(to)
		b := <-accepted
		if far {
			a, b = b, a
		}
		_, err := a.Write([]byte("x"))
		wantNil(t, err)
		if _, err := io.ReadFull(b, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		abort(a)
		if _, err := b.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("far %t: %v, want a reset", far, err)
		} else if runtime.GOOS != "windows" && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("far %t: %v, want a reset", far, err)
		}
		b.Close()
	}
}

// The gateway at the other end dies without a word: its connections are reset.
func TestDeadGateway(t *testing.T) {
	p := newPairWith(t, 3*time.Second, loopback)
	c := p.connect(listen(t, echo))
	_, err := c.Write([]byte("x"))
	wantNil(t, err)
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_ = p.services[1].transport.Close() // nothing leaves it any more
	_, err = c.Read(make([]byte, 1))
	if err == nil || err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v, want a reset", err)
	}
	t.Logf("reset after %v: %v", time.Since(began), err)
}

// Programs that do not read hold up their own connections only.
func TestStoppedReaders(t *testing.T) {
	p := newPair(t, loopback)
	stop := make(chan struct{})
	defer close(stop)
	sink := listen(t, func(c *net.TCPConn) { <-stop; c.Close() })
	for range 20 {
		c := p.connect(sink)
		go func() {
			msg := make([]byte, 1<<20)
			for {
				if _, err := c.Write(msg); err != nil {
					return
				}
			}
		}()
	}
	c := p.connect(listen(t, echo))
	msg := pattern(4<<20, 1)
	go func() {
		_, _ = c.Write(msg)
		_ = c.CloseWrite()
	}()
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, msg) {
		t.Errorf("%d bytes of %d, %v", len(got), len(msg), err)
	}
	if held := p.services[0].node.Stats().SendHeld; held > relay.DefaultSendMemory+21*relay.FlowReserve {
		t.Errorf("%d bytes are held", held)
	}
}

// Clients that do not speak SOCKS5 as they should are disconnected, and hold up no others.
func TestHostileClients(t *testing.T) {
	p := newPair(t, loopback)
	to := listen(t, echo)
	for _, text := range []string{"", "\x05", "\x05\xff\x00", "GET / HTTP/1.1\r\n\r\n", "\x04\x01", strings.Repeat("\x05", 100_000), "\x05\x01\x00\x05\x03\x00\x01"} {
		c, err := net.Dial("tcp", p.services[0].SOCKSAddr().String())
		wantNil(t, err)
		_ = c.SetDeadline(time.Now().Add(patience))
		_, _ = c.Write([]byte(text))
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}
	for range 50 { // silent ones
		c, err := net.Dial("tcp", p.services[0].SOCKSAddr().String())
		wantNil(t, err)
		defer c.Close()
	}
	c := p.connect(to)
	_, err := c.Write([]byte("x"))
	wantNil(t, err)
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if n := p.services[0].Stats().BadClients; n != 7 {
		t.Errorf("%d clients were refused, want 7", n)
	}
}

func TestPassword(t *testing.T) {
	name := filepath.Join(t.TempDir(), "users")
	wantNil(t, os.WriteFile(name, []byte("alice secret\n"), 0o600))
	p := newPair(t, Options{SOCKS: "127.0.0.1:0", Users: name, Mode: "redirect"})
	for password, want := range map[string]byte{"secret": 0, "other": 1} {
		c, err := net.Dial("tcp", p.services[0].SOCKSAddr().String())
		wantNil(t, err)
		_ = c.SetDeadline(time.Now().Add(patience))
		_, _ = fmt.Fprintf(c, "\x05\x01\x02\x01\x05alice%c%s", len(password), password)
		var b [4]byte
		if _, err := io.ReadFull(c, b[:]); err != nil || string(b[:3]) != "\x05\x02\x01" || b[3] != want {
			t.Errorf("password %q: %x, %v", password, b, err)
		}
		c.Close()
	}
	if runtime.GOOS != "windows" {
		wantNil(t, os.Chmod(name, 0o644))
		if _, err := readUsers(name); err == nil || !strings.Contains(err.Error(), "others may read it") {
			t.Errorf("a file that others may read: %v", err)
		}
	}
	if _, err := readUsers(filepath.Dir(name)); err == nil {
		t.Error("a directory")
	}
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                  "",
		"-socks 127.0.0.1:1080":             "",
		"-socks [::1]:1080":                 "",
		"-socks 0.0.0.0:1080":               "not on the loopback",
		"-socks 0.0.0.0:1080 -socks-any":    "",
		"-socks 10.0.0.1:1 -socks-users x":  "",
		"-socks 1080":                       "want ADDRESS:PORT",
		"-socks-users x":                    "only with -socks",
		"-tcp-install":                      "only with -tcp",
		"-tcp :5749 -tcp-rules":             "",
		"-tcp :0 -tcp-rules":                "want [ADDRESS]:PORT",
		"-tcp 5749 -tcp-rules":              "want [ADDRESS]:PORT",
		"-tcp :5749 -tcp-rules -tcp-mode x": `-tcp-mode "x"`,
		"-tcp :5749 -tcp-rules -tcp-source": "only with -tcp-mode tproxy",
		"-tcp :5749 -tcp-rules -tcp-source -tcp-mode tproxy": "",
	} {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		o := Flags(fs)
		wantNil(t, fs.Parse(strings.Fields(args)))
		err := o.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// Beyond MaxConns connections of programs of the site are reset, and counted; a place that becomes free is used.
func TestTooMany(t *testing.T) {
	p := newPair(t, loopback)
	slots := p.services[0].proxy.slots
	for range MaxConns {
		slots <- struct{}{}
	}
	c, err := net.Dial("tcp", p.services[0].SOCKSAddr().String())
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(patience))
		_, err = c.Read(make([]byte, 1))
		c.Close()
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) || p.services[0].Stats().TooMany != 1 {
		t.Errorf("a connection beyond the limit: %v, %d counted", err, p.services[0].Stats().TooMany)
	}
	<-slots
	p.connect(listen(t, echo)).Close()
}
