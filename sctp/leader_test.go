package sctp

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// leaderPair is two transports on loopback with an association, and another one
// that can keep the sockets busy.
type leaderPair struct {
	ta, tb *Transport
	a, b   *Association
	noise  *Association
}

func newLeaderPair(t *testing.T) *leaderPair {
	t.Helper()
	if n := runtime.GOMAXPROCS(0); n == 1 { // no goroutine leads then
		runtime.GOMAXPROCS(2)
		t.Cleanup(func() { runtime.GOMAXPROCS(n) })
	}
	ctx := t.Context()
	p := &leaderPair{}
	for _, tr := range []**Transport{&p.ta, &p.tb} {
		var err error
		*tr, err = NewTransport(TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*tr).Close() })
	}
	if p.ta.leader.poller == nil {
		t.Skip("sockets cannot be polled on this system")
	}
	listen := func(tr *Transport, cfg *Config) *Endpoint {
		e, err := tr.Listen(0, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	ea, eb := listen(p.ta, nil), listen(p.tb, nil)
	var err error
	if p.a, err = ea.Connect(ctx, eb.Addr()); err != nil {
		t.Fatal(err)
	}
	if p.b, err = eb.Accept(ctx); err != nil {
		t.Fatal(err)
	}
	sink := listen(p.ta, &Config{OnPiece: func(*Association, *Piece) {}})
	if p.noise, err = listen(p.tb, nil).Connect(ctx, sink.Addr()); err != nil {
		t.Fatal(err)
	}
	return p
}

// busy keeps datagrams coming to ta until the result is called, so that a lead
// there does not end for lack of them.
func (p *leaderPair) busy() (stop func()) {
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for msg := make([]byte, 8); ; {
			select {
			case <-over:
				return
			default:
				if p.noise.TrySend(msg, SendOptions{}) != nil {
					runtime.Gosched()
				}
			}
		}
	})
	return func() { close(over); wg.Wait() }
}

func TestLeadAfterBusyWaits(t *testing.T) {
	type wait struct {
		took  clock.Time
		reads uint64
	}
	for _, tt := range []struct {
		name  string
		waits []wait
		leads bool
	}{
		{"short", []wait{{maxShortWait / 2, 0}, {maxShortWait / 2, 1}}, true},
		{"one", []wait{{maxShortWait / 2, 0}}, false},
		{"long and busy", []wait{{5 * maxShortWait, 9}, {99 * maxShortWait, 99}}, true},
		{"long and idle", []wait{{5 * maxShortWait, 9}, {99 * maxShortWait, 98}}, false},
		{"idle between", []wait{{1, 0}, {2 * maxShortWait, 1}, {1, 0}}, false},
	} {
		var l leadership
		for _, w := range tt.waits {
			l.noteWait(w.took, w.reads)
		}
		if leads := l.shortWaits.Load() >= leaderAfter; leads != tt.leads {
			t.Errorf("%s: leads is %v", tt.name, leads)
		}
	}
}

// leads reports whether a goroutine leads.
func (l *leadership) leads() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w != nil
}

// led runs f, which waits on an association of ta, and returns once it leads.
func (p *leaderPair) led(t *testing.T, f func()) (done <-chan struct{}) {
	t.Helper()
	end := make(chan struct{})
	go func() {
		defer close(end)
		f()
	}()
	for !p.ta.leader.taken.Load() {
		p.ta.leader.shortWaits.Store(leaderAfter)
		p.b.Send(t.Context(), []byte("again"), SendOptions{}) // it is not too late to lead
		runtime.Gosched()
	}
	return end
}

// recvUntil receives on stream 0 until a message other than "again", or an error.
func recvUntil(ctx context.Context, a *Association) (string, error) {
	for buf := make([]byte, 64); ; {
		n, _, err := a.RecvStream(ctx, 0, buf)
		if err != nil || string(buf[:n]) != "again" {
			return string(buf[:n]), err
		}
	}
}

