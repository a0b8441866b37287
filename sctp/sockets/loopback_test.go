package sockets

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

// local returns ports of 127.0.0.1, or another address.
func local(port int, last ...byte) *SCTPAddr {
	a := &SCTPAddr{Port: port, IPAddrs: []net.IPAddr{{IP: net.IPv4(127, 0, 0, 1)}}}
	for _, b := range last {
		a.IPAddrs = append(a.IPAddrs, net.IPAddr{IP: net.IPv4(127, 0, 0, b)})
	}
	return a
}

// noTransports waits until all sockets of the process are closed.
func noTransports(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		transports.mu.Lock()
		n := len(transports.m)
		transports.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d transports are left", n)
		}
	}
}

// serve echoes all that comes to a listener.
func serve(l *SCTPListener) {
	for {
		c, err := l.AcceptSCTP()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			c.SubscribeEvents(SCTP_EVENT_DATA_IO)
			buf := make([]byte, 1<<16)
			for {
				n, info, err := c.SCTPRead(buf)
				if err != nil {
					return
				}
				c.SCTPWrite(buf[:n], info)
			}
		}()
	}
}

// echo sends a message and waits for it.
func echo(c *SCTPConn, msg string) error {
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.SCTPWrite([]byte(msg), &SndRcvInfo{Stream: 1, PPID: 60}); err != nil {
		return err
	}
	buf := make([]byte, 1<<16)
	n, err := c.Read(buf)
	if err == nil && string(buf[:n]) != msg {
		err = fmt.Errorf("read %q, want %q", buf[:n], msg)
	}
	return err
}

// Over UDP on this host: the SCTP port is the UDP port, also one that was free, and all is
// closed at the end.
func TestLoopback(t *testing.T) {
	l, err := ListenSCTP("sctp", local(0))
	if err != nil {
		t.Fatal(err)
	}
	go serve(l)
	at := l.Addr().(*SCTPAddr)
	if at.Port == 0 || l.port.tr.LocalAddrs()[0].Port() != uint16(at.Port) {
		t.Errorf("listens on SCTP port %d and UDP port %d", at.Port, l.port.tr.LocalAddrs()[0].Port())
	}
	var clients []*SCTPConn
	for range 3 {
		c, err := DialSCTP("sctp", nil, at)
		if err != nil {
			t.Fatal(err)
		}
		if err := echo(c, "hello"); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	if a, b := clients[0].port.tr, clients[1].port.tr; a != b {
		t.Error("two clients without a port do not share a transport")
	}
	if _, err := ListenSCTP("sctp", at); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("second listener: %v, want EADDRINUSE", err)
	}
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	noTransports(t)
	l, err = ListenSCTP("sctp", at) // the port is free again
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	noTransports(t)
}

// With one UDP port for all, listeners, one-to-many sockets and clients with ports of their own
// share it; it lives until the last of them has gone.
func TestOneUDPPortForAll(t *testing.T) {
	cfg := &SocketConfig{Encap: Encap(testenv.FreePort(t))}
	var listeners []*SCTPListener
	for _, port := range []int{38412, 2905, 3868} {
		l, err := cfg.Listen("sctp", local(port))
		if err != nil {
			t.Fatal(err)
		}
		go serve(l)
		listeners = append(listeners, l)
	}
	hub, err := cfg.ListenOneToMany("sctp", local(36412))
	if err != nil {
		t.Fatal(err)
	}
	var clients []*SCTPConn
	for i, l := range listeners {
		from := local(0)
		if i == 0 {
			from = local(7777) // of the same UDP port as the listeners
		}
		c, err := cfg.Dial("sctp", from, l.Addr().(*SCTPAddr))
		if err != nil {
			t.Fatal(err)
		}
		if shared := c.port.tr == l.port.tr; shared != (i == 0) {
			t.Errorf("client %d on the transport of the listeners: %v", i, shared)
		}
		if err := echo(c, "hello"); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	if listeners[0].port.tr != listeners[2].port.tr || hub.port.tr != listeners[0].port.tr {
		t.Error("listeners do not share their UDP port")
	}
	for _, l := range listeners {
		l.Close()
	}
	hub.Close()
	if err := echo(clients[1], "accepted associations go on"); err != nil {
		t.Error(err)
	}
	for _, c := range clients {
		c.Close()
	}
	noTransports(t)
}

// Sockets that are opened and closed at the same time, on the same few ports.
func TestSharingUnderChurn(t *testing.T) {
	cfg := &SocketConfig{Encap: Encap(testenv.FreePort(t))}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 10 {
				l, err := cfg.Listen("sctp", local(1000+i))
				if errors.Is(err, syscall.EADDRINUSE) {
					time.Sleep(time.Millisecond) // an association of the last round
					continue
				} else if err != nil {
					t.Error(err)
					return
				}
				go serve(l)
				c, err := cfg.Dial("sctp", local(0), l.Addr().(*SCTPAddr))
				if err != nil {
					t.Error(err)
				} else {
					if err := echo(c, "hello"); err != nil {
						t.Error(err)
					}
					c.Close()
				}
				l.Close()
			}
		})
	}
	wg.Wait()
	noTransports(t)
}

