package core

import (
	"fmt"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// asked is an association that answers requests by segmented sends: what is to be
// acknowledged to its peer waits for their end.
type asked struct {
	*pump
	t    *testing.T
	unit int
}

func newAsked(t *testing.T, slowPath bool) *asked {
	cfg := &Config{NoPacing: true, MTU: 1452, NoRACK: true} // batches do not wait for more
	cfg.slowPath = slowPath
	u := &asked{pump: newPump(t, cfg), t: t}
	for range 4 { // the congestion window opens
		if err := u.a.Send(u.now, &tx.Message{Body: make([]byte, 300_000), Force: true}); err != nil {
			t.Fatal(err)
		}
		u.run()
	}
	u.unit = u.a.MaxPayload() - wire.SackHeaderLen
	u.ask(false) // the first is acknowledged at once
	for u.move(u.a, u.z) {
	}
	return u
}

// ask has a request arrive.
func (u *asked) ask(immediate bool) {
	u.t.Helper()
	if err := u.z.Send(u.now, &tx.Message{Body: []byte("what"), Immediate: immediate}); err != nil {
		u.t.Fatal(err)
	}
	if !u.move(u.z, u.a) {
		u.t.Fatal("the request did not leave")
	}
}

// answer sends n messages by one segmented send; the last one is shorter by less bytes.
func (u *asked) answer(n, less int) {
	u.t.Helper()
	m := &tx.Message{Unordered: true, Headers: []byte{}, Body: make([]byte, n*u.unit-less), SegmentSize: u.unit, Force: true}
	if err := u.a.Send(u.now, m); err != nil {
		u.t.Fatal(err)
	}
}

// batch polls for a batch, which arrives, and returns how many packets it has and which
// of them, from 0, has a SACK: -1 if none.
func (u *asked) batch(segs int) (n, sack int) {
	u.t.Helper()
	b := u.pool.Get()
	defer b.Release()
	out, tx, ok := u.a.PollTransmit(u.now, b.B[:0], segs)
	if !ok {
		return 0, -1
	}
	sack = -1
	for at := 0; at < len(out); at += tx.SegSize {
		p := Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, ECN: tx.ECN, Data: out[at:min(at+tx.SegSize, len(out))], Buf: b}
		if hasChunk(p.Data, wire.ChunkSack) {
			if sack >= 0 {
				u.t.Error("two SACKs in a batch")
			}
			sack = n
		}
		u.z.HandlePacket(u.now, &p)
		n++
	}
	u.z.EndBatch(u.now)
	return n, sack
}

func TestSackWaitsForTheEndOfASegmentedSend(t *testing.T) {
	for _, tt := range []struct {
		name       string
		before     func(u *asked) // instead of one request
		msgs, less int
		unit       int        // if not 0, what a message has, of which several go in a packet
		after      clock.Time // the request
		behind     int        // if not 0, the size of a message behind the segmented send
		batches    int
		at, sack   int // in which packet of which batch the SACK is
	}{
		{name: "short end", msgs: 20, less: 100, batches: 1, sack: 19},
		{name: "end that leaves just the room", msgs: 20, less: wire.SackHeaderLen, batches: 1, sack: 19},
		{name: "just the room, more behind", msgs: 20, less: wire.SackHeaderLen, behind: 5000, batches: 2, sack: 19},
		{name: "no room, more behind", msgs: 20, less: wire.SackHeaderLen - 4, behind: 5000, batches: 2, at: 1},
		{name: "end that leaves no room", msgs: 20, less: wire.SackHeaderLen - 4, batches: 2, at: 1},
		{name: "long end", msgs: 20, batches: 2, at: 1},
		{name: "long end, one message behind", msgs: 20, behind: 500, batches: 1, sack: 20},
		{name: "long end, larger packets behind", msgs: 20, behind: 5000, batches: 2, at: 1},
		{name: "two messages", msgs: 2, less: 100, batches: 1, sack: 1},
		{name: "one message", msgs: 1, less: 100, batches: 1, sack: 0},
		{name: "small messages", unit: 600, msgs: 21, less: 100, batches: 1, sack: 10},
		{name: "within the bundling delay", msgs: 20, less: 100, after: sackBundlingDelay - 1, batches: 1, sack: 19},
		{name: "after the bundling delay", msgs: 20, less: 100, after: sackBundlingDelay, batches: 2},
		{name: "two requests", before: func(u *asked) { u.ask(false); u.ask(false) }, msgs: 20, less: 100, batches: 2},
		{name: "asked for", before: func(u *asked) { u.ask(true) }, msgs: 20, less: 100, batches: 2},
		{name: "ECN", before: func(u *asked) { u.ask(false); u.a.ecn.echo = true; u.a.slow |= slowECNE }, msgs: 20, less: 100, batches: 2},
		{name: "after a cut", before: func(u *asked) { u.ask(false); u.a.ecn.cwr = true; u.a.slow |= slowCWR }, msgs: 20, less: 100, batches: 2},
		{name: "nothing to acknowledge", before: func(*asked) {}, msgs: 20, less: 100, batches: 1, sack: -1},
	} {
		for _, slowPath := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/slowPath=%v", tt.name, slowPath), func(t *testing.T) {
				u := newAsked(t, slowPath)
				if tt.before != nil {
					tt.before(u)
				} else {
					u.ask(false)
				}
				if tt.unit > 0 {
					u.unit = tt.unit
				}
				u.now += tt.after
				u.answer(tt.msgs, tt.less)
				if tt.behind > 0 {
					if err := u.a.Send(u.now, &tx.Message{Body: make([]byte, tt.behind)}); err != nil {
						t.Fatal(err)
					}
				}
				batches := 0
				for n, sack := u.batch(64); n > 0; n, sack = u.batch(64) {
					want := -1
					if batches == tt.at {
						want = tt.sack
					}
					if sack != want {
						t.Errorf("batch %d of %d packets: the SACK is in %d, want %d", batches, n, sack, want)
					}
					batches++
				}
				if batches != tt.batches {
					t.Errorf("%d batches, want %d", batches, tt.batches)
				}
				u.run()
				if u.z.tx.sb.Outstanding() != 0 {
					t.Error("the request was not acknowledged")
				}
			})
		}
	}
}

