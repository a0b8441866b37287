package reasm

import (
	"slices"
	"testing"
)

// Unordered messages of one chunk need no record of a message, and come in the order
// of arrival.
func TestUnfragmentedPieces(t *testing.T) {
	for _, idata := range []bool{false, true} {
		r := newRecv(Config{Pieces: true, Interleaved: idata})
		mustAdd(t, r, chunk(1, 1, 0, 0, "UBE", "a"), chunk(2, 2, 0, 0, "UBE", "b"), chunk(4, 1, 1, 0, "UBE", "c"))
		if r.msgs != 0 {
			t.Errorf("idata %v: %d records of messages, want none", idata, r.msgs)
		}
		if sid, ok := r.Readable(); !ok || sid != 1 {
			t.Errorf("idata %v: readable = %d, %v, want stream 1", idata, sid, ok)
		}
		var first, second Piece
		r.PopPiece(&first)
		r.PopPiece(&second)
		if first.Message == second.Message || first.TSN != 1 || second.TSN != 2 || first.PPID != 7 || !first.Unordered || first.Offset != 0 {
			t.Errorf("idata %v: pieces %+v, %+v", idata, first, second)
		}
		first.Release()
		second.Release()
		if got, want := popAll(r), []string{"<1:c>"}; !slices.Equal(got, want) {
			t.Errorf("idata %v: got %q, want %q", idata, got, want)
		}
		if _, ok := r.Readable(); ok || r.frags != 0 || r.window.held != 0 {
			t.Errorf("idata %v: readable %v, %d fragments, %d bytes held", idata, ok, r.frags, r.window.held)
		}
	}
}

// Pieces of streams and unordered messages take turns: a run of either does not keep
// the others waiting.
func TestUnfragmentedPiecesTakeTurns(t *testing.T) {
	r := newRecv(Config{Pieces: true})
	mustAdd(t, r, chunk(1, 0, 0, 0, "BE", "x"), chunk(2, 0, 1, 0, "BE", "y"), chunk(3, 0, 2, 0, "BE", "z"),
		chunk(4, 1, 0, 0, "UBE", "a"), chunk(5, 1, 0, 0, "UBE", "b"), chunk(6, 1, 0, 0, "UBE", "c"), chunk(7, 1, 0, 0, "UBE", "d"))
	if got, want := popAll(r), []string{"<0:x>", "<1:a>", "<0:y>", "<1:b>", "<0:z>", "<1:c>", "<1:d>"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What came first of a stream goes first, whatever it is: who reuses a stream once all
// on it is acknowledged finds it so, as sessions of RFC 5043 do.
func TestUnfragmentedPiecesGoFirst(t *testing.T) {
	for _, idata := range []bool{false, true} {
		r := newRecv(Config{Pieces: true, Interleaved: idata})
		mustAdd(t, r, chunk(1, 1, 0, 0, "UBE", "a"), chunk(2, 1, 1, 0, "UBE", "b"), chunk(3, 2, 0, 0, "UBE", "x"),
			chunk(4, 1, 2, 0, "UB", "c"), chunk(5, 1, 2, 1, "UE", "d"), chunk(6, 1, 3, 0, "UBE", "e"), chunk(7, 1, 0, 0, "BE", "o"))
		var got []byte
		for p := (Piece{}); r.PopPiece(&p); p.Release() {
			if p.SID == 1 {
				got = append(got, p.Data...)
			}
		}
		if string(got) != "abcdeo" {
			t.Errorf("idata %v: got %q, want abcdeo", idata, got)
		}
	}
}

// A stream that is paused holds back what had arrived before, and lets go of it in
// the same order, with what came meanwhile.
func TestUnfragmentedPiecesPaused(t *testing.T) {
	for _, idata := range []bool{false, true} {
		r := newRecv(Config{Pieces: true, Interleaved: idata})
		mustAdd(t, r, chunk(1, 1, 0, 0, "UBE", "a"), chunk(2, 2, 0, 0, "UBE", "b"), chunk(3, 1, 1, 0, "UBE", "c"))
		r.PausePieces(1, true)
		mustAdd(t, r, chunk(4, 1, 2, 0, "UBE", "d"))
		if got, want := popAll(r), []string{"<2:b>"}; !slices.Equal(got, want) {
			t.Errorf("idata %v: paused: got %q, want %q", idata, got, want)
		}
		r.PausePieces(1, false)
		mustAdd(t, r, chunk(5, 1, 3, 0, "UBE", "e"))
		if got, want := popAll(r), []string{"<1:a>", "<1:c>", "<1:d>", "<1:e>"}; !slices.Equal(got, want) {
			t.Errorf("idata %v: afterwards: got %q, want %q", idata, got, want)
		}
	}
}

// Who reads rather than pops gets them, too.
func TestUnfragmentedPiecesRead(t *testing.T) {
	r := newRecv(Config{Pieces: true})
	mustAdd(t, r, chunk(1, 1, 0, 0, "UBE", "a"), chunk(2, 2, 0, 0, "UBE", "b"))
	if got := r.AppendReadable(nil); !slices.Equal(got, []uint16{1, 2}) {
		t.Errorf("readable streams %v, want 1 and 2", got)
	}
	var info RecvInfo
	dst := make([]byte, 10)
	if n, ok := r.Read(2, dst, &info); !ok || string(dst[:n]) != "b" || info.TSN != 2 {
		t.Errorf("read = %d, %v, %+v", n, ok, info)
	}
	if got, want := popAll(r), []string{"<1:a>"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Memory is freed with the queue.
func TestUnfragmentedPiecesClosed(t *testing.T) {
	r := newRecv(Config{Pieces: true})
	mustAdd(t, r, chunk(1, 1, 0, 0, "UBE", "a"), chunk(2, 2, 0, 0, "UBE", "b"))
	if r.Close(); r.frags != 0 || r.window.held != 0 {
		t.Errorf("%d fragments, %d bytes held after close", r.frags, r.window.held)
	}
}
