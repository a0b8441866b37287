package sctp_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/wire"
)

// RFC 6458, Section 5.3.6: what comes next can be known before a buffer for it is
// made.
func TestPeekTellsTheNextMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, nil, nil)
		if _, _, ok := p.b.Peek(); ok {
			t.Error("there is a message before one was sent")
		}
		for i, n := range []int{5000, 7} {
			if err := p.a.Send(ctx, pattern(n), sctp.SendOptions{Stream: 3, PPID: uint32(40 + i)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for i, want := range []int{5000, 7} {
			n, info, ok := p.b.Peek()
			if !ok || n != want || !info.EOR || info.PPID != uint32(40+i) || info.Stream != 3 || info.Association != p.b {
				t.Fatalf("next: %d bytes, %+v, %v", n, info, ok)
			}
			if want == 5000 { // half of it
				if k, info, err := p.b.Recv(ctx, make([]byte, 2500)); k != 2500 || info.EOR || err != nil {
					t.Fatal(k, info.EOR, err)
				}
				if n, info, ok = p.b.Peek(); !ok || n != 2500 || info.Offset != 2500 || !info.EOR {
					t.Fatalf("the rest: %d bytes, %+v, %v", n, info, ok)
				}
			}
			if k, info, err := p.b.Recv(ctx, make([]byte, n)); k != n || !info.EOR || err != nil {
				t.Fatal(k, info.EOR, err)
			}
		}
		if _, _, ok := p.b.Peek(); ok {
			t.Error("there is a message after the last")
		}
	})
}

// Section 8.2.1, sstat_state.
func TestStateIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: 100 * time.Millisecond}, nil, nil)
		if s := p.a.State(); s != sctp.Established || s.String() != "ESTABLISHED" {
			t.Errorf("state %v", s)
		}
		go p.a.Shutdown(context.Background())
		synctest.Wait()
		if s := p.a.State(); s != sctp.ShutdownSent {
			t.Errorf("state %v after Shutdown", s)
		}
		<-p.a.Done()
		if s := p.a.State(); s != sctp.Closed {
			t.Errorf("state %v at the end", s)
		}
	})
}

// Section 5.3.1, sinit_max_init_timeo: with a bound the INITs do not get rarer.
func TestInitTimeoutIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		ta := memTransport(t, n.NewHost(addrA))
		e, err := ta.Listen(0, &sctp.Config{MaxInitTimeout: 50 * time.Millisecond, MaxInitRetransmits: 4})
		if err != nil {
			t.Fatal(err)
		}
		peer, _ := sctp.ParseAddr(addrB + ":9899/5000")
		at := time.Now()
		if _, err := e.Connect(context.Background(), peer); !errors.Is(err, sctp.ErrTimeout) {
			t.Errorf("Connect: %v", err)
		}
		if d := time.Since(at); d != 5*50*time.Millisecond {
			t.Errorf("gave up after %v, want five times 50 ms", d)
		}
	})
}

// Section 8.1.11: without fragmentation a message that does not fit is refused, and
// one that does goes in one chunk.
func TestWithoutFragmentation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, &sctp.Config{NoFragmentation: true, MTU: 1200}, nil)
		n := p.a.MaxPayload()
		if err := p.a.Send(ctx, make([]byte, n+1), sctp.SendOptions{}); !errors.Is(err, sctp.ErrMessageTooLong) {
			t.Errorf("%d bytes: %v", n+1, err)
		}
		if err := p.a.Send(ctx, make([]byte, n), sctp.SendOptions{Header: []byte("x")}); !errors.Is(err, sctp.ErrMessageTooLong) {
			t.Errorf("%d bytes with a header: %v", n, err)
		}
		if err := p.a.Send(ctx, make([]byte, n), sctp.SendOptions{}); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		buf := make([]byte, 2000)
		if got, _ := recvMessage(t, p.b, buf); len(got) != n {
			t.Errorf("%d bytes came, want %d", len(got), n)
		}
		if c := p.a.Stats().ChunksSent; c != 1 {
			t.Errorf("%d chunks, want one", c)
		}
	})
}

// Sections 8.2.3 and 8.2.4.
func TestAuthChunksAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := &sctp.Config{Auth: &sctp.AuthConfig{Chunks: []wire.ChunkType{wire.ChunkData, wire.ChunkIData}}}
		cb := &sctp.Config{Auth: &sctp.AuthConfig{Chunks: []wire.ChunkType{wire.ChunkReConfig}}}
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, ca, cb)
		la, pa := p.a.AuthChunks()
		lb, pb := p.b.AuthChunks()
		if !slices.Equal(la, ca.Auth.Chunks) || !slices.Equal(pa, cb.Auth.Chunks) || !slices.Equal(lb, pa) || !slices.Equal(pb, la) {
			t.Errorf("A: %v %v, B: %v %v", la, pa, lb, pb)
		}
		p = newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, nil, nil)
		if l, r := p.a.AuthChunks(); l != nil || r != nil {
			t.Errorf("without authentication: %v %v", l, r)
		}
	})
}