func TestLeadEndsWithItsMessage(t *testing.T) {
	p := newLeaderPair(t)
	defer p.busy()()
	var got string
	done := p.led(t, func() { got, _ = recvUntil(context.Background(), p.a) })
	if err := p.b.Send(t.Context(), []byte("this"), SendOptions{}); err != nil {
		t.Fatal(err)
	}
	<-done
	if got != "this" {
		t.Errorf("received %q", got)
	}
}

func TestLeadEndsWithItsContext(t *testing.T) {
	p := newLeaderPair(t)
	defer p.busy()()
	ctx, cancel := context.WithCancel(t.Context())
	var err error
	done := p.led(t, func() { _, err = recvUntil(ctx, p.a) })
	cancel()
	<-done
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Recv: %v", err)
	}
	// Others take over: the association still works.
	if err := p.b.Send(t.Context(), []byte("this"), SendOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := recvUntil(t.Context(), p.a); got != "this" {
		t.Errorf("received %q, %v", got, err)
	}
}

func TestLeadEndsWithTheAssociation(t *testing.T) {
	p := newLeaderPair(t)
	defer p.busy()()
	var err error
	done := p.led(t, func() { _, err = recvUntil(context.Background(), p.a) })
	p.a.Abort("enough")
	<-done
	if err == nil {
		t.Error("Recv of an aborted association returned no error")
	}
}

func TestLeadEndsWithTheTransport(t *testing.T) {
	p := newLeaderPair(t)
	stop := p.busy()
	var err error
	done := p.led(t, func() { _, err = recvUntil(context.Background(), p.a) })
	p.ta.Close()
	<-done
	stop()
	if err == nil {
		t.Error("Recv of a closed transport returned no error")
	}
}

// A goroutine that parked just before another one led does not take its tick away, by
// which it learns of the end of its context.
func TestLeadKeepsItsTick(t *testing.T) {
	p := newLeaderPair(t)
	tr := p.ta
	for !tr.leader.taken.CompareAndSwap(false, true) {
		runtime.Gosched()
	}
	kept := false
	for range 100 { // the tick may come between
		tr.suppression.set(tr, true)
		tr.suppression.set(tr, false) // as resumeReaders does that looked before
		kept = kept || tr.suppression.on.Load()
	}
	if !kept {
		t.Error("the readers serve beside a lead")
	}
	tr.leader.taken.Store(false)
	// A reader that has just found a datagram may suppress once more, until it parks; a socket
	// may refuse to wake it until the next tick.
	for end := time.Now().Add(10 * time.Second); tr.suppression.on.Load(); tr.resumeReaders() {
		if time.Now().After(end) {
			t.Fatal("the readers do not serve after it")
		}
		runtime.Gosched()
	}
}

func TestLeadEndsWhenNothingComes(t *testing.T) {
	p := newLeaderPair(t)
	var got string
	done := p.led(t, func() { got, _ = recvUntil(context.Background(), p.a) })
	for p.ta.leader.taken.Load() || p.ta.suppression.on.Load() {
		runtime.Gosched()
	}
	if err := p.b.Send(t.Context(), []byte("this"), SendOptions{}); err != nil {
		t.Fatal(err)
	}
	<-done
	if got != "this" {
		t.Errorf("received %q", got)
	}
}

