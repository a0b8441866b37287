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
)

func TestStreamsAreResetAndAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := make(chan sctp.Notification, 100)
		cb := &sctp.Config{OnNotify: func(_ *sctp.Association, n sctp.Notification) { notes <- n }}
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond, Loss: 0.1}, nil, cb)
		ctx := context.Background()
		want := func(kind sctp.NotificationKind) sctp.Notification {
			t.Helper()
			for n := range notes {
				if n.Kind == kind {
					return n
				}
			}
			panic("unreachable")
		}
		send := func(stream, ssn uint16) { p.wantNumber(t, stream, ssn) }
		send(3, 0)
		send(3, 1)
		if err := p.a.ResetStreams(ctx, 3, 4); err != nil {
			t.Fatal(err)
		}
		if n := want(sctp.NotifyStreamsReset); !slices.Equal(n.Streams, []uint16{3, 4}) {
			t.Errorf("streams reset: %v", n.Streams)
		}
		send(3, 0)
		out, in := p.a.Streams()
		if err := p.a.Send(ctx, []byte("x"), sctp.SendOptions{Stream: out}); !errors.Is(err, sctp.ErrNoStream) {
			t.Errorf("send on a stream that does not exist: %v", err)
		}
		if err := p.a.AddStreams(ctx, 0, 0); !errors.Is(err, sctp.ErrNoStream) {
			t.Errorf("no streams added: %v", err)
		}
		if err := p.a.AddStreams(ctx, 5, 0); err != nil {
			t.Fatal(err)
		}
		want(sctp.NotifyStreamsAdded)
		if o, i := p.a.Streams(); o != out+5 || i != in {
			t.Errorf("streams: %d, %d; want %d, %d", o, i, out+5, in)
		}
		send(out, 0)
		if err := p.a.ResetStreams(ctx, 500); !errors.Is(err, sctp.ErrNoStream) {
			t.Errorf("reset of a stream that does not exist: %v", err)
		}
		p.net.Cut(addrA, addrB)
		cut, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := p.a.ResetStreams(cut, 3); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("reset without an answer: %v", err)
		}
		done := make(chan error)
		go func() { done <- p.a.ResetStreams(ctx, 5) }()
		synctest.Wait()
		p.a.Abort("enough")
		if err := <-done; err == nil {
			t.Error("a request survived its association")
		}
	})
}

// wantNumber sends a message on a stream, which must arrive with a number.
func (p *pair) wantNumber(t *testing.T, stream, ssn uint16) {
	t.Helper()
	if err := p.a.Send(context.Background(), []byte("x"), sctp.SendOptions{Stream: stream}); err != nil {
		t.Fatal(err)
	}
	if _, info := recvMessage(t, p.b, make([]byte, 10)); info.SSN+uint16(info.MID) != ssn {
		t.Errorf("message on stream %d has number %d, want %d", stream, info.SSN+uint16(info.MID), ssn)
	}
}

func TestManyStreamsAreReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1<<16 - 1
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, &sctp.Config{OutStreams: n}, &sctp.Config{InStreams: n})
		ctx := context.Background()
		var streams []uint16
		for s := range uint16(n) {
			if s != 1 {
				streams = append(streams, s)
			}
		}
		send := func(stream, ssn uint16) { p.wantNumber(t, stream, ssn) }
		for _, s := range []uint16{0, 1, 40000, n - 1} {
			send(s, 0)
		}
		if err := p.a.ResetStreams(ctx, streams...); err != nil {
			t.Fatal(err)
		}
		send(0, 0)
		send(1, 1)
		send(40000, 0)
		send(n-1, 0)
	})
}

func TestResetNeedsBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, nil, &sctp.Config{NoReconfig: true})
		if err := p.a.ResetStreams(context.Background()); !errors.Is(err, sctp.ErrNotSupported) {
			t.Errorf("reset with a peer that cannot: %v", err)
		}
	})
}

func TestPausedStreamWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector()
		p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, nil, c.config())
		synctest.Wait()
		b := c.assocs[0]
		b.PauseStream(1, true)
		for _, s := range []uint16{1, 2} {
			if err := p.a.Send(context.Background(), []byte{byte(s)}, sctp.SendOptions{Stream: s}); err != nil {
				t.Fatal(err)
			}
		}
		if got := <-c.got; got[0] != 2 {
			t.Errorf("message of stream %d came first", got[0])
		}
		time.Sleep(time.Second)
		if len(c.got) != 0 {
			t.Error("a message of the paused stream came")
		}
		b.PauseStream(1, false)
		if got := <-c.got; got[0] != 1 {
			t.Errorf("message of stream %d came", got[0])
		}
	})
}
