package core

import (
	"bytes"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// The peer restarts: what was begun cannot go on, and cannot be taken for a part of
// what is begun after.
func TestPiecesAndRestart(t *testing.T) {
	p := newPair(t, 77)
	p.connect()
	p.drive()
	o, other := new(tx.OpenMessage), new(tx.OpenMessage)
	send := func(of *tx.OpenMessage, text string, last bool) error {
		return p.z.assoc.Send(p.now, &tx.Message{SID: 1, Body: []byte(text), Of: of, Last: last})
	}
	if err := send(o, "lost", false); err != nil {
		t.Fatal(err)
	}
	p.drive()
	p.a.dial(p.z) // from scratch
	if !p.driveUntil(time.Minute, func() bool { return p.a.assoc.State() == Established }) {
		t.Fatal("not established again")
	}
	p.drive()
	if err := send(other, "new", false); err != nil {
		t.Fatal(err)
	}
	if err := send(o, "old", true); err != tx.ErrRestart {
		t.Errorf("a piece of a message of before the restart: %v", err)
	}
	if err := send(other, " and whole", true); err != nil {
		t.Fatal(err)
	}
	p.drive()
	if got := ledgerOf(p.a.in, 1).ordered; len(got) != 1 || !bytes.Equal(got[0], []byte("new and whole")) {
		t.Errorf("received %q", got)
	}
}

// Where messages are not to be fragmented, pieces are refused.
func TestPiecesWithoutFragmentation(t *testing.T) {
	p := newPair(t, 78, &Config{NoFragmentation: true})
	p.connect()
	o := new(tx.OpenMessage)
	m := tx.Message{Body: []byte("a piece"), Of: o}
	if err := p.a.assoc.Send(p.now, &m); err != tx.ErrTooLong {
		t.Errorf("a piece: %v", err)
	}
	if err := p.a.assoc.CanOpen(0); err != tx.ErrTooLong {
		t.Errorf("to open: %v", err)
	}
	if m.Last = true; p.a.assoc.Send(p.now, &m) != nil {
		t.Error("a whole message is refused")
	}
}
