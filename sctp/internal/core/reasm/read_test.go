package reasm

import (
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
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
	wantNothing(t, r, AnyStream) // before the end of the receive batch
	wantChecked(t, r, 3)
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
	wantNothing(t, r, AnyStream) // before the end of the receive batch
	wantChecked(t, r, 2)
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
	wantChecked(t, r, 1)
	wantNothing(t, r, AnyStream)
	mustAdd(t, r, chunk(3, 0, 1, 0, "BE", strings.Repeat("b", 2000)))
	wantChecked(t, r, 1)
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
	mustAdd(t, r, chunk(1, 2, 0, 0, "BE", strings.Repeat("b", 1000)), chunk(2, 2, 1, 0, "BE", strings.Repeat("c", 2000)),
		chunk(3, 1, 0, 0, "BEU", strings.Repeat("d", 2000)), chunk(4, 1, 0, 0, "B", "a"))
	wantChecked(t, r, 4)
	r.Read(1, make([]byte, 2000), new(RecvInfo))
	wantRead(t, r, 1, "a", false)
	r.current = r.stream(1).current // as if read(AnyStream) had begun it
	if m := r.pick(AnyStream); m == nil || m.st.sid != 2 {
		t.Fatal("others wait for a message that has no room")
	}
	// Within the stream the order is kept, and so there has to be room.
	mustAdd(t, r, chunk(9, 1, 0, 0, "BEU", strings.Repeat("d", 2000)))
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

// Partial delivery does not begin behind a gap: while the user waited for the rest of that
// message it would leave what fills the gap in a small buffer, until there is no room for the
// chunk that the rest has to wait for.
func TestPartialDeliveryBeginsAtCumulativeTSN(t *testing.T) {
	for name, cfg := range map[string]Config{
		"buffer is full":         {Limit: 4000, partial: 1 << 20},
		"message is long":        {Limit: 4000, partial: 2000},
		"I-DATA buffer is full":  {Limit: 4000, partial: 1 << 20, Interleaved: true},
		"I-DATA message is long": {Limit: 4000, partial: 2000, Interleaved: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecv(cfg)
			m := newTSNMap(1)
			const begun = 20 // the TSN that begins the unfinished message
			add := func(d *wire.Data) {
				t.Helper()
				if !r.Room(m, seq.TSN(d.TSN), len(d.Payload)) {
					t.Fatalf("no room for TSN %d with %d bytes used of %d", d.TSN, r.window.used(), r.window.limit)
				}
				mustAdd(t, r, d)
				m.Observe(seq.TSN(d.TSN))
				wantChecked(t, r, m.CumTSN())
			}
			add(chunk(begun, 0, begun, 0, "BU", strings.Repeat("d", 3000)))
			wantNothing(t, r, AnyStream)
			for n := uint32(1); n < begun; n++ {
				add(chunk(n, 0, n, 0, "BEU", strings.Repeat("a", 1300)))
				var info RecvInfo
				if k, ok := r.Read(AnyStream, make([]byte, 2000), &info); !ok || k != 1300 || info.TSN != seq.TSN(n) {
					t.Fatalf("read %d bytes %+v %v, want TSN %d", k, info, ok, n)
				}
			}
			if k, ok := r.Read(AnyStream, make([]byte, 3001), new(RecvInfo)); !ok || k != 3000 {
				t.Fatalf("read %d bytes %v, want 3000 of the unfinished message", k, ok)
			}
			add(chunk(begun+1, 0, begun, 1, "EU", "e"))
			wantRead(t, r, AnyStream, "e", true)
			if err := r.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Of many unfinished I-DATA messages each is looked at in its turn, however many there are behind
// a gap.
func TestPartialDeliveryOfMany(t *testing.T) {
	r := newRecv(Config{Limit: 1 << 20, partial: 4, Interleaved: true})
	const n = 3 * maxPartsLooked
	for i := range uint32(n) {
		mustAdd(t, r, chunk(100+i, 0, 1+i, 0, "BU", "behind"))
	}
	mustAdd(t, r, chunk(1, 1, 0, 0, "B", "first"))
	for range n/maxPartsLooked + 1 {
		wantChecked(t, r, 1)
	}
	wantRead(t, r, AnyStream, "first", false)
	wantNothing(t, r, AnyStream)
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}

// wantChecked ends a receive batch.
func wantChecked(t *testing.T, r *Queue, cum seq.TSN) {
	t.Helper()
	if res := r.CheckUpTo(cum); res != taken {
		t.Fatalf("CheckUpTo(%d) = %v", cum, res)
	}
}
