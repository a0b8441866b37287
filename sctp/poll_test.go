package sctp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

func TestBusyPollLimits(t *testing.T) {
	for _, tt := range []struct{ poll, want time.Duration }{{0, DefaultBusyPoll}, {-1, 0}, {time.Millisecond, time.Millisecond}} {
		tr, err := NewTransport(TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, BusyPoll: tt.poll})
		if err != nil {
			t.Fatal(err)
		}
		polls := tt.want > 0 && tr.sockets().canPoll
		// A busy machine may take the processor away for longer than a wait polls.
		const tries = 10_000
		for try := 1; ; try++ {
			w := tr.BeginWait()
			asked := 0
			got := w.Poll(func() bool { asked++; return asked == 3 })
			if got != (asked == 3) || (asked > 0) != polls {
				t.Fatalf("BusyPoll %v: asked %d times, then %v", tt.poll, asked, got)
			}
			if got == polls {
				w.End()
				break
			}
			if try == tries {
				t.Fatalf("BusyPoll %v: none of %d waits asked three times", tt.poll, tries)
			}
		}
		if poll.Spinners() < 0 || tr.spinning.Any() {
			t.Errorf("goroutines poll, %d in all", poll.Spinners())
		}
		if got := tr.waits.Max(); got != tt.want {
			t.Errorf("BusyPoll %v: waits poll for %v, want %v", tt.poll, got, tt.want)
		}
		tr.Close()
	}
}

// A poll in vain ends in time, also where nothing ever comes.
func TestBusyPollInVain(t *testing.T) {
	tr, err := NewTransport(TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	for end := time.Now().Add(time.Minute); poll.Spinners() > 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("goroutines that earlier tests left behind still poll")
		}
	}
	polled := 0
	for range 1000 {
		w := tr.BeginWait()
		asked := false
		if w.Poll(func() bool { asked = true; return false }) {
			t.Fatal("something came")
		}
		if asked {
			polled++
		}
	}
	if polled != 1000 && tr.sockets().canPoll {
		t.Errorf("%d of 1000 waits polled, though none told that polling does not help", polled)
	}
}

// Datagrams that came while the readers slept are all read when they take over,
// without another one that wakes them.
func TestReadersReadAllThatCame(t *testing.T) {
	tr, err := NewTransport(TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if !tr.sockets().canPoll {
		t.Skip("sockets cannot be polled on this system")
	}
	to := tr.sockets().list[0].conn.LocalAddr()
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := uint64(0)
	send := func(n int) {
		for range n {
			if _, err := c.Write([]byte("no packet")); err != nil { // too short for one
				t.Fatal(err)
			}
			sent++
		}
	}
	await := func() {
		t.Helper()
		for i := 0; tr.count.datagramsIn.Load() < sent; i++ {
			if i > 100_000 {
				t.Fatalf("%d of %d datagrams were read", tr.count.datagramsIn.Load(), sent)
			}
			<-time.After(time.Millisecond)
		}
	}
	for range 20 {
		send(3)
		await()
		tr.suppression.set(tr, true)
		tr.suppression.mu.Lock()
		tr.suppression.timer.Stop()
		tr.suppression.mu.Unlock()
		send(5)
		tr.suppression.set(tr, false)
		await()
	}
}

// The interval between ticks grows while polling lasts, and its end is noticed within two
// ticks.
func TestSteadyPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{epoch: time.Now()}
		tr.demux.init()
		tr.timers.Init(tr.now, func([]*Association) {})
		c := &coming{}
		tr.set.Store(newSocketSet([]*socket{newSocket(tr, c)}))
		p := &tr.suppression
		wait := func() (time.Duration, clock.Time) {
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.interval, tr.timers.Slack()
		}
		poll := func(d, gap time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(gap) {
				tr.Poll()
			}
		}
		ends := func(within time.Duration) {
			t.Helper()
			if time.Sleep(within); c.quiet.Load() {
				t.Errorf("no reader is woken %v after the last poll", within)
			}
			if w, lax := wait(); w != minTick || lax != 0 {
				t.Errorf("ticks after %v, timers late by %v, although no goroutine polls", w, lax)
			}
		}
		for _, lasts := range []time.Duration{2 * minTick, 10 * time.Millisecond, 2 * tickShare * maxTick} {
			tr.suppression.set(tr, true)
			poll(lasts, minTick/8)
			want := min(max(lasts/tickShare, minTick), maxTick)
			w, lax := wait()
			if w < want*3/4 || w > want || w > minTick && lax != clock.Time(w) || w == minTick && lax != 0 {
				t.Errorf("after %v: ticks after %v, timers late by %v, want %v", lasts, w, lax, want)
			}
			ends(2*want + minTick)
		}
		// Polls that are rarer than ticks do not let the interval grow, and a leader has the
		// shortest one.
		tr.suppression.set(tr, true)
		poll(50*time.Millisecond, minTick/8)
		poll(3*maxTick, minTick*3/2)
		ends(0)
		tr.suppression.set(tr, true)
		poll(50*time.Millisecond, minTick/8)
		p.restartTicks(tr)
		if w, lax := wait(); w != minTick || lax != 0 {
			t.Errorf("in a hurry: ticks after %v, timers late by %v", w, lax)
		}
		poll(50*time.Millisecond, minTick/8)
		if p.stop(tr); tr.timers.Slack() != 0 {
			t.Error("timers are late after the end")
		}
	})
}

