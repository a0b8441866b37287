package reasm

import (
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
)

func TestReadWholeMessages(t *testing.T) {
	r := newRecv(Config{})
	mustAdd(t, r, chunk(1, 1, 0, 0, "B", "he"), chunk(3, 2, 1, 0, "BE", "two"), chunk(5, 3, 9, 0, "BEU", "un"))
	if got := r.AppendReadable(nil); !slices.Equal(got, []uint16{3}) {
		t.Errorf("readable streams %v, want [3]", got)
	}
	if sid, ok := r.Readable(); !ok || sid != 3 {
		t.Errorf("readable = %d %v, want 3 true", sid, ok)
	}
	mustAdd(t, r, chunk(2, 1, 0, 0, "E", "llo"), chunk(4, 2, 0, 0, "BE", "one"))
	if got := r.AppendReadable(nil); !slices.Equal(got, []uint16{3, 1, 2}) {
		t.Errorf("readable streams %v, want [3 1 2]", got)
	}
	if !r.ReadableStream(2) || r.ReadableStream(0) || r.ReadableStream(77) {
		t.Error("readableStream(2, 0, 77), want true, false, false")
	}
	wantRead(t, r, 2, "one", true) // a stream of one's choice
	wantRead(t, r, AnyStream, "un", true)
	wantRead(t, r, AnyStream, "hello", true)
	wantRead(t, r, AnyStream, "two", true)
	wantNothing(t, r, AnyStream)
	wantNothing(t, r, 99)
	if r.window.held != 0 {
		t.Errorf("%d bytes held, want 0", r.window.held)
	}
}

func TestReadStaysInMessage(t *testing.T) {
	r := newRecv(Config{})
	mustAdd(t, r, chunk(1, 1, 0, 0, "BE", "abcdef"), chunk(2, 2, 0, 0, "BE", "x"), chunk(3, 1, 0, 0, "BEU", "y"))
	dst := make([]byte, 4)
	var info RecvInfo
	n, ok := r.Read(AnyStream, dst, &info)
	if n != 4 || info.EOR || !ok || info.SID != 1 || info.TSN != 1 || info.PPID != 7 {
		t.Fatalf("read = %d %+v %v", n, info, ok)
	}
	if _, ok := r.Read(AnyStream, nil, &info); !ok || info.EOR || info.Offset != 4 {
		t.Errorf("empty read = %+v %v, want the rest announced", info, ok)
	}
	if size, info, ok := r.Peek(AnyStream); size != 2 || info.Offset != 4 || !ok {
		t.Errorf("peek = %d %+v %v, want 2 bytes at 4", size, info, ok)
	}
	wantRead(t, r, 2, "x", true) // another stream is not held up
	wantRead(t, r, 1, "ef", true)
	wantRead(t, r, AnyStream, "y", true)
}

func TestPartialDelivery(t *testing.T) {
	r := newRecv(Config{partial: 10})
	mustAdd(t, r, chunk(1, 0, 0, 0, "B", "12345"))
	wantNothing(t, r, AnyStream)
	mustAdd(t, r, chunk(3, 0, 0, 0, "", "abc"), chunk(7, 1, 0, 0, "BE", "other"), chunk(2, 0, 0, 0, "", "67890"))
	wantRead(t, r, AnyStream, "other", true)
	wantRead(t, r, AnyStream, "1234567890abc", false)
	mustAdd(t, r, chunk(6, 1, 1, 0, "BE", "more"))
	wantNothing(t, r, AnyStream) // DATA: the message in hand first
	wantRead(t, r, 1, "more", true)
	mustAdd(t, r, chunk(4, 0, 0, 0, "", "!"))
	wantRead(t, r, AnyStream, "!", false) // once begun, as it comes
	mustAdd(t, r, chunk(5, 0, 0, 0, "E", "."))
	wantRead(t, r, AnyStream, ".", true)
}

func TestPartialDeliveryInterleaved(t *testing.T) {
	// RFC 8260: reading one message does not hold up those of other streams.
	r := newRecv(Config{Interleaved: true, partial: 1})
	mustAdd(t, r, chunk(1, 0, 0, 0, "B", "a"), chunk(2, 1, 0, 0, "B", "x"))
	wantRead(t, r, AnyStream, "a", false)
	wantRead(t, r, AnyStream, "x", false)
	mustAdd(t, r, chunk(3, 0, 0, 1, "", "b"), chunk(4, 2, 0, 0, "BE", "!"))
	wantRead(t, r, AnyStream, "b", false)
	wantRead(t, r, AnyStream, "!", true)
	wantNothing(t, r, AnyStream)
}

func TestPartialDeliveryUnderPressure(t *testing.T) {
	// RFC 9260, Section 6.9: when the buffer runs out.
	r := newRecv(Config{Limit: 4000, partial: 1 << 20})
	mustAdd(t, r, chunk(1, 0, 0, 0, "B", strings.Repeat("a", 1000)))
	wantNothing(t, r, AnyStream)
	mustAdd(t, r, chunk(3, 0, 1, 0, "BE", strings.Repeat("b", 2000)))
	if !r.window.pressed() {
		t.Fatal("not pressed")
	}
	dst := make([]byte, 2000)
	var info RecvInfo
	if n, ok := r.Read(AnyStream, dst, &info); n != 1000 || info.EOR || !ok {
		t.Errorf("read = %d %+v %v, want 1000 bytes in part", n, info, ok)
	}
}

