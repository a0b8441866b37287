package tx

import (
	"errors"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
)

// Fragment numbers of a message in pieces go on beyond 2^32.
func TestPiecesFSNWraps(t *testing.T) {
	h := newTxTest(t, withIData)
	o := new(OpenMessage)
	h.pushMsg(Message{SID: 1, Body: []byte("begun"), Of: o})
	if c := h.packet(0); len(c) != 1 || !c[0].Begin || c[0].End || c[0].FSN != 0 {
		t.Fatalf("the first piece: %+v", c)
	}
	o.fsn = 1<<32 - 1 // as if so many had been sent
	h.pushMsg(Message{SID: 1, Body: []byte("goes on"), Of: o})
	h.pushMsg(Message{SID: 1, Body: []byte("still"), Of: o})
	h.pushMsg(Message{SID: 1, Body: []byte("ends"), Of: o, Last: true})
	h.push(1, 8)
	c := h.packet(0)
	if len(c) != 4 {
		t.Fatalf("%d chunks, want 4", len(c))
	}
	for i, want := range []uint32{1<<32 - 1, 0, 1} {
		if c[i].FSN != want || c[i].Begin || c[i].MID != 0 || c[i].End != (i == 2) {
			t.Errorf("chunk %d: %+v, want FSN %d", i, c[i], want)
		}
	}
	if !c[3].Begin || !c[3].End || c[3].MID != 1 {
		t.Errorf("the next message: %+v", c[3])
	}
}

// The bound of ordered messages on the way is none of pieces.
func TestManyPieces(t *testing.T) {
	h := newTxTest(t)
	o := new(OpenMessage)
	for range maxOrderedInFlight + 10 {
		h.pushMsg(Message{Body: []byte("x"), Of: o})
	}
	h.pushMsg(Message{Body: []byte("x"), Of: o, Last: true})
	for h.q.Pending() {
		h.packet(0)
	}
	if n := h.q.Unsent(); n != 0 {
		t.Fatalf("%d pieces wait", n)
	}
	h.push(0, 10)
	if h.q.Pending() {
		t.Error("the next message does not wait for an SSN")
	}
	h.sack(h.sb.NextTSN() - 1)
	if c := h.packet(0); len(c) != 1 || c[0].SSN != 1 {
		t.Errorf("the next message: %+v", c)
	}
}

// A piece that is refused changes nothing.
func TestPieceRefused(t *testing.T) {
	h := newTxTest(t, withLimit(10_000))
	h.push(0, 9_900)
	o := new(OpenMessage)
	for _, x := range []struct {
		m    Message
		want error
	}{
		{Message{SID: 1, Of: o}, ErrNoUserData},
		{Message{SID: 1, Body: []byte("x"), Of: o}, ErrWouldBlock},
		{Message{SID: 1, Body: []byte("x"), Of: o, LimitRtx: true}, ErrPolicy},
		{Message{SID: 1, Body: []byte("x"), Of: o, Droppable: true}, ErrPolicy},
		{Message{SID: 1, Body: []byte("x"), Of: o, Lifetime: second}, ErrPolicy},
		{Message{SID: 1, Body: []byte("x"), Of: &OpenMessage{begun: true}}, ErrRestart},
	} {
		if err := h.q.Push(h.now, &x.m); !errors.Is(err, x.want) {
			t.Errorf("%+v: %v, want %v", x.m, err, x.want)
		}
	}
	if o.Begun() || h.q.opened != 0 || h.q.Unfinished() {
		t.Errorf("a refused piece left traces: %+v", o)
	}
	h.pushMsg(Message{SID: 1, Body: []byte("whole"), Of: o, Last: true, Force: true})
	if h.q.opened != 0 {
		t.Error("a message of one piece is open")
	}
}

// A message that waits for its next piece gets it though the buffer is full, once
// what was sent of it is acknowledged; others do not. Who was refused is told.
func TestStarvedPiece(t *testing.T) {
	h := newTxTest(t, withLimit(10_000))
	o := new(OpenMessage)
	h.pushMsg(Message{SID: 1, Body: make([]byte, 100), Of: o})
	c := h.packet(0)
	h.push(2, 9_000)
	next := Message{SID: 1, Body: make([]byte, 5_000), Of: o}
	if err := h.q.Push(h.now, &next); err != ErrWouldBlock {
		t.Fatalf("a piece while one is outstanding: %v", err)
	}
	if h.q.Pending() || len(h.packet(0)) != 0 {
		t.Error("another message is sent before the end of an open one")
	}
	h.sack(seq.TSN(c[0].TSN))
	if !h.q.Unblocked() {
		t.Error("the writer is not told")
	}
	if err := h.q.Push(h.now, &Message{SID: 2, Body: make([]byte, 5_000)}); err != ErrWouldBlock {
		t.Errorf("a message on another stream: %v", err)
	}
	if err := h.q.Push(h.now, &next); err != nil {
		t.Fatalf("the piece: %v", err)
	}
	if err := h.q.Push(h.now, &next); err != ErrWouldBlock {
		t.Errorf("one more piece: %v", err)
	}
	for range 4 {
		for _, d := range h.packet(0) {
			if d.SID != 1 || d.End {
				t.Errorf("%+v", d)
			}
		}
	}
}

// Messages in pieces on streams that the peer does not have are given up like
// others, and their streams are free when there are more.
func TestPiecesOnStreamsThatDoNotExist(t *testing.T) {
	h := newTxTest(t)
	o, b := new(OpenMessage), new(countingOwner)
	h.pushMsg(Message{SID: 5, Body: []byte("early"), Of: o, Owner: b})
	h.q.SetStreams(5)
	if r := h.q.TakeReleases(nil); len(r) != 1 || r[0].Err != ErrStream || r[0].Owner != Owner(b) {
		t.Errorf("released: %v", r)
	}
	if err := h.q.Push(h.now, &Message{SID: 5, Body: []byte("x"), Of: o}); err != ErrStream {
		t.Errorf("the next piece: %v", err)
	}
	h.q.SetStreams(6)
	h.push(5, 10)
	if c := h.packet(0); len(c) != 1 || !c[0].Begin || !c[0].End {
		t.Errorf("sent %+v", c)
	}
}

type countingOwner struct{ n int }

func (o *countingOwner) Released(error) { o.n++ }