// Two addresses at both ends, one UDP port at each, free or not; addresses that come and go.
func TestLoopbackMultihomed(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "freebsd" {
		t.Skip("the loopback interface has one address")
	}
	cfg := &SocketConfig{ChangeAddrs: true, HeartbeatInterval: 100 * time.Millisecond}
	l, err := cfg.Listen("sctp", local(0, 2))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go serve(l)
	c, err := cfg.Dial("sctp", local(testenv.FreePort(t), 2), l.Addr().(*SCTPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if a := c.RemoteAddr().(*SCTPAddr); len(a.IPAddrs) != 2 {
		t.Errorf("peer %v, want two addresses", a)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.SCTPBind(ctx, local(0, 3), 99); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("flags 99: %v", err)
	}
	third := &SCTPAddr{IPAddrs: local(0, 3).IPAddrs[1:]}
	for _, flags := range []int{SCTP_BINDX_ADD_ADDR, SCTP_BINDX_REM_ADDR} {
		if err := c.SCTPBind(ctx, third, flags); err != nil {
			t.Fatal(err)
		}
		if got, want := len(c.LocalAddr().(*SCTPAddr).IPAddrs), 4-flags; got != want {
			t.Errorf("%d local addresses after flags %d, want %d", got, flags, want)
		}
		if err := echo(c, "hello"); err != nil {
			t.Error(err)
		}
	}
	other, err := cfg.Dial("sctp", nil, l.Addr().(*SCTPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	more, err := cfg.Dial("sctp", nil, l.Addr().(*SCTPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if err := more.SCTPBind(ctx, third, SCTP_BINDX_ADD_ADDR); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("bind of a shared transport: %v, want EBUSY", err)
	}
}

// Reads and writes in steady state allocate nothing; SCTPRead allocates its SndRcvInfo.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	if RaceEnabled {
		t.Skip("the race detector allocates")
	}
	l, err := ListenSCTP("sctp", local(0))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := DialSCTP("sctp", local(0), l.Addr().(*SCTPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.AcceptSCTP()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, size := range []int{64, 1000, 20_000} {
		msg, buf, info := make([]byte, size), make([]byte, size), &SndRcvInfo{Stream: 1}
		round := func() {
			for _, dir := range [][2]*SCTPConn{{c, s}, {s, c}} {
				if _, err := dir[0].SCTPWrite(msg, info); err != nil {
					t.Fatal(err)
				}
				for n := 0; n < size; {
					m, _, err := dir[1].ReadMsg(buf, nil)
					if err != nil {
						t.Fatal(err)
					}
					n += m
				}
			}
		}
		for range 200 {
			round()
		}
		if n := testing.AllocsPerRun(200, round); n > 0.5 {
			t.Errorf("%d bytes there and back: %v allocations", size, n)
		}
	}
}
