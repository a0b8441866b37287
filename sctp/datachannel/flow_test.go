package datachannel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel"
	"github.com/weftstack/weft/sctp/sctptest"
)

// A reader that does not read holds up its own channel at first: others go on as long as what it
// has not read fits the receive window. Then the sender is held up, and the memory stays bounded;
// nothing is lost when it reads again.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window, size = 1 << 20, 1000
		p := newPair(t, delay, end{}, end{sctp: sctp.Config{RecvBuffer: window}})
		slowA, slowB := p.open(t, datachannel.Options{})
		a, b := p.open(t, datachannel.Options{})
		for range window / 4 / size {
			if err := slowA.Send(t.Context(), make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 * window / size { // many windows
			if err := a.Send(t.Context(), make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if m, err := b.Recv(t.Context(), nil); err != nil || len(m.Data) != size {
				t.Fatal(len(m.Data), err)
			}
		}
		// It is as much as the window, and more, that waits now.
		before := heap()
		var sent atomic.Int64
		go func() {
			for range 8 * window / size {
				if slowA.Send(t.Context(), make([]byte, size)) != nil {
					return
				}
				sent.Add(1)
			}
			slowA.Close()
		}()
		time.Sleep(time.Minute)
		if n := sent.Load() * size; n < window || n > 7*window {
			t.Errorf("%d bytes were taken for a window of %d", n, window)
		}
		// The send buffer of the sender is of the same heap: half of 4 MiB for a channel.
		if grown := heap() - before; grown > 2*window+2<<20+1<<20 {
			t.Errorf("the heap grew by %d KiB", grown>>10)
		}
		total := window/4/size + 8*window/size
		for range total {
			if m, err := slowB.Recv(t.Context(), nil); err != nil || len(m.Data) != size {
				t.Fatal(len(m.Data), err)
			}
		}
		wantEOF(t, slowB)
		wantClosed(t, slowA, nil)
		send(t, a, "goes on")
		wantText(t, b, "goes on")
	})
}

// With MaxUnread a channel that is not read is closed, and others never wait for it.
func TestMaxUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 64 << 10
		p := newPair(t, delay, end{}, end{dc: datachannel.Config{MaxUnread: limit}, sctp: sctp.Config{RecvBuffer: 256 << 10}})
		slowA, slowB := p.open(t, datachannel.Options{})
		a, b := p.open(t, datachannel.Options{})
		go func() {
			for slowA.Send(t.Context(), make([]byte, 1000)) == nil {
			}
		}()
		for range 1000 {
			send(t, a, "goes on")
			wantText(t, b, "goes on")
		}
		// What had come until then can be read, and counts until it is.
		n := 0
		for {
			_, err := slowB.Recv(t.Context(), nil)
			if err != nil {
				wantErr(t, "receive", err, datachannel.ErrUnread)
				break
			}
			n++
		}
		if n < limit/2/1000 || n > limit/1000 {
			t.Errorf("%d messages were unread", n)
		}
		wantClosed(t, slowA, nil)
		wantClosed(t, slowB, datachannel.ErrUnread)
	})
}

// BufferedAmount counts what is not acknowledged, and the callback comes when it falls to the
// threshold; sends wait at the limit of the channel, and other channels do not.
func TestBufferedAmount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, size = 100_000, 10_000
		p := newPair(t, sctptest.Link{Delay: 50 * time.Millisecond}, end{dc: datachannel.Config{MaxBufferedAmount: limit}}, end{})
		a, b := p.open(t, datachannel.Options{})
		other, otherB := p.open(t, datachannel.Options{})
		p.net.Cut(addrA, addrB)
		lows := 0
		a.SetBufferedAmountLow(25_000, func() {
			lows++
			if n := a.BufferedAmount(); n > 25_000 {
				t.Errorf("told that the amount is low at %d", n)
			}
		})
		for i := range limit / size {
			if err := a.TrySend(datachannel.Binary, make([]byte, size)); err != nil || a.BufferedAmount() != (i+1)*size {
				t.Fatal(i, a.BufferedAmount(), err)
			}
		}
		wantErr(t, "TrySend", a.TrySend(datachannel.Binary, []byte{1}), datachannel.ErrWouldBlock)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantErr(t, "Send", a.Send(ctx, []byte{1}), context.DeadlineExceeded)
		if err := other.TrySend(datachannel.Binary, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		wait := make(chan error)
		go func() { wait <- a.Send(t.Context(), make([]byte, size)) }()
		p.net.Restore(addrA, addrB)
		if err := <-wait; err != nil {
			t.Fatal(err)
		}
		for range limit/size + 1 {
			if m, err := b.Recv(t.Context(), nil); err != nil || len(m.Data) != size {
				t.Fatal(len(m.Data), err)
			}
		}
		if m, err := otherB.Recv(t.Context(), nil); err != nil || len(m.Data) != size {
			t.Fatal(len(m.Data), err)
		}
		time.Sleep(time.Second)
		if a.BufferedAmount() != 0 || lows != 1 {
			t.Errorf("%d bytes are buffered, told %d times that they are few", a.BufferedAmount(), lows)
		}
		// A message longer than the limit is taken when there is nothing else.
		if err := other.Send(t.Context(), make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		big := make([]byte, datachannel.DefaultPeerMaxMessageSize)
		if err := a.Send(t.Context(), big); err != nil {
			t.Fatal(err)
		}
	})
}