// Section 8.1.4: SO_LINGER.
func TestLinger(t *testing.T) {
	for _, x := range []struct {
		name   string
		sec    int
		cut    bool
		wait   time.Duration // of Close, at most
		err    error         // of Close
		gets   bool          // the peer gets what was written
		aborts bool          // it learns of an abort
	}{
		{"in the background", -1, false, 0, nil, true, false},
		{"not at all", 0, false, 0, nil, false, true},
		{"waits", 5, false, time.Second, nil, true, false},
		{"in vain", 5, true, 5 * time.Second, sctp.ErrTimeout, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, 1, sctptest.Link{Delay: 50 * time.Millisecond}, nil, nil)
			if x.cut {
				p.net.Cut(addrA, addrB)
			}
			c := sctp.NewConn(p.a)
			c.SetLinger(x.sec)
			if _, err := c.Write(pattern(100_000)); err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			if err := c.Close(); !errors.Is(err, x.err) {
				t.Errorf("%s: Close: %v, want %v", x.name, err, x.err)
			}
			if d := time.Since(at); d > x.wait || x.wait > 0 && d == 0 {
				t.Errorf("%s: Close took %v, want up to %v", x.name, d, x.wait)
			}
			if err := c.Close(); !errors.Is(err, sctp.ErrClosed) {
				t.Errorf("%s: second Close: %v", x.name, err)
			}
			if x.cut {
				return
			}
			n, buf := 0, make([]byte, 100_000)
			var err error
			for err == nil {
				var k int
				k, _, err = p.b.Recv(context.Background(), buf[n:])
				n += k
			}
			if x.gets != (n == len(buf)) {
				t.Errorf("%s: the peer got %d bytes", x.name, n)
			}
			if ab := (*sctp.AbortError)(nil); errors.As(err, &ab) != x.aborts {
				t.Errorf("%s: the peer's end is %v", x.name, err)
			}
		})
	}
}

// Sections 6.1.6 and 8.1.10: the adaptation indication; Section 6.1.9: everything
// sent was acknowledged.
func TestAdaptationAndDrynessAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := uint32(0xABCD)
		dry := make(chan *sctp.Association, 10)
		ca := &sctp.Config{Adaptation: &code, SenderDry: true, OnNotify: func(a *sctp.Association, n sctp.Notification) {
			if n.Kind == sctp.NotifySenderDry {
				dry <- a
			}
		}}
		told := make(chan sctp.Notification, 10)
		cb := &sctp.Config{OnNotify: func(_ *sctp.Association, n sctp.Notification) {
			if n.Kind == sctp.NotifySenderDry {
				told <- n
			}
		}}
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, ca, cb)
		if v, ok := p.b.PeerAdaptation(); !ok || v != code {
			t.Errorf("adaptation indication %#x, %v; want %#x", v, ok, code)
		}
		if v, ok := p.a.PeerAdaptation(); ok {
			t.Errorf("adaptation indication %#x of a peer that sent none", v)
		}
		localA, peerA := p.a.VerificationTags()
		if localB, peerB := p.b.VerificationTags(); localA != peerB || peerA != localB || localA == 0 || localB == 0 || localA == localB {
			t.Errorf("verification tags %#x and %#x, at the peer %#x and %#x", localA, peerA, localB, peerB)
		}
		if err := p.a.Send(context.Background(), pattern(10_000), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // another goroutine may be the one that transmits
		if n := p.a.Stats().InFlight; n == 0 || len(dry) != 0 {
			t.Errorf("%d bytes in flight, %d notifications", n, len(dry))
		}
		if a := <-dry; a != p.a || a.Stats().Queued != 0 {
			t.Errorf("dry with %d bytes queued", a.Stats().Queued)
		}
		// The peer did not ask.
		if err := p.b.Send(context.Background(), pattern(100), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := p.b.Stats().Queued; n != 0 || len(told) != 0 {
			t.Errorf("%d bytes queued, %d notifications for a peer that wants none", n, len(told))
		}
	})
}

// Section 8.1.5: small messages wait for others in flight only if asked to.
func TestSmallMessagesWaitIfAskedTo(t *testing.T) {
	for _, bundle := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, 1, sctptest.Link{Delay: 20 * time.Millisecond}, &sctp.Config{Bundle: bundle}, nil)
			time.Sleep(time.Second)
			before := p.net.Counters(addrA, addrB).Sent
			for range 5 {
				if err := p.a.Send(context.Background(), []byte("small"), sctp.SendOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			want := uint64(5)
			if bundle {
				want = 1
			}
			if n := p.net.Counters(addrA, addrB).Sent - before; n != want {
				t.Errorf("Bundle %v: %d packets at once, want %d", bundle, n, want)
			}
			for range 5 {
				recvMessage(t, p.b, make([]byte, 10))
			}
		})
	}
}
