package sctp_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Dial to a host that does not answer ends after seconds, and its error says whom it
// called, how long and how often.
func TestDialEndsInSeconds(t *testing.T) {
	const peer = "10.0.0.9:9899/5000"
	for _, tc := range []struct {
		name    string
		timeout time.Duration
		limit   time.Duration // of the context, 0: none
		cancel  time.Duration
		want    time.Duration
		text    string
	}{
		{"default", 0, 0, 0, sctp.DefaultDialTimeout, "dial sctp 10.0.0.9:9899/5000: no answer in 10s (4 INITs)"},
		{"Timeout", 2500 * time.Millisecond, 0, 0, 2500 * time.Millisecond, "dial sctp 10.0.0.9:9899/5000: no answer in 2.5s (2 INITs)"},
		{"context", 0, 2 * time.Second, 0, 2 * time.Second, "dial sctp 10.0.0.9:9899/5000: no answer in 2s (2 INITs)"},
		{"long context", 0, time.Minute, 0, sctp.DefaultDialTimeout, "no answer in 10s"},
		{"canceled", 0, 0, 2 * time.Second, 2 * time.Second, "no answer in 2s (2 INITs): context canceled"},
		{"no Timeout", -1, 0, 0, 243 * time.Second, "no answer in 4m3s (9 INITs)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pc, err := sctptest.NewNetwork(1).NewHost(addrA).ListenPacket(":9899")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.limit > 0 {
					ctx, cancel = context.WithTimeout(ctx, tc.limit)
					defer cancel()
				}
				if tc.cancel > 0 {
					time.AfterFunc(tc.cancel, cancel)
				}
				d := sctp.Dialer{Timeout: tc.timeout, Transport: sctp.TransportConfig{Conns: []sctp.PacketConn{pc}}}
				began := time.Now()
				_, err = d.Dial(ctx, peer)
				took := time.Since(began)
				if tc.timeout < 0 && took > 200*time.Second { // 1+2+…+32 s and thrice 60 s
					tc.want, tc.text = took, "(9 INITs)"
				}
				if took != tc.want {
					t.Errorf("it took %v, want %v", took, tc.want)
				}
				if err == nil || !strings.Contains(err.Error(), tc.text) || !strings.Contains(err.Error(), peer) {
					t.Errorf("the error is %q, want %q", err, tc.text)
				}
				var ne net.Error
				timeout := tc.cancel == 0
				if !errors.As(err, &ne) || ne.Timeout() != timeout {
					t.Errorf("%v: a timeout is %v, want %v", err, !timeout, timeout)
				}
				for _, target := range []error{sctp.ErrTimeout, os.ErrDeadlineExceeded, context.DeadlineExceeded} {
					if errors.Is(err, target) != timeout {
						t.Errorf("%v is %v: %v, want %v", err, target, !timeout, timeout)
					}
				}
				if errors.Is(err, context.Canceled) == timeout {
					t.Errorf("%v is context.Canceled: %v", err, timeout)
				}
			})
		})
	}
}

// Nothing uses the UDP port: the peer's host says so by ICMP. A transport of ours that
// does not listen on the SCTP port says so by ABORT.
func TestDialIsRefused(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		t.Run(ip, func(t *testing.T) {
			tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(ip), 0)}})
			if err != nil {
				t.Skipf("no address %s: %v", ip, err)
			}
			addr := sctp.Addr{Addrs: tr.LocalAddrs(), Port: 5000}.String()
			refused := func(what string) {
				t.Helper()
				_, err := (&sctp.Dialer{Timeout: 5 * time.Minute}).Dial(t.Context(), addr)
				if !errors.Is(err, sctp.ErrRefused) || !errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, sctp.ErrTimeout) {
					t.Errorf("%s: %v, want ErrRefused", what, err)
				}
				if err == nil || !strings.Contains(err.Error(), addr) {
					t.Errorf("%s: the error %q does not name %s", what, err, addr)
				}
			}
			// Its port is taken, so that it does not wait for Listen.
			e, err := tr.Listen(5000, &sctp.Config{Backlog: -1})
			if err != nil {
				t.Fatal(err)
			}
			refused("ABORT")
			e.Close()
			tr.Close()
			if runtime.GOOS != "linux" {
				t.Skip("only Linux shows ICMP messages to a UDP socket")
			}
			refused("ICMP")
		})
	}
}

// Of several addresses of the peer one that refuses does not keep Dial from the others.
func TestDialTriesTheNextAddress(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows ICMP messages to a UDP socket, and has all of 127/8")
	}
	l, err := sctp.Listen("127.0.0.2:0/5000")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	good := l.Addr().(sctp.Addr).Addrs[0]
	closed, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 3)})
	if err != nil {
		t.Fatal(err)
	}
	bad := closed.LocalAddr().(*net.UDPAddr).AddrPort()
	closed.Close()
	// T1 is longer than the test may take: only the ICMP message makes it go on.
	d := sctp.Dialer{Timeout: 5 * time.Minute, Config: &sctp.Config{RTOInitial: 10 * time.Minute, RTOMax: 10 * time.Minute}}
	c, err := d.Dial(t.Context(), sctp.Addr{Addrs: []netip.AddrPort{bad, good}, Port: 5000}.String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// An INIT that comes when the sockets are open and nothing listens yet waits for Listen.
func TestInitWaitsForListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		ea, err := memTransport(t, n.NewHost(addrA)).Listen(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		tb := memTransport(t, n.NewHost(addrB))
		if _, err := tb.Listen(4000, nil); err != nil { // another port
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() {
			if _, err := tb.Listen(serverPort, nil); err != nil {
				t.Error(err)
			}
		})
		if _, err := ea.Connect(t.Context(), sctp.Addr{Addrs: tb.LocalAddrs(), Port: serverPort}); err != nil {
			t.Error(err)
		}
		// Who does not listen refuses, and at once when the time for that is over.
		began := time.Now()
		if _, err := ea.Connect(t.Context(), sctp.Addr{Addrs: tb.LocalAddrs(), Port: 4001}); !errors.Is(err, sctp.ErrRefused) {
			t.Errorf("Connect = %v, want ErrRefused", err)
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("it was refused after %v", d)
		}
		began = time.Now()
		if _, err := ea.Connect(t.Context(), sctp.Addr{Addrs: tb.LocalAddrs(), Port: 4001}); !errors.Is(err, sctp.ErrRefused) || time.Since(began) > 10*time.Millisecond {
			t.Errorf("Connect = %v after %v, want ErrRefused", err, time.Since(began))
		}
	})
}
