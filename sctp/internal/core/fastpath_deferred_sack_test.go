package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// deferredHarness is two ends that are between a request and its answer: A has sent something,
// and what acknowledges it is about to come, with data.
type deferredHarness struct {
	*pump
	t *testing.T
}

func newDeferredHarness(t *testing.T, cfg *Config) *deferredHarness {
	l := &deferredHarness{pump: newPump(t, cfg), t: t}
	for range 20 { // as they go on
		l.send(l.a)
		l.move(l.a, l.z)
		l.send(l.z)
		l.now += 20_000
		l.move(l.z, l.a)
	}
	l.send(l.a)
	l.move(l.a, l.z)
	l.send(l.z)
	return l
}

func (l *deferredHarness) send(a *Assoc) {
	l.t.Helper()
	if err := a.Send(l.now, &tx.Message{SID: 1, Header: []byte("short")}); err != nil {
		l.t.Fatal(err)
	}
}

// answer has Z's answer arrive at A, which may defer its SACK.
func (l *deferredHarness) answer(edit func(pkt []byte)) {
	l.t.Helper()
	out, tx, ok := l.z.PollTransmit(l.now, l.buf[:0], 1)
	if !ok {
		l.t.Fatal("no answer")
	}
	if edit != nil {
		edit(out)
		wire.SetChecksum(out)
	}
	p := Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, ECN: tx.ECN, Data: out, DeferSack: true}
	if d := l.a.HandlePacket(l.now, &p); d != DropNone {
		l.t.Fatal("the answer was dropped:", d)
	}
	l.a.EndBatch(l.now)
}

// wantDeferred checks that a SACK was deferred, while the data in its packet was not.
func (l *deferredHarness) wantDeferred(want bool) {
	l.t.Helper()
	if got := l.a.HasDeferredSack(); got != want {
		l.t.Errorf("the SACK was deferred: %v, want %v", got, want)
	}
	if n := l.a.tx.sb.Outstanding(); n == 0 == want {
		l.t.Errorf("%d chunks outstanding", n)
	}
	if !l.a.Readable() {
		l.t.Error("the answer cannot be read")
	}
}

func TestSackIsDeferred(t *testing.T) {
	l := newDeferredHarness(t, nil)
	rtt := 30 * time.Microsecond
	l.now += clock.Time(rtt)
	sacks := l.a.stats.SacksReceived
	l.answer(nil)
	l.wantDeferred(true)
	// What answers the answer leaves before the SACK is taken in.
	l.send(l.a)
	l.now += clock.Time(time.Millisecond)
	if !l.move(l.a, l.z) {
		t.Error("the next request did not leave")
	}
	if !l.a.HasDeferredSack() {
		t.Error("the SACK was taken in before the next request left")
	}
	before := clock.Time(private(l.a.tx.sb, "paths.0.rack.rtt").Int())
	l.a.ProcessDeferredSack()
	if n := l.a.tx.sb.Outstanding(); l.a.HasDeferredSack() || n != 1 {
		t.Errorf("%d chunks are outstanding, want that of the next request", n)
	}
	if got := clock.Time(private(l.a.tx.sb, "paths.0.rack.rtt").Int()); got != clock.Time(rtt) || before == got {
		t.Errorf("round-trip time %v, want that until the SACK came, %v", time.Duration(got), rtt)
	}
	if got := l.a.stats.SacksReceived - sacks; got != 1 {
		t.Errorf("%d SACKs were counted", got)
	}
	l.a.ProcessDeferredSack() // of which there is none
	l.run()
}

// Whatever may need the SACK takes it in first.
func TestDeferredSackIsProcessed(t *testing.T) {
	for name, f := range map[string]func(l *deferredHarness){
		"next packet": func(l *deferredHarness) { l.send(l.z); l.move(l.z, l.a) },
		"timer":       func(l *deferredHarness) { l.now = l.a.NextTimeout(); l.a.HandleTimeout(l.now) },
		"no room in the window": func(l *deferredHarness) {
			l.a.paths[0].single = true // one packet in flight, until it is acknowledged
			l.send(l.a)
			l.move(l.a, l.z)
		},
		"shutdown": func(l *deferredHarness) { l.a.Shutdown(l.now) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newDeferredHarness(t, nil)
			l.answer(nil)
			l.wantDeferred(true)
			timeouts, again := l.a.stats.Timeouts, l.a.tx.sb.Stats()
			f(l)
			if l.a.HasDeferredSack() {
				t.Error("it still waits")
			}
			if now := l.a.tx.sb.Stats(); l.a.stats.Timeouts != timeouts || now.Probes != again.Probes {
				t.Error("what it acknowledges was taken for lost")
			}
		})
	}
}

