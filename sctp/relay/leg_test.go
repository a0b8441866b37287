package relay

import (
	"errors"
	"testing"

	"github.com/weftstack/weft/sctp"
)

// Acks that a leg cannot send take 2 MiB at most.
func TestControlFramesAreBounded(t *testing.T) {
	var l leg
	bytes := 0
	for range maxControl + 10 {
		p := newPacket(40)
		if !l.enqueue(&l.control, p) {
			t.Fatal("the leg is down")
		}
	}
	for i := range l.control.frames.Len() {
		bytes += (*l.control.frames.At(i)).cost()
	}
	if l.queued != maxControl || bytes > 2<<20 {
		t.Errorf("%d control frames of %d bytes wait, want %d", l.queued, bytes, maxControl)
	}
	l.close()
	if l.queued != 0 || l.enqueue(&l.control, newPacket(40)) {
		t.Error("a leg that is down takes frames")
	}
}

// Queues of a leg take turns, and control frames go first.
func TestQueuesTakeTurns(t *testing.T) {
	var l leg
	var q [3]queue
	for i := range q {
		for range 3 - i {
			p := newPacket(1)
			p.hash = uint32(i)
			l.enqueue(&q[i], p)
		}
	}
	p := newPacket(1)
	p.hash = 9
	l.enqueue(&l.control, p)
	var got []uint32
	for l.waiting() {
		p := l.take()
		got = append(got, p.hash)
		p.release()
	}
	want := []uint32{9, 0, 1, 2, 0, 1, 0}
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("order %v, want %v", got, want)
		}
	}
	if !l.idle(&q[0]) || l.queued != 0 {
		t.Error("frames are left")
	}
}

// A queue can be taken out wherever it is in the list, and the others stay in their order.
func TestWithdraw(t *testing.T) {
	for out := range 3 {
		var l leg
		var q [3]queue
		for i := range q {
			for range 2 {
				p := newPacket(1)
				p.hash = uint32(i)
				l.enqueue(&q[i], p)
			}
		}
		l.withdraw(&q[out])
		l.withdraw(&q[out]) // has no frames
		if l.queued != 4 || !l.idle(&q[out]) {
			t.Errorf("%d frames, want 4", l.queued)
		}
		p := newPacket(1)
		p.hash = uint32(out)
		l.enqueue(&q[out], p)
		var got []int
		for l.waiting() {
			p := l.take()
			got = append(got, int(p.hash))
			p.release()
		}
		a, b := (out+1)%3, (out+2)%3
		want := []int{min(a, b), max(a, b), out, min(a, b), max(a, b)}
		for i := range want {
			if len(got) != len(want) || got[i] != want[i] {
				t.Fatalf("without %d: order %v, want %v", out, got, want)
			}
		}
	}
}

// A queue keeps its frames when it is moved to another leg, unless that is down.
func TestHandOver(t *testing.T) {
	var from, to leg
	var q, other queue
	for i := range 3 {
		p := newPacket(1)
		p.hash = uint32(i)
		from.enqueue(&q, p)
	}
	to.enqueue(&other, newPacket(1))
	from.handOver(&q, &to)
	if from.queued != 0 || from.waiting() || to.queued != 4 {
		t.Errorf("%d and %d frames, want 0 and 4", from.queued, to.queued)
	}
	to.take().release()
	for i := range 3 {
		if p := to.take(); p == nil || int(p.hash) != i {
			t.Errorf("frame %d is not in its place", i)
		}
	}
	from.enqueue(&q, newPacket(1))
	to.close()
	from.handOver(&q, &to)
	if q.frames.Len() != 0 || q.listed || from.queued != 0 || to.queued != 0 {
		t.Error("a leg that is down has frames")
	}
}

// A node has direct paths to MaxDirect processes, and refuses legs of others.
func TestDirectLimit(t *testing.T) {
	n := &Node{directs: make(map[Address]*directPath)}
	n.cfg.Direct = func(Address) (sctp.Addr, bool) { return sctp.Addr{}, false }
	for i := range uint16(MaxDirect) {
		if n.direct(Address{Site: 1, Node: 1, Process: i + 1}) == nil {
			t.Fatalf("path %d refused", i)
		}
	}
	if n.direct(Address{Site: 1, Node: 2, Process: 1}) != nil {
		t.Error("one more path accepted")
	}
	if _, err := n.attachDirect(&conn{peer: Address{Site: 1, Node: 2, Process: 1}, direct: true}); !errors.Is(err, ErrLimit) {
		t.Errorf("one more leg: %v, want ErrLimit", err)
	}
	if _, err := n.attachDirect(&conn{peer: Address{Site: 1, Node: 1, Process: 7}, direct: true}); err != nil {
		t.Errorf("a leg of a path that exists: %v", err)
	}
}

// An account that is full counts nothing, in itself or above.
func TestAccount(t *testing.T) {
	top := account{limit: 100}
	low := account{limit: 1000, above: &top}
	if full := low.take(60); full != nil {
		t.Fatal("60 of 100 refused")
	}
	if full := low.take(50); full != &top || low.held.Load() != 60 || top.held.Load() != 60 {
		t.Errorf("50 more: %v, %d and %d held", full, low.held.Load(), top.held.Load())
	}
	low.give(60)
	if low.held.Load() != 0 || top.held.Load() != 0 {
		t.Error("given back, but held")
	}
}