// Batches go on while a SACK waits: until it has waited for long enough, or another packet
// came.
func TestSackWaitsOverManyBatches(t *testing.T) {
	for name, f := range map[string]struct {
		do   func(u *asked)
		want int
	}{
		"nothing happens": {func(*asked) {}, -1},
		"time passes":     {func(u *asked) { u.now += sackBundlingDelay }, 0},
		"a request comes": {func(u *asked) { u.ask(false) }, 0},
	} {
		for _, slowPath := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/slowPath=%v", name, slowPath), func(t *testing.T) {
				u := newAsked(t, slowPath)
				u.ask(false)
				u.answer(50, 100)
				for range 3 {
					if n, sack := u.batch(10); n != 10 || sack != -1 {
						t.Fatalf("%d packets, SACK in %d", n, sack)
					}
				}
				f.do(u)
				if n, sack := u.batch(10); sack != f.want {
					t.Errorf("then %d packets, SACK in %d, want %d", n, sack, f.want)
				}
				u.run()
			})
		}
	}
}

// Without a segmented send nothing changes: the SACK goes in front of the data.
func TestSackDoesNotWaitForOneMessage(t *testing.T) {
	u := newAsked(t, false)
	u.ask(false)
	if err := u.a.Send(u.now, &tx.Message{Body: make([]byte, 30_000)}); err != nil {
		t.Fatal(err)
	}
	if n, sack := u.batch(64); n < 2 || sack != 0 {
		t.Errorf("%d packets, SACK in %d", n, sack)
	}
}

// A SACK does not wait where the packet that it would go with has other things in it, or
// may not come soon.
func TestSackWaitsForDataAlone(t *testing.T) {
	u := newAsked(t, false)
	u.ask(false)
	if !u.a.sackCanWait(u.now) {
		t.Fatal("the SACK may not wait")
	}
	for name, f := range map[string]func(a *Assoc){
		"shutdown":       func(a *Assoc) { a.state = ShutdownReceived },
		"paths":          func(a *Assoc) { a.paths = append(a.paths, path{}) },
		"authentication": func(a *Assoc) { a.auth.On = true },
		"routes":         func(a *Assoc) { private(a.tx.q, "routed").SetInt(1) },
		"loss":           func(a *Assoc) { private(a.tx.sb, "marked").Addr().Interface().(*seq.Set).Add(a.tx.sb.NextTSN()) },
		"probe":          func(a *Assoc) { private(a.tx.sb, "permit").SetBool(true) },
	} {
		a, q, sb := *u.a, *u.a.tx.q, *u.a.tx.sb
		a.tx.q, a.tx.sb = &q, &sb
		a.tx.share(&a.cfg, &a.paths, &a.timers)
		f(&a)
		a.slow = a.findSlowReasons()
		if a.sackCanWait(u.now) {
			t.Errorf("%s: the SACK waits", name)
		}
	}
}