// With a lease the first poll puts the readers to sleep, until it has ended, unless a goroutine is parked
// that waits for what comes.
func TestPollLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{epoch: time.Now()}
		tr.demux.init()
		tr.timers.Init(tr.now, func([]*Association) {})
		c := &coming{}
		tr.set.Store(newSocketSet([]*socket{newSocket(tr, c)}))
		const lease = 3 * maxTick
		asleep := func(want bool, when string) {
			t.Helper()
			if synctest.Wait(); c.quiet.Load() != want {
				t.Errorf("%s: the readers sleep: %v", when, !want)
			}
		}
		tr.Poll()
		asleep(false, "after a poll without a lease")
		tr.SetPollLease(lease)
		for range 3 {
			tr.Poll()
			asleep(true, "after a poll")
			time.Sleep(lease - time.Nanosecond)
			asleep(true, "before the end of the lease")
			tr.Poll()
			time.Sleep(lease)
			asleep(true, "polls go on")
			time.Sleep(lease)
			asleep(false, "two leases after the last poll")
		}
		tr.leader.parked.Store(1)
		tr.Poll()
		asleep(false, "after a poll while a goroutine is parked")
		tr.leader.parked.Store(0)
		tr.SetPollLease(0)
		tr.Poll()
		asleep(false, "after a poll without a lease again")
		tr.suppression.stop(tr)
	})
}

// What reads memory here, or an upcall answers, is served without a wake-up of the
// reader each time.
func TestReaderLingers(t *testing.T) {
	p := newLeaderPair(t)
	p.tb.SetBusyRead(time.Second)
	defer p.busy()()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); runtime.Gosched() {
		c := p.tb.server.Chooser()
		if spun, _ := c.Costs(); spun > 0 && spun < time.Second {
			return
		}
	}
	t.Error("the reader of acknowledgements never polled for them with success")
}

// coming is a socket to which datagrams come that are no packets.
type coming struct {
	refusing
	left  atomic.Int32
	quiet atomic.Bool // suppression is on
}

func (c *coming) Polled(on bool) bool { c.quiet.Store(on); return true }
func (c *coming) Poll(b []*slab.Buf, m []udpio.Meta) (int, error) {
	return c.TryRead(b, m)
}
func (c *coming) TryRead(b []*slab.Buf, m []udpio.Meta) (int, error) {
	if c.left.Load() == 0 {
		return 0, nil
	}
	c.left.Add(-1)
	b[0].B, m[0] = b[0].B[:1], udpio.Meta{}
	return 1, nil
}