// TestLeadServesOthers has one goroutine lead while others of the transport
// wait.
func TestLeadServesOthers(t *testing.T) {
	p := newLeaderPair(t)
	defer p.busy()()
	const streams, each = 4, 200
	var wg sync.WaitGroup
	wg.Add(streams)
	lead := p.led(t, func() { recvUntil(t.Context(), p.a) })
	for sid := range uint16(streams) {
		go func() {
			defer wg.Done()
			buf := make([]byte, 64)
			for i := range each {
				n, _, err := p.a.RecvStream(t.Context(), sid+1, buf)
				if err != nil || n != max(i%64, 1) {
					t.Errorf("stream %d, message %d: %d bytes, %v", sid+1, i, n, err)
					return
				}
			}
		}()
	}
	msg := make([]byte, 64)
	for i := range each {
		for sid := range uint16(streams) {
			if err := p.b.Send(t.Context(), msg[:max(i%64, 1)], SendOptions{Stream: sid + 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	wg.Wait()
	p.b.Send(t.Context(), []byte("over"), SendOptions{})
	<-lead
}

// TestSenderLeads fills the send buffer again and again, and the receiver is as
// fast as it can.
func TestSenderLeads(t *testing.T) {
	p := newLeaderPair(t)
	const messages = 2000
	done := make(chan int)
	go func() {
		n := 0
		for buf := make([]byte, 1<<16); n < messages; {
			_, info, err := p.b.Recv(t.Context(), buf)
			if err != nil {
				t.Error(err)
				break
			}
			if info.EOR {
				n++
			}
		}
		done <- n
	}()
	msg := make([]byte, 1<<16)
	for range messages {
		if err := p.a.Send(t.Context(), msg, SendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := <-done; n != messages {
		t.Errorf("%d messages of %d arrived", n, messages)
	}
}

// TestWaitsThatAreLongDoNotLead has a message every few milliseconds: a lead
// would only be in vain.
func TestWaitsThatAreLongDoNotLead(t *testing.T) {
	p := newLeaderPair(t)
	p.ta.leader.shortWaits.Store(leaderAfter)
	buf := make([]byte, 64)
	// On a busy machine a message may come before a goroutine waits for it.
	for range 200 {
		timer := time.AfterFunc(20*time.Millisecond, func() { p.b.Send(context.Background(), []byte("x"), SendOptions{}) })
		if _, _, err := p.a.Recv(t.Context(), buf); err != nil {
			t.Fatal(err)
		}
		timer.Stop()
		if p.ta.leader.shortWaits.Load() < leaderAfter {
			return
		}
	}
	t.Error("long waits count as short ones")
}

// At GOMAXPROCS=1 no goroutine leads: there is no cross-thread wake-up to save.
func TestNobodyLeadsWithOneProcessor(t *testing.T) {
	p := newLeaderPair(t)
	n := runtime.GOMAXPROCS(1)
	poll.RefreshProcs()
	defer func() {
		runtime.GOMAXPROCS(n)
		poll.RefreshProcs()
	}()
	wantNoLead(t, p)
}

// Goroutines that lead keep processors from the others, who are left one.
func TestLeadersLeaveAProcessor(t *testing.T) {
	p := newLeaderPair(t)
	n := int32(poll.Procs()) - 1
	leaders.Add(n)
	defer leaders.Add(-n)
	wantNoLead(t, p)
}

func wantNoLead(t *testing.T, p *leaderPair) {
	t.Helper()
	var led atomic.Bool
	buf := make([]byte, 64)
	for range 200 {
		p.ta.leader.shortWaits.Store(leaderAfter)
		time.AfterFunc(time.Millisecond, func() {
			led.Store(led.Load() || p.ta.leader.leads())
			p.b.Send(context.Background(), []byte("x"), SendOptions{})
		})
		if _, _, err := p.a.Recv(t.Context(), buf); err != nil {
			t.Fatal(err)
		}
	}
	if led.Load() {
		t.Error("a goroutine led")
	}
}

func TestWaiter(t *testing.T) {
	p := newLeaderPair(t)
	var mu sync.Mutex
	got := 0
	w := p.ta.NewWaiter()
	e, err := p.ta.Listen(0, &Config{OnPiece: func(*Association, *Piece) {
		mu.Lock()
		defer mu.Unlock()
		got++
		w.Wake() // before its number is read
	}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.tb.Listen(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Connect(t.Context(), e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if err := a.Send(t.Context(), []byte("x"), SendOptions{}); err != nil {
			t.Fatal(err)
		}
		for {
			mu.Lock()
			n := got
			mu.Unlock()
			if n > i {
				break
			}
			if !w.Wait(nil) {
				t.Fatal("Wait without a channel to stop it was stopped")
			}
		}
	}
	// A Wait that finds both takes either the Wake or the end.
	stop := make(chan struct{})
	close(stop)
	woken := 0
	for range 100 {
		if w.Wait(stop) {
			woken++
		}
	}
	if woken > 1 {
		t.Errorf("Wait was woken %d times, where at most one Wake was left", woken)
	}
}