// A SACK is processed at once if anything may wait for it.
func TestSackIsNotDeferred(t *testing.T) {
	at := wire.HeaderLen + wire.ChunkHeaderLen // of the SACK's value
	for name, f := range map[string]func(l *deferredHarness){
		"two outstanding": func(l *deferredHarness) { l.send(l.a); l.move(l.a, l.z); l.answer(nil) },
		"more to send":    func(l *deferredHarness) { l.send(l.a); l.answer(nil) },
		"dry":             func(l *deferredHarness) { l.a.cfg.TellDry = true; l.answer(nil) },
		"closed window": func(l *deferredHarness) {
			l.answer(func(pkt []byte) { copy(pkt[at+4:], []byte{0, 0, 0, 0}) })
		},
		"shutdown": func(l *deferredHarness) { l.a.Shutdown(l.now); l.answer(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newDeferredHarness(t, nil)
			f(l)
			if l.a.HasDeferredSack() {
				t.Error("it was deferred")
			}
		})
	}
	t.Run("alone", func(t *testing.T) {
		l := newDeferredHarness(t, &Config{SackEvery: 1})
		l.z.PollTransmit(l.now, l.buf[:0], 1) // lost
		l.z.rx.sack.Force()
		l.answer(nil)
		if l.a.HasDeferredSack() || l.a.tx.sb.Outstanding() > 0 {
			t.Error("it was deferred")
		}
	})
	// It would acknowledge what was sent in the meantime.
	t.Run("of what was not sent", func(t *testing.T) {
		l := newDeferredHarness(t, nil)
		l.answer(func(pkt []byte) { pkt[at+3]++ })
		if l.a.State() != Closed {
			t.Error("the association goes on")
		}
	})
	t.Run("no call processes it", func(t *testing.T) {
		l := newDeferredHarness(t, nil)
		l.move(l.z, l.a)
		l.wantDeferred(false)
	})
}

// What was acknowledged before the association ended was delivered.
func TestAbortProcessesDeferredSACK(t *testing.T) {
	l := newDeferredHarness(t, nil)
	l.answer(nil)
	l.wantDeferred(true)
	l.a.Abort(l.now, nil)
	if n := l.a.tx.sb.Outstanding(); l.a.HasDeferredSack() || n > 0 {
		t.Errorf("%d chunks were outstanding", n)
	}
}

// Timers of what left while a SACK was deferred count from when it left.
func TestDeferredSackLeavesTimers(t *testing.T) {
	l := newDeferredHarness(t, nil)
	l.answer(nil)
	l.wantDeferred(true)
	l.send(l.a)
	l.now += clock.Time(time.Second) / 2
	l.move(l.a, l.z)
	l.a.ProcessDeferredSack()
	if got, want := l.a.timers.Path[0][timer.T3], l.now+l.a.paths[0].rto.Value(); got != want {
		t.Errorf("T3 expires at %v, want %v", got, want)
	}
	if got := clock.Time(private(l.a.tx.sb, "paths.0.rack.probeBase").Int()); got != l.now {
		t.Errorf("the probe timer counts from %v, want %v", got, l.now)
	}
}

// A message that an empty buffer would take is not refused, nor another one dropped for it.
func TestDeferredSackMakesRoom(t *testing.T) {
	l := newDeferredHarness(t, &Config{SendBuffer: 20_000})
	l.answer(nil)
	l.wantDeferred(true)
	if err := l.a.Send(l.now, &tx.Message{SID: 1, Body: make([]byte, 20_000)}); err != nil {
		t.Error(err)
	}
}