func TestReadGoesOnUnderPressure(t *testing.T) {
	// The message in hand cannot go on before others have made room.
	r := newRecv(Config{Limit: 4000, partial: 1 << 20})
	m := newTSNMap(1)
	mustAdd(t, r, chunk(1, 2, 0, 0, "BE", strings.Repeat("b", 1000)), chunk(2, 2, 1, 0, "BE", strings.Repeat("c", 2000)), chunk(4, 1, 0, 0, "B", "a"))
	wantRead(t, r, 1, "a", false)
	r.current = r.stream(1).current // as if read(AnyStream) had begun it
	if m := r.pick(AnyStream); m == nil || m.st.sid != 2 {
		t.Fatal("others wait for a message that has no room")
	}
	// Within the stream the order is kept, and so there has to be room.
	mustAdd(t, r, chunk(3, 1, 0, 0, "BEU", strings.Repeat("d", 2000)))
	r.Read(2, make([]byte, 1000), new(RecvInfo))
	r.Read(2, make([]byte, 2000), new(RecvInfo))
	for n := seq.TSN(1); n < 5; n++ {
		m.Observe(n)
	}
	r.window.held, r.window.credit = r.window.limit+r.window.limit/4, 0
	wantNothing(t, r, AnyStream)
	if !r.Room(m, 5, 100) || r.Room(m, 6, 100) {
		t.Error("room for the next TSN, for another = false or true, want true, false")
	}
	r.window.held += 10000
	if r.Room(m, 5, 100) {
		t.Error("room without limit")
	}
}

func TestPiecesComeInOrder(t *testing.T) {
	r := newRecv(Config{Pieces: true})
	mustAdd(t, r, chunk(1, 0, 0, 0, "B", "a"))
	wantPieces(t, r, "<0:a")
	mustAdd(t, r, chunk(3, 0, 0, 0, "E", "c"), chunk(4, 0, 1, 0, "B", "d"), chunk(6, 1, 0, 0, "BU", "u"), chunk(7, 1, 0, 0, "U", "v"))
	wantPieces(t, r, "<1:u", "1:v")
	mustAdd(t, r, chunk(2, 0, 0, 0, "", "b"))
	wantPieces(t, r, "0:b", "0:c>", "<0:d")
	mustAdd(t, r, chunk(8, 1, 0, 0, "EU", "w"), chunk(5, 0, 1, 0, "E", "e"))
	wantPieces(t, r, "1:w>", "0:e>")
}

func TestPausePieces(t *testing.T) {
	r := newRecv(Config{Pieces: true})
	r.PausePieces(1, true)
	r.PausePieces(99, true)
	mustAdd(t, r, chunk(1, 1, 0, 0, "BE", "a"), chunk(2, 2, 0, 0, "BE", "b"), chunk(3, 1, 1, 0, "BE", "c"))
	wantPieces(t, r, "<2:b>")
	if got := r.AppendReadable(nil); len(got) != 0 {
		t.Errorf("readable %v while paused", got)
	}
	wantRead(t, r, 1, "a", true)
	r.PausePieces(1, false)
	wantPieces(t, r, "<1:c>")
}

// The rest of a message that the user has read a part of has room even if the buffer is full
// of what is complete behind it: the user can take nothing else (RFC 9260, Section 6.2).
func TestAwaitedChunkHasRoom(t *testing.T) {
	r := newRecv(Config{Limit: 4000, partial: 1 << 20})
	m := newTSNMap(1)
	const begun = 20 // the TSN that begins the unfinished message
	mustAdd(t, r, chunk(begun, 0, 0, 0, "BU", strings.Repeat("d", 2900)))
	if n, ok := r.Read(AnyStream, make([]byte, 3000), new(RecvInfo)); !ok || n != 2900 {
		t.Fatalf("read %d %v, want 2900 bytes of the unfinished message", n, ok)
	}
	for n := uint32(1); n < begun; n++ {
		if r.window.used() < r.window.bound() {
			mustAdd(t, r, chunk(n, 0, 0, 0, "BEU", strings.Repeat("a", 1300)))
		}
	}
	for n := seq.TSN(1); n <= begun; n++ {
		m.Observe(n)
	}
	wantNothing(t, r, AnyStream)
	if used, bound := r.window.used(), r.window.bound(); used < bound {
		t.Fatalf("%d bytes are used, which is less than %d", used, bound)
	}
	if !r.Room(m, begun+1, 1000) || r.Room(m, begun+2, 1000) {
		t.Error("room for the rest, for another = false or true, want true, false")
	}
	mustAdd(t, r, chunk(begun+1, 0, 0, 0, "U", strings.Repeat("e", 1000)))
	m.Observe(begun + 1)
	if r.Room(m, begun+2, 1000) {
		t.Error("room for a second one, before the first was read")
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}
