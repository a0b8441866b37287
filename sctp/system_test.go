package sctp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

func TestManyAssociationsOnOneSocket(t *testing.T) {
	ctx := context.Background()
	server := newTransport(t, loopback())
	eb, err := server.Listen(serverPort, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := newTransport(t, loopback())
	const assocs, messages = 100, 20
	var wg sync.WaitGroup
	wg.Go(func() {
		for range assocs {
			a, err := eb.Accept(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			wg.Go(func() {
				buf := make([]byte, 1<<16)
				for {
					n, info, err := a.Recv(ctx, buf)
					if err == io.EOF {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					if err := a.Send(ctx, buf[:n], sctp.SendOptions{Stream: info.Stream}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	})
	for i := range assocs {
		wg.Go(func() {
			e, err := client.Listen(0, nil)
			if err != nil {
				t.Error(err)
				return
			}
			a, err := e.Connect(ctx, eb.Addr())
			if err != nil {
				t.Error(err)
				return
			}
			buf := make([]byte, 1<<16)
			for j := range messages {
				msg := pattern(1 + i*j*10)
				if err := a.Send(ctx, msg, sctp.SendOptions{Stream: uint16(j % 10)}); err != nil {
					t.Error(err)
					return
				}
				if got, _ := recvMessage(t, a, buf); !bytes.Equal(got, msg) {
					t.Errorf("association %d: message %d came out different", i, j)
				}
			}
			if err := a.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func loopback() sctp.TransportConfig {
	return sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}}
}

func TestHugeMessage(t *testing.T) {
	p := newLoopbackPair(t, sctp.TransportConfig{}, nil, nil)
	msg := pattern(64 << 20)
	go func() {
		if err := p.a.Send(context.Background(), msg, sctp.SendOptions{}); err != nil {
			t.Error(err)
		}
	}()
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		n, info, err := p.b.Recv(context.Background(), buf)
		if err != nil {
			t.Fatal(err)
		}
		h.Write(buf[:n])
		if info.EOR {
			break
		}
	}
	if want := sha256.Sum256(msg); !bytes.Equal(h.Sum(nil), want[:]) {
		t.Error("64 MiB came out different")
	}
}

func TestConcurrentSendersAndReceivers(t *testing.T) {
	ctx := context.Background()
	for _, spin := range []time.Duration{-1, 50 * time.Microsecond} {
		p := newLoopbackPair(t, sctp.TransportConfig{BusyPoll: spin}, nil, nil)
		const senders, each = 8, 200
		var wg sync.WaitGroup
		var total atomic.Int64
		for s := range senders {
			wg.Go(func() {
				for i := range each {
					msg := pattern(1 + (i*37)%5000)
					msg[0] = byte(s)
					if err := p.a.Send(ctx, msg, sctp.SendOptions{Stream: uint16(s)}); err != nil {
						t.Error(err)
						return
					}
				}
			})
			wg.Go(func() {
				buf := make([]byte, 6000)
				for i := range each {
					n, info, err := p.b.RecvStream(ctx, uint16(s), buf)
					if err != nil {
						t.Error(err)
						return
					}
					want := pattern(1 + (i*37)%5000)
					want[0] = byte(s)
					if !bytes.Equal(buf[:n], want) || info.Stream != uint16(s) || !info.EOR {
						t.Errorf("stream %d: message %d came out different", s, i)
					}
					total.Add(1)
				}
			})
		}
		wg.Wait()
		if got := total.Load(); got != senders*each {
			t.Errorf("got %d messages, want %d", got, senders*each)
		}
	}
}

func TestOneStreamWaitsAloneForItsLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, nil, nil)
		ctx := context.Background()
		lost := false
		p.net.SetLink(addrA, addrB, sctptest.Link{Delay: time.Millisecond, Filter: func(b []byte) bool {
			if !lost && bytes.Contains(b, []byte("first")) {
				lost = true
				return false
			}
			return true
		}})
		for i, s := range []string{"first", "second", "third"} {
			if err := p.a.Send(ctx, []byte(s), sctp.SendOptions{Stream: uint16(i)}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // whoever transmits: a packet each
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if got := p.b.ReadableStreams(nil); len(got) != 2 || got[0]+got[1] != 3 {
			t.Errorf("readable streams: %v, want 1 and 2", got)
		}
		buf := make([]byte, 10)
		n, _, err := p.b.RecvStream(ctx, 2, buf)
		if err != nil || string(buf[:n]) != "third" {
			t.Errorf("stream 2: %q, %v", buf[:n], err)
		}
		n, _, err = p.b.RecvStream(ctx, 0, buf)
		if err != nil || string(buf[:n]) != "first" {
			t.Errorf("stream 0: %q, %v", buf[:n], err)
		}
		if _, _, err := p.b.RecvStream(ctx, 1, buf); err != nil {
			t.Error(err)
		}
		if _, _, err := p.b.TryRecv(buf); err != sctp.ErrWouldBlock {
			t.Errorf("TryRecv on nothing = %v", err)
		}
	})
}

// A message to all goes to every association that is up, also when one of them does
// not take it.
func TestSendAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		hub, err := memTransport(t, n.NewHost(addrB)).Listen(serverPort, &sctp.Config{OneToMany: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := hub.SendAll(ctx, []byte("nobody"), sctp.SendOptions{}); err != nil {
			t.Errorf("to nobody: %v", err)
		}
		var peers []*sctp.Association
		for i := range 5 {
			e, err := memTransport(t, n.NewHost(fmt.Sprintf("10.0.1.%d", i+1))).Listen(0, &sctp.Config{InStreams: uint16(1 + i)})
			if err != nil {
				t.Fatal(err)
			}
			a, err := e.Connect(ctx, hub.Addr())
			if err != nil {
				t.Fatal(err)
			}
			peers = append(peers, a)
		}
		synctest.Wait()
		for stream := range uint16(3) { // the first peers have less streams
			err := hub.SendAll(ctx, []byte{byte(stream)}, sctp.SendOptions{Stream: stream})
			if errors.Is(err, sctp.ErrNoStream) != (stream > 0) {
				t.Errorf("stream %d: %v", stream, err)
			}
		}
		for i, a := range peers {
			var b [1]byte
			for stream := range uint16(min(3, 1+i)) {
				if k, info, err := a.Recv(ctx, b[:]); err != nil || k != 1 || uint16(b[0]) != stream || info.Stream != stream {
					t.Errorf("peer %d: %v on stream %d, %v; want %d", i, b[:k], info.Stream, err, stream)
				}
			}
		}
		hub.Close()
	})
}

func TestOneToMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		hub, err := memTransport(t, n.NewHost(addrB)).Listen(serverPort, &sctp.Config{OneToMany: true})
		if err != nil {
			t.Fatal(err)
		}
		const peers = 10
		var wg sync.WaitGroup
		for i := range peers {
			e, err := memTransport(t, n.NewHost(fmt.Sprintf("10.0.1.%d", i+1))).Listen(7000, nil)
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				for j := range 5 {
					msg := fmt.Appendf(nil, "%d from %d", j, i)
					if err := e.SendTo(ctx, hub.Addr(), msg, sctp.SendOptions{}); err != nil {
						t.Error(err)
						return
					}
					buf := make([]byte, 100)
					n, info, err := e.Recv(ctx, buf)
					if err != nil || !bytes.Equal(buf[:n], msg) || info.Association != e.Find(hub.Addr()) {
						t.Errorf("echo %q, %v; want %q", buf[:n], err, msg)
					}
				}
			})
		}
		buf := make([]byte, 100)
		for range peers * 5 {
			n, info, err := hub.Recv(ctx, buf)
			if err != nil {
				t.Fatal(err)
			}
			if err := info.Association.Send(ctx, buf[:n], sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
		if got := len(hub.Associations()); got != peers {
			t.Errorf("%d associations, want %d", got, peers)
		}
		hub.Close()
		if _, _, err := hub.Recv(ctx, buf); !errors.Is(err, sctp.ErrClosed) {
			t.Errorf("Recv on a closed endpoint = %v", err)
		}
	})
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		tb := memTransport(t, n.NewHost(addrB))
		if _, err := tb.Listen(serverPort, &sctp.Config{Backlog: 2}); err != nil {
			t.Fatal(err)
		}
		if _, err := tb.Listen(serverPort, nil); err != sctp.ErrPortInUse {
			t.Errorf("second Listen on a port = %v", err)
		}
		ta := memTransport(t, n.NewHost(addrA))
		connect := func(tr *sctp.Transport) (*sctp.Association, error) {
			e, err := tr.Listen(0, nil)
			if err != nil {
				t.Fatal(err)
			}
			peer, _ := sctp.ParseAddr(addrB + ":9899/5000")
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			return e.Connect(ctx, peer)
		}
		for i := range 3 {
			_, err := connect(ta)
			if want := i < 2; (err == nil) != want {
				t.Errorf("association %d with a backlog of 2: %v", i+1, err)
			}
		}
		pc, err := n.NewHost("10.0.0.3").ListenPacket(":9899")
		if err != nil {
			t.Fatal(err)
		}
		small := newTransport(t, sctp.TransportConfig{Conns: []sctp.PacketConn{pc}, MaxAssociations: 1})
		e, err := small.Listen(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		p1, _ := sctp.ParseAddr("10.0.0.8:1/1")
		p2, _ := sctp.ParseAddr("10.0.0.9:1/1")
		go e.Connect(context.Background(), p1)
		synctest.Wait()
		if _, err := e.Connect(context.Background(), p1); !errors.Is(err, sctp.ErrExists) && !errors.Is(err, sctp.ErrLimit) {
			t.Errorf("second association with a peer = %v", err)
		}
		if _, err := e.Connect(context.Background(), p2); !errors.Is(err, sctp.ErrLimit) {
			t.Errorf("association beyond the limit = %v", err)
		}
	})
}

func TestPortsRunOut(t *testing.T) {
	tr := newTransport(t, loopback())
	for i := range sctp.MaxPorts {
		if _, err := tr.Listen(0, &sctp.Config{Backlog: -1}); err != nil {
			t.Fatalf("port %d: %v", i, err)
		}
	}
	if _, err := tr.Listen(0, nil); err != sctp.ErrLimit {
		t.Errorf("Listen beyond MaxPorts = %v, want ErrLimit", err)
	}
}

func TestRepliesToStrangersAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		tb := memTransport(t, n.NewHost(addrB))
		pc, err := n.NewHost(addrA).ListenPacket(":9899")
		if err != nil {
			t.Fatal(err)
		}
		// A DATA chunk for nobody, which deserves an ABORT (RFC 9260, Section
		// 8.4, 8).
		pkt := ootbPacket()
		for range 5000 {
			if _, err := pc.WriteToUDPAddrPort(pkt, netip.MustParseAddrPort(addrB+":9899")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		c := n.Counters(addrB, addrA)
		if c.Sent == 0 || c.Sent > 1200 {
			t.Errorf("%d replies to 5000 OOTB packets at once, want some 100", c.Sent)
		}
		if c.Bytes > 3*n.Counters(addrA, addrB).Bytes {
			t.Errorf("amplified %d bytes to %d", n.Counters(addrA, addrB).Bytes, c.Bytes)
		}
		st := tb.Stats()
		if st.OutOfTheBlue != 5000 || st.Suppressed != 5000-c.Sent {
			t.Errorf("counted %d out of the blue, %d suppressed", st.OutOfTheBlue, st.Suppressed)
		}
		pc.WriteToUDPAddrPort([]byte("no SCTP at all, but long enough"), netip.MustParseAddrPort(addrB+":9899"))
		pc.WriteToUDPAddrPort([]byte("short"), netip.MustParseAddrPort(addrB+":9899"))
		synctest.Wait()
		if st := tb.Stats(); st.BadPackets != 2 {
			t.Errorf("%d bad packets, want 2", st.BadPackets)
		}
		pc.Close()
	})
}

func TestTapSeesEveryDatagram(t *testing.T) {
	var sent, received atomic.Uint64
	tc := loopback()
	tc.Tap = func(e sctp.TapEvent) {
		if len(e.Data) < 12 || !e.Remote.IsValid() || !e.Local.IsValid() {
			t.Errorf("tap of %d bytes %v %v", len(e.Data), e.Local, e.Remote)
		}
		if e.Sent {
			sent.Add(1)
		} else {
			received.Add(1)
		}
	}
	p := &pair{t: t, ta: newTransport(t, tc), tb: newTransport(t, loopback())}
	p.connect(nil, nil)
	if err := p.a.Send(context.Background(), pattern(300_000), sctp.SendOptions{}); err != nil {
		t.Fatal(err)
	}
	recvMessage(t, p.b, make([]byte, 300_000))
	p.ta.Close()
	same := func() (st sctp.TransportStats, ok bool) {
		st = p.ta.Stats()
		return st, sent.Load() == st.DatagramsSent && received.Load() == st.DatagramsReceived
	}
	st, ok := same()
	for end := time.Now().Add(time.Minute); !ok && time.Now().Before(end); st, ok = same() {
		runtime.Gosched() // a timer of the transport may be reading for the last time
	}
	if !ok || sent.Load() == 0 {
		t.Errorf("tap saw %d and %d, transport counted %d and %d", sent.Load(), received.Load(), st.DatagramsSent, st.DatagramsReceived)
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		p := newLoopbackPair(t, sctp.TransportConfig{}, nil, nil)
		blocked := make(chan error, 2)
		go func() {
			_, _, err := p.b.Recv(context.Background(), make([]byte, 1))
			blocked <- err
		}()
		go func() {
			_, err := p.eb.Accept(context.Background())
			blocked <- err
		}()
		p.ta.Close()
		p.tb.Close()
		for range 2 {
			if err := <-blocked; err == nil {
				t.Error("a blocked call survived Close")
			}
		}
		if err := p.ta.Close(); err != sctp.ErrClosed {
			t.Errorf("second Close = %v", err)
		}
		if _, err := p.ta.Listen(0, nil); err != sctp.ErrClosed {
			t.Errorf("Listen on a closed transport = %v", err)
		}
		if _, err := p.ea.Connect(context.Background(), p.eb.Addr()); !errors.Is(err, sctp.ErrClosed) {
			t.Errorf("Connect on a closed transport = %v", err)
		}
	}
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		if runtime.NumGoroutine() <= before {
			return
		}
		<-time.After(time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
}

func TestPeerRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		var restarts atomic.Int32
		tb := memTransport(t, n.NewHost(addrB))
		eb, err := tb.Listen(serverPort, &sctp.Config{MTU: 1280, OnNotify: func(_ *sctp.Association, n sctp.Notification) {
			if n.Kind == sctp.NotifyRestart {
				restarts.Add(1)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		h := n.NewHost(addrA)
		ta := memTransport(t, h)
		e, _ := ta.Listen(6000, nil)
		a1, err := e.Connect(ctx, eb.Addr())
		if err != nil {
			t.Fatal(err)
		}
		b, err := eb.Accept(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := a1.Send(ctx, []byte("one"), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		recvMessage(t, b, buf)
		w, err := b.OpenMessage(ctx, sctp.SendOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte("lost"))
		n.Cut(addrA, addrB) // so that the ABORT of Close is lost, as in a crash
		ta.Close()
		n.Restore(addrA, addrB)
		ta = memTransport(t, h)
		e, _ = ta.Listen(6000, nil)
		a2, err := e.Connect(ctx, eb.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if err := a2.Send(ctx, []byte("two"), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, _ := recvMessage(t, b, buf); string(got) != "two" {
			t.Errorf("got %q on the restarted association", got)
		}
		if got := restarts.Load(); got != 1 {
			t.Errorf("%d restarts, want 1", got)
		}
		if err := w.Close(); err != sctp.ErrRestart {
			t.Errorf("the end of a message of before the restart: %v", err)
		}
		if got := b.Stats().Paths[0].MTU; got != 1280-28 {
			t.Errorf("packets of %d bytes after the restart, want %d", got, 1280-28)
		}
	})
}
