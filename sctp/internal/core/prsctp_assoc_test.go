package core

import (
	"bytes"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// RFC 3758 from end to end: messages expire on a path that loses much; what
// arrives is whole and in order, the rest is told to its owners, and nothing
// waits for it.
func TestPartialReliabilityOverLossyPath(t *testing.T) {
	for seed := range 80 {
		cfg := lossyConfig(seed)
		cfg.RecvBuffer = 0
		p := newPair(quiet{t}, uint64(seed), cfg)
		p.net.loss, p.net.reorder, p.net.dup = 250, 100, 50
		p.connect()
		var sent [4][]*body
		for range 120 {
			sid := p.rng.IntN(4)
			m := &tx.Message{SID: uint16(sid), Unordered: sid == 3}
			if p.rng.IntN(2) == 0 {
				m.Lifetime = clock.Time(1+p.rng.IntN(150)) * clock.Time(time.Millisecond)
			} else {
				m.LimitRtx, m.MaxRtx = true, uint32(p.rng.IntN(2))
			}
			sent[sid] = append(sent[sid], p.a.sendMsg(m, 1+p.rng.IntN(5000)))
			p.advance(time.Duration(p.rng.IntN(20)) * time.Millisecond)
		}
		p.drive()
		p.advance(10 * time.Second)
		p.z.read()
		lost := 0
		for sid, list := range sent {
			in := ledgerOf(p.z.in, uint16(sid))
			got := append(in.ordered, in.unordered...)
			k := 0
			for _, m := range list {
				if m.n != 1 || m.err != nil && m.err != tx.ErrAbandoned {
					t.Fatalf("seed %d: released %d times: %v", seed, m.n, m.err)
				}
				found := false
				if sid == 3 {
					for _, g := range got {
						found = found || bytes.Equal(g, m.data)
					}
				} else if k < len(got) && bytes.Equal(got[k], m.data) {
					found = true
					k++
				}
				if m.err != nil {
					lost++
				} else if !found {
					t.Fatalf("seed %d: a message of stream %d was acknowledged and did not arrive", seed, sid)
				}
			}
			if sid != 3 && k != len(got) {
				t.Fatalf("seed %d: stream %d delivered something that was not sent, or out of order", seed, sid)
			}
		}
		if lost == 0 {
			t.Errorf("seed %d: no message was abandoned", seed)
		}
		told := 0
		for _, e := range p.a.events {
			if e.Kind == EventSendFailed {
				told++
			}
		}
		if told != lost {
			t.Errorf("seed %d: %d messages abandoned, %d events", seed, lost, told)
		}
		// All that may be left is what swallows remnants of the last message skipped.
		if held, _, frags, msgs := p.z.assoc.rx.reasm.Held(); frags > 0 || msgs > 1 || msgs == 0 && held > 0 {
			t.Errorf("seed %d: %d bytes still held in %d messages", seed, held, msgs)
		}
		// The association is as good as new.
		p.net = faults{delay: p.net.delay}
		clear(p.a.out)
		clear(p.z.in)
		clear(p.a.released)
		p.a.send(0, 20_000)
		p.a.send(3, 20_000)
		p.drive()
		p.wantOneWay(p.a, p.z)
	}
}

// Without the peer's support messages are reliable (RFC 3758, Section 3.3.1).
func TestPartialReliabilityNotNegotiated(t *testing.T) {
	p := newPair(t, 91, &Config{}, &Config{NoPartialReliability: true})
	p.net.loss = 200
	p.connect()
	for range 50 {
		p.a.sendMsg(&tx.Message{LimitRtx: true}, 3000)
	}
	p.drive()
	p.wantDelivered()
}

// A FORWARD-TSN that is lost is repeated after a timeout, which doubles and counts as an error: the
// SACK for it ends that, although it measures nothing and acknowledges no data.
func TestAcknowledgedForwardTSNEndsBackoff(t *testing.T) {
	p := newPair(t, 1, &Config{NoRACK: true, HBInterval: -1})
	p.connect()
	p.a.sendMsg(&tx.Message{}, 100)
	p.drive()
	p.advance(time.Second)
	path := &p.a.assoc.paths[0]
	before := path.rto.Value()
	p.net.loss = 1000
	p.a.sendMsg(&tx.Message{LimitRtx: true}, 100)
	p.advance(10 * time.Second) // the message is abandoned, and its FORWARD-TSN lost again and again
	if got := path.rto.Value(); got < 4*before || p.a.assoc.errors == 0 {
		t.Fatalf("after losses the timeout is %v, was %v; %d errors", got, before, p.a.assoc.errors)
	}
	p.net.loss = 0
	p.advance(30 * time.Second)
	if got := path.rto.Value(); got >= 2*before || p.a.assoc.tx.sb.ForwardOutstanding() || p.a.assoc.errors != 0 || path.errors != 0 {
		t.Errorf("the timeout is %v, was %v before the losses; FORWARD-TSN outstanding %v; %d errors, %d of the path",
			got, before, p.a.assoc.tx.sb.ForwardOutstanding(), p.a.assoc.errors, path.errors)
	}
}