// Sends that wait end with the channel.
func TestWaitingSendsEndWithTheChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, delay, end{dc: datachannel.Config{MaxBufferedAmount: 1000}}, end{})
		a, b := p.open(t, datachannel.Options{})
		p.net.Cut(addrA, addrB)
		errs := make(chan error)
		for range 5 {
			go func() {
				err := a.Send(t.Context(), make([]byte, 1000))
				if err == nil {
					err = a.Send(t.Context(), make([]byte, 1000))
				}
				errs <- err
			}()
			go func() {
				_, err := b.Recv(t.Context(), nil)
				errs <- err
			}()
		}
		synctest.Wait()
		a.Close()
		b.Close()
		for range 10 {
			wantErr(t, "send or receive", <-errs, datachannel.ErrClosed)
		}
		p.net.Restore(addrA, addrB)
		wantClosed(t, a, nil)
		wantClosed(t, b, nil)
	})
}

// RFC 8831, Section 6.4: priorities are weights.
func TestPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, sctptest.Link{Delay: 5 * time.Millisecond, Rate: 10_000_000}, end{}, end{})
		var got [2]atomic.Int64
		for i, priority := range []uint16{datachannel.PriorityBelowNormal, datachannel.PriorityExtraHigh} {
			a, b := p.open(t, datachannel.Options{Priority: priority})
			go func() {
				for a.Send(t.Context(), make([]byte, 4000)) == nil {
				}
			}()
			go func() {
				for {
					m, err := b.Recv(t.Context(), nil)
					if err != nil {
						return
					}
					got[i].Add(int64(len(m.Data)))
				}
			}()
		}
		time.Sleep(5 * time.Second)
		low, high := -got[0].Load(), -got[1].Load()
		time.Sleep(20 * time.Second)
		low, high = low+got[0].Load(), high+got[1].Load()
		if ratio := float64(high) / float64(low); ratio < 7 || ratio > 9 {
			t.Errorf("the weights 1024 and 128 got %d and %d bytes, a ratio of %.2f, want 8", high, low, ratio)
		}
		p.a.Association().Abort("enough")
		p.b.Association().Abort("enough")
	})
}