// A reader that lingers is woken by nothing once it has read a few times, until it sleeps
// or others poll.
func TestReaderPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		setup := func(n int) (tr *Transport, socks []*socket, conns []*coming) {
			tr = &Transport{epoch: time.Now()}
			tr.demux.init()
			for range n {
				c := &coming{}
				conns, socks = append(conns, c), append(socks, newSocket(tr, c))
			}
			tr.set.Store(newSocketSet(socks))
			return tr, socks, conns
		}
		begun := func() (tr *Transport, s *socket, c *coming) {
			tr, socks, conns := setup(1)
			s, c = socks[0], conns[0]
			c.left.Store(readsBeforeSuppression)
			for i := range readsBeforeSuppression {
				if c.quiet.Load() {
					t.Fatalf("no reader is woken after %d reads", i)
				}
				if came, over := s.pollMoreOnce(true); !came || over {
					t.Fatalf("read %d: came %v, over %v", i, came, over)
				}
			}
			if !c.quiet.Load() {
				t.Fatal("a reader is woken although it polls")
			}
			return tr, s, c
		}
		tr, s, c := begun()
		if came, over := s.pollMoreOnce(true); came || over {
			t.Errorf("with nothing to read: came %v, over %v", came, over)
		}
		for range 10 {
			time.Sleep(minTick / 2)
			if s.pollMoreOnce(true); !c.quiet.Load() {
				t.Fatal("the tick ended it")
			}
		}
		s.endPolling()
		if c.quiet.Load() || s.polls || tr.suppression.readerPolls.Load() {
			t.Error("no reader is woken although the reader sleeps")
		}

		// Who polls now and then does not take it over, nor do those who send and look
		// meanwhile, as the reader itself may.
		tr, s, c = begun()
		for range 100 {
			time.Sleep(2 * pollGap)
			tr.Poll()
			tr.pollAsSender()
			if _, over := s.pollMoreOnce(true); over {
				t.Fatal("the reader gives way to a goroutine that polls now and then")
			}
		}
		for range 2 * pollsBeforeSuppression {
			tr.Poll()
		}
		if _, over := s.pollMoreOnce(true); !over {
			t.Error("the reader goes on although others poll")
		}
		if s.endPolling(); !c.quiet.Load() {
			t.Error("readers wake while a goroutine polls")
		}
		time.Sleep(2 * maxTick)
		if c.quiet.Load() {
			t.Error("no reader reads")
		}

		// One that does not linger, but finds something each time, is one of those who
		// poll later.
		_, socks, conns := setup(1)
		conns[0].left.Store(busyReadsBeforeSuppression)
		for i := range busyReadsBeforeSuppression {
			if conns[0].quiet.Load() {
				t.Fatalf("no reader is woken after %d reads", i)
			}
			socks[0].pollMoreOnce(false)
		}
		if !conns[0].quiet.Load() {
			t.Error("a reader is woken although it polls, and finds something each time")
		}
		socks[0].endPolling()

		tr, socks, conns = setup(1)
		tr.suppression.set(tr, true)
		conns[0].left.Store(2 * readsBeforeSuppression)
		for range 2 * readsBeforeSuppression {
			if _, over := socks[0].pollMoreOnce(true); !over || socks[0].polls {
				t.Error("the reader takes it from others")
			}
		}
		tr.suppression.set(tr, false)

		// Where there are several readers each is on its own.
		_, socks, conns = setup(2)
		conns[0].left.Store(2 * readsBeforeSuppression)
		for range 2 * readsBeforeSuppression {
			if _, over := socks[0].pollMoreOnce(true); over || conns[1].quiet.Load() {
				t.Error("one of two readers silences the other socket")
			}
		}
	})
}

// A poll goes on while something comes, if not what is waited for.
func TestPollGoesOnWhileSomethingComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 20 * time.Millisecond
		for _, tt := range []struct{ comes, want time.Duration }{{0, limit}, {2 * limit, 3 * limit}} {
			tr := &Transport{epoch: time.Now()}
			var c poll.Chooser
			c.Init(limit)
			w := Wait{t: tr, w: c.Begin(int64(tr.now()))}
			for time.Sleep(time.Millisecond); !w.over(time.Duration(tr.now()) <= tt.comes); time.Sleep(time.Millisecond) {
			}
			if took := time.Duration(tr.now()); took != tt.want+time.Millisecond {
				t.Errorf("something came for %v: it polled for %v, want a millisecond more than %v", tt.comes, took, tt.want)
			}
		}
	})
}

// refusing is a socket that cannot be watched again for some time.
type refusing struct {
	udpio.Conn
	refusals, reads atomic.Int32
}

func (c *refusing) CanPoll() bool             { return true }
func (c *refusing) Direct() bool              { return false }
func (c *refusing) Unwatch()                  {}
func (c *refusing) Segments() int             { return 1 }
func (c *refusing) LocalAddr() netip.AddrPort { return netip.AddrPort{} }
func (c *refusing) Polled(on bool) bool       { return on || c.refusals.Add(-1) < 0 }
func (c *refusing) Poll([]*slab.Buf, []udpio.Meta) (int, error) {
	c.reads.Add(1)
	return 0, nil
}

// Where the readers cannot take over, it is tried again, and the sockets are read
// meanwhile.
func TestReadersTakeOverLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{epoch: time.Now()}
		c := &refusing{}
		tr.set.Store(newSocketSet([]*socket{newSocket(tr, c)}))
		for _, refusals := range []int32{0, 3} {
			c.refusals.Store(refusals)
			c.reads.Store(0)
			tr.suppression.set(tr, true)
			tr.suppression.set(tr, false)
			if quiet := tr.suppression.on.Load(); quiet != (refusals > 0) {
				t.Fatalf("refused %d times: quiet %v", refusals, quiet)
			}
			time.Sleep(time.Second)
			if tr.suppression.on.Load() || c.reads.Load() <= refusals {
				t.Errorf("refused %d times: still quiet %v, %d reads", refusals, tr.suppression.on.Load(), c.reads.Load())
			}
		}
	})
}

// A receive ends when its context is done, however long it may poll.
func TestEndpointRecvEndsWhilePolling(t *testing.T) {
	tr, err := NewTransport(TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, BusyPoll: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	e, err := tr.Listen(0, &Config{OneToMany: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, _, err := e.Recv(ctx, make([]byte, 10))
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Recv: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Recv polls on")
	}
}