// Messages of limited retransmissions and of a lifetime are given up, others are not; what comes is
// in order and what was sent.
func TestPartialReliability(t *testing.T) {
	for name, o := range map[string]datachannel.Options{
		"retransmissions": {PR: sctp.LimitedRetransmissions}, "lifetime": {PR: sctp.Timed, Lifetime: 5 * time.Millisecond},
		"reliable": {},
	} {
		bubble(t, name, func(t *testing.T) {
			const messages = 1000
			p := newPair(t, sctptest.Link{Delay: 10 * time.Millisecond, Loss: 0.1}, end{}, end{})
			a, b := p.open(t, o)
			if got := b.Options(); got.PR != o.PR || got.Lifetime != o.Lifetime || got.MaxRetransmits != 0 || got.Unordered {
				t.Errorf("%+v", got)
			}
			go func() {
				for i := range messages {
					if err := a.Send(t.Context(), []byte{byte(i >> 8), byte(i)}); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Millisecond)
				}
				a.Close()
			}()
			n, last := 0, -1
			for {
				m, err := b.Recv(t.Context(), nil)
				if err != nil {
					break
				}
				i := int(m.Data[0])<<8 | int(m.Data[1])
				if i <= last {
					t.Fatalf("message %d came after %d", i, last)
				}
				n, last = n+1, i
			}
			wantClosed(t, a, nil)
			abandoned := int(p.a.Stats().Abandoned)
			if o.PR == sctp.Reliable && n != messages || o.PR != sctp.Reliable && (n < messages/2 || n == messages) ||
				n+abandoned < messages { // of those given up some have arrived
				t.Errorf("%d of %d messages came, %d were abandoned", n, messages, abandoned)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, delay, end{}, end{})
		for _, o := range []datachannel.Options{
			{ID: 4}, {PR: sctp.Timed}, {PR: sctp.Timed, Lifetime: time.Microsecond}, {PR: sctp.Timed, Lifetime: 1<<63 - 1},
			{PR: sctp.Prioritized}, {Lifetime: time.Second}, {MaxRetransmits: 1}, {PR: sctp.Timed, Lifetime: time.Second, MaxRetransmits: 1},
			{Protocol: string(make([]byte, 1<<16))},
		} {
			_, err := p.a.Open(t.Context(), "", o)
			wantErr(t, "Open", err, datachannel.ErrOptions)
		}
		if _, err := p.a.Open(t.Context(), "", datachannel.Options{Negotiated: true, ID: 3}); err != nil {
			t.Error(err)
		}
		_, err := p.a.Open(t.Context(), "", datachannel.Options{Negotiated: true, ID: 3})
		wantErr(t, "Open", err, datachannel.ErrInUse)
		_, err = p.a.Open(t.Context(), "", datachannel.Options{Negotiated: true, ID: 65535})
		wantErr(t, "Open", err, datachannel.ErrNoStream)
		if s := p.a.Stats(); s.Channels != 1 {
			t.Errorf("%+v", s)
		}
	})
	for _, x := range []struct {
		dc   datachannel.Config
		sctp sctp.Config
	}{
		{}, {dc: datachannel.Config{Role: 3}}, {dc: datachannel.Config{Role: 1, AssemblyBuffer: 1000}},
		{datachannel.Config{Role: 1}, sctp.Config{NoReconfig: true}}, {datachannel.Config{Role: 1}, sctp.Config{NoPartialReliability: true}},
		{datachannel.Config{Role: 1}, sctp.Config{OnPiece: func(*sctp.Association, *sctp.Piece) {}}},
	} {
		if _, err := x.dc.SCTP(&x.sctp); !errors.Is(err, datachannel.ErrConfig) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// Streams are added when the numbers of an association are used up, if the peer agrees.
func TestStreamsAreAdded(t *testing.T) {
	for _, allowed := range []uint16{65535, 6} {
		synctest.Test(t, func(t *testing.T) {
			few := sctp.Config{OutStreams: 4, InStreams: allowed}
			p := newPair(t, delay, end{sctp: few}, end{sctp: sctp.Config{OutStreams: 4, InStreams: allowed, MaxOutStreams: allowed}})
			n := 0
			for range 5 {
				a, err := p.a.Open(t.Context(), "", datachannel.Options{})
				if err != nil {
					wantErr(t, "Open", err, datachannel.ErrNoStream)
					break
				}
				n++
				b, err := p.b.Accept(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				send(t, a, "there")
				wantText(t, b, "there")
				send(t, b, "back")
				wantText(t, a, "back")
			}
			if want := min(5, int(allowed)/2); n != want {
				t.Errorf("%d channels, want %d", n, want)
			}
		})
	}
}

// OnChannel and OnMessage take the place of Accept and Recv.
func TestCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		echo := datachannel.Config{
			OnChannel: func(c *datachannel.Channel) {
				opened++
				if err := c.TrySend(datachannel.Text, []byte("welcome")); err != nil {
					t.Error(err)
				}
			},
			OnMessage: func(c *datachannel.Channel, m datachannel.Message) {
				if err := c.TrySend(m.Kind, m.Data); err != nil {
					t.Error(err)
				}
			},
			PeerMaxMessageSize: -1,
		}
		p := newPair(t, delay, end{dc: datachannel.Config{PeerMaxMessageSize: -1}}, end{dc: echo})
		for range 3 {
			a, err := p.a.Open(t.Context(), "", datachannel.Options{})
			if err != nil {
				t.Fatal(err)
			}
			wantText(t, a, "welcome")
			for _, n := range []int{0, 1, 1000, 200 << 10} {
				msg := make([]byte, n)
				if err := a.Send(t.Context(), msg); err != nil {
					t.Fatal(err)
				}
				if m, err := a.Recv(t.Context(), nil); err != nil || len(m.Data) != n || m.Kind != datachannel.Binary {
					t.Fatalf("%d bytes, kind %d, %v; want %d", len(m.Data), m.Kind, err, n)
				}
			}
		}
		if opened != 3 {
			t.Errorf("OnChannel was called %d times", opened)
		}
	})
}
