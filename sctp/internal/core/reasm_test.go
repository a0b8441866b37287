package core

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// chunk reads "tsn sid num BEU payload" for DATA; an I-DATA chunk has "num.fsn".
func chunk(tsn uint32, sid uint16, num, fsn uint32, bits, payload string) *wire.Data {
	return &wire.Data{
		TSN: tsn, SID: sid, SSN: uint16(num), MID: num, FSN: fsn, PPID: 7, Payload: []byte(payload),
		Begin: strings.Contains(bits, "B"), End: strings.Contains(bits, "E"), Unordered: strings.Contains(bits, "U"),
	}
}

func mustAdd(t *testing.T, r *reassembly, ds ...*wire.Data) {
	t.Helper()
	for _, d := range ds {
		if res := r.add(d, nil); res != reasmOK {
			t.Fatalf("add(%+v) = %v", d, res)
		}
	}
}

// popAll pops every piece and describes them.
func popAll(r *reassembly) []string {
	var out []string
	for p, ok := r.popPiece(); ok; p, ok = r.popPiece() {
		out = append(out, describe(p))
		p.release()
	}
	return out
}

func wantPieces(t *testing.T, r *reassembly, want ...string) {
	t.Helper()
	if got := popAll(r); !slices.Equal(got, want) {
		t.Errorf("pieces %q, want %q", got, want)
	}
}

func wantRead(t *testing.T, r *reassembly, sid int, want string, eor bool) {
	t.Helper()
	dst := make([]byte, 100)
	n, info, ok := r.read(sid, dst)
	if !ok || string(dst[:n]) != want || info.EOR != eor {
		t.Errorf("read = %q EOR %v ok %v, want %q EOR %v", dst[:n], info.EOR, ok, want, eor)
	}
}

func wantNothing(t *testing.T, r *reassembly, sid int) {
	t.Helper()
	if n, info, ok := r.read(sid, make([]byte, 10)); ok {
		t.Errorf("read = %d bytes %+v, want nothing", n, info)
	}
}

func TestReassemblyViolations(t *testing.T) {
	ok := reasmOK
	for _, tt := range []struct {
		name   string
		idata  bool
		chunks []*wire.Data
		cum    TSN // of the settle at the end
		want   reasmResult
	}{
		{"begin inside", false, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 0, 1, 0, "B", "b")}, 2, reasmBeginInside},
		{"begin inside, seen late", false, []*wire.Data{chunk(2, 0, 1, 0, "BE", "b"), chunk(1, 0, 0, 0, "B", "a")}, 2, reasmBeginInside},
		{"begin inside, seen late, of an older message", false, []*wire.Data{chunk(2, 0, 1, 0, "BE", "b"), chunk(1, 0, 0, 0, "B", "a"), chunk(5, 1, 0, 0, "BU", "c")}, 2, reasmBeginInside},
		{"no begin", false, []*wire.Data{chunk(1, 0, 0, 0, "E", "a")}, 1, reasmNoBegin},
		{"no begin after a complete one", false, []*wire.Data{chunk(1, 0, 0, 0, "BE", "a"), chunk(2, 0, 0, 0, "", "b")}, 2, reasmNoBegin},
		{"other SSN", false, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 0, 1, 0, "E", "b")}, 2, reasmMixed},
		{"other stream", false, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 1, 0, 0, "E", "b")}, 2, reasmMixed},
		{"other U bit", false, []*wire.Data{chunk(2, 0, 0, 0, "EU", "b"), chunk(1, 0, 0, 0, "B", "a")}, 2, reasmMixed},
		{"SSN twice", false, []*wire.Data{chunk(1, 0, 0, 0, "BE", "a"), chunk(2, 0, 0, 0, "BE", "b")}, 2, reasmRepeated},
		{"SSN twice while the first is unfinished", false, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(5, 0, 0, 0, "BE", "b")}, 1, reasmRepeated},
		{"SSN twice while waiting", false, []*wire.Data{chunk(3, 0, 2, 0, "BE", "a"), chunk(5, 0, 2, 0, "BE", "b")}, 0, reasmRepeated},
		{"stream", false, []*wire.Data{chunk(1, 4, 0, 0, "BE", "a")}, 1, reasmBadStream},
		{"unordered SSN is ignored", false, []*wire.Data{chunk(1, 0, 9, 0, "BU", "a"), chunk(2, 0, 8, 0, "EU", "b")}, 2, ok},
		{"MID twice", true, []*wire.Data{chunk(1, 0, 0, 0, "BE", "a"), chunk(2, 0, 0, 0, "BE", "b")}, 2, reasmRepeated},
		{"MID twice while waiting", true, []*wire.Data{chunk(1, 0, 1, 0, "BE", "a"), chunk(2, 0, 1, 0, "BE", "b")}, 2, reasmBadFSN},
		{"FSN twice", true, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 0, 0, 2, "", "b"), chunk(3, 0, 0, 2, "", "c")}, 3, reasmBadFSN},
		{"FSN of the past", true, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 0, 0, 1, "", "b"), chunk(3, 0, 0, 1, "", "c")}, 3, reasmBadFSN},
		{"FSN 0 without begin", true, []*wire.Data{chunk(1, 0, 0, 0, "", "a")}, 1, reasmBadFSN},
		{"two begins", true, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 0, 0, 0, "B", "b")}, 2, reasmBadFSN},
		{"two ends", true, []*wire.Data{chunk(1, 0, 0, 3, "E", "a"), chunk(2, 0, 0, 4, "E", "b")}, 2, reasmBadFSN},
		{"behind the end", true, []*wire.Data{chunk(1, 0, 0, 3, "E", "a"), chunk(2, 0, 0, 4, "", "b")}, 2, reasmBadFSN},
		{"end before the latest one", true, []*wire.Data{chunk(1, 0, 0, 5, "", "a"), chunk(2, 0, 0, 3, "", "b"), chunk(3, 0, 0, 4, "E", "c")}, 3, reasmBadFSN},
		{"end before a later one", true, []*wire.Data{chunk(1, 0, 0, 3, "", "a"), chunk(2, 0, 0, 2, "E", "b")}, 2, reasmBadFSN},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRecv(reasmConfig{interleaved: tt.idata})
			got := ok
			for _, d := range tt.chunks {
				if got != ok {
					t.Fatalf("%v before the last chunk", got)
				}
				got = r.add(d, nil)
			}
			if got == ok {
				got = r.settle(tt.cum)
			}
			if got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if v := tt.want > reasmBadStream; got.violation() != v {
				t.Errorf("violation = %v, want %v", got.violation(), v)
			}
			r.close()
			if r.frags != 0 || r.window.held != 0 {
				t.Errorf("%d fragments, %d bytes left after close", r.frags, r.window.held)
			}
		})
	}
}

func TestReassemblyCaps(t *testing.T) {
	r := newRecv(reasmConfig{limit: 1 << 30})
	d := chunk(2, 0, 0, 0, "", "x")
	for range maxHeldFragments {
		if res := r.add(d, nil); res != reasmOK {
			t.Fatalf("add(%d) = %v", d.TSN, res)
		}
		d.TSN += 2
	}
	m := newTSNMap(1)
	if r.room(m, TSN(d.TSN), 1) {
		t.Error("room for one more than maxHeldFragments")
	}
	if res := r.add(d, nil); res != reasmFull {
		t.Errorf("one more than maxHeldFragments: %v, want full", res)
	}
	r.close()
	if r.frags != 0 || r.mem.nfrags != maxFreeFragments || r.mem.nblocks[0] != maxFreeBytes/64 {
		t.Errorf("%d held; free lists of %d and %d, want %d and %d", r.frags, r.mem.nfrags, r.mem.nblocks[0], maxFreeFragments, maxFreeBytes/64)
	}
}

func TestReassemblyMessageCap(t *testing.T) {
	// Messages that were begun and then skipped leave a notice behind each.
	r := newRecv(reasmConfig{interleaved: true, pieces: true, limit: 1 << 30})
	for i := range uint32(maxHeldMessages) {
		mustAdd(t, r, chunk(i+1, 0, i, 0, "BU", "x"))
	}
	popped := popAll(r)
	if len(popped) != maxHeldMessages || r.frags != 0 {
		t.Fatalf("%d popped, %d left", len(popped), r.frags)
	}
	r.skip(0, true, maxHeldMessages)
	r.forward(maxHeldMessages)
	if res := r.add(chunk(maxHeldMessages+1, 1, 0, 0, "BE", "x"), nil); res != reasmFull {
		t.Errorf("one more than maxHeldMessages: %v, want full", res)
	}
	if got := len(popAll(r)); got != maxHeldMessages {
		t.Errorf("%d notices, want %d", got, maxHeldMessages)
	}
	if r.msgs != 0 || r.nfreeMsgs != maxFreeRecords {
		t.Errorf("%d messages, %d free; want 0, %d", r.msgs, r.nfreeMsgs, maxFreeRecords)
	}
}

func TestReadWholeMessages(t *testing.T) {
	r := newRecv(reasmConfig{})
	mustAdd(t, r, chunk(1, 1, 0, 0, "B", "he"), chunk(3, 2, 1, 0, "BE", "two"), chunk(5, 3, 9, 0, "BEU", "un"))
	if got := r.appendReadable(nil); !slices.Equal(got, []uint16{3}) {
		t.Errorf("readable streams %v, want [3]", got)
	}
	if sid, ok := r.readable(); !ok || sid != 3 {
		t.Errorf("readable = %d %v, want 3 true", sid, ok)
	}
	mustAdd(t, r, chunk(2, 1, 0, 0, "E", "llo"), chunk(4, 2, 0, 0, "BE", "one"))
	if got := r.appendReadable(nil); !slices.Equal(got, []uint16{3, 1, 2}) {
		t.Errorf("readable streams %v, want [3 1 2]", got)
	}
	if !r.readableStream(2) || r.readableStream(0) || r.readableStream(77) {
		t.Error("readableStream(2, 0, 77), want true, false, false")
	}
	wantRead(t, r, 2, "one", true) // a stream of one's choice
	wantRead(t, r, anyStream, "un", true)
	wantRead(t, r, anyStream, "hello", true)
	wantRead(t, r, anyStream, "two", true)
	wantNothing(t, r, anyStream)
	wantNothing(t, r, 99)
	if r.window.held != 0 {
		t.Errorf("%d bytes held, want 0", r.window.held)
	}
}

func TestReadStaysInMessage(t *testing.T) {
	r := newRecv(reasmConfig{})
	mustAdd(t, r, chunk(1, 1, 0, 0, "BE", "abcdef"), chunk(2, 2, 0, 0, "BE", "x"), chunk(3, 1, 0, 0, "BEU", "y"))
	dst := make([]byte, 4)
	n, info, ok := r.read(anyStream, dst)
	if n != 4 || info.EOR || !ok || info.SID != 1 || info.TSN != 1 || info.PPID != 7 {
		t.Fatalf("read = %d %+v %v", n, info, ok)
	}
	if _, info, ok := r.read(anyStream, nil); !ok || info.EOR || info.Offset != 4 {
		t.Errorf("empty read = %+v %v, want the rest announced", info, ok)
	}
	if size, info, ok := r.peek(anyStream); size != 2 || info.Offset != 4 || !ok {
		t.Errorf("peek = %d %+v %v, want 2 bytes at 4", size, info, ok)
	}
	wantRead(t, r, 2, "x", true) // another stream is not held up
	wantRead(t, r, 1, "ef", true)
	wantRead(t, r, anyStream, "y", true)
}

func TestPartialDelivery(t *testing.T) {
	r := newRecv(reasmConfig{partial: 10})
	mustAdd(t, r, chunk(1, 0, 0, 0, "B", "12345"))
	wantNothing(t, r, anyStream)
	mustAdd(t, r, chunk(3, 0, 0, 0, "", "abc"), chunk(7, 1, 0, 0, "BE", "other"), chunk(2, 0, 0, 0, "", "67890"))
	wantRead(t, r, anyStream, "other", true)
	wantRead(t, r, anyStream, "1234567890abc", false)
	mustAdd(t, r, chunk(6, 1, 1, 0, "BE", "more"))
	wantNothing(t, r, anyStream) // DATA: the message in hand first
	wantRead(t, r, 1, "more", true)
	mustAdd(t, r, chunk(4, 0, 0, 0, "", "!"))
	wantRead(t, r, anyStream, "!", false) // once begun, as it comes
	mustAdd(t, r, chunk(5, 0, 0, 0, "E", "."))
	wantRead(t, r, anyStream, ".", true)
}

func TestPartialDeliveryInterleaved(t *testing.T) {
	// RFC 8260: reading one message does not hold up those of other streams.
	r := newRecv(reasmConfig{interleaved: true, partial: 1})
	mustAdd(t, r, chunk(1, 0, 0, 0, "B", "a"), chunk(2, 1, 0, 0, "B", "x"))
	wantRead(t, r, anyStream, "a", false)
	wantRead(t, r, anyStream, "x", false)
	mustAdd(t, r, chunk(3, 0, 0, 1, "", "b"), chunk(4, 2, 0, 0, "BE", "!"))
	wantRead(t, r, anyStream, "b", false)
	wantRead(t, r, anyStream, "!", true)
	wantNothing(t, r, anyStream)
}

func TestPartialDeliveryUnderPressure(t *testing.T) {
	// RFC 9260, Section 6.9: when the buffer runs out.
	r := newRecv(reasmConfig{limit: 4000, partial: 1 << 20})
	mustAdd(t, r, chunk(1, 0, 0, 0, "B", strings.Repeat("a", 1000)))
	wantNothing(t, r, anyStream)
	mustAdd(t, r, chunk(3, 0, 1, 0, "BE", strings.Repeat("b", 2000)))
	if !r.window.pressed() {
		t.Fatal("not pressed")
	}
	dst := make([]byte, 2000)
	if n, info, ok := r.read(anyStream, dst); n != 1000 || info.EOR || !ok {
		t.Errorf("read = %d %+v %v, want 1000 bytes in part", n, info, ok)
	}
}

func TestReadGoesOnUnderPressure(t *testing.T) {
	// The message in hand cannot go on before others have made room.
	r := newRecv(reasmConfig{limit: 4000, partial: 1 << 20})
	m := newTSNMap(1)
	mustAdd(t, r, chunk(1, 2, 0, 0, "BE", strings.Repeat("b", 1000)), chunk(2, 2, 1, 0, "BE", strings.Repeat("c", 2000)), chunk(4, 1, 0, 0, "B", "a"))
	wantRead(t, r, 1, "a", false)
	r.current = r.stream(1).current // as if read(anyStream) had begun it
	if m := r.pick(anyStream); m == nil || m.st.sid != 2 {
		t.Fatal("others wait for a message that has no room")
	}
	// Within the stream the order is kept, and so there has to be room.
	mustAdd(t, r, chunk(3, 1, 0, 0, "BEU", strings.Repeat("d", 2000)))
	r.read(2, make([]byte, 1000))
	r.read(2, make([]byte, 2000))
	for n := TSN(1); n < 5; n++ {
		m.observe(n)
	}
	r.window.held, r.window.credit = r.window.held+6000, 0
	wantNothing(t, r, anyStream)
	if !r.room(m, 5, 100) || r.room(m, 6, 100) {
		t.Error("room for the next TSN, for another = false or true, want true, false")
	}
	r.window.held += 10000
	if r.room(m, 5, 100) {
		t.Error("room without limit")
	}
}

func TestPiecesComeInOrder(t *testing.T) {
	r := newRecv(reasmConfig{pieces: true})
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
	r := newRecv(reasmConfig{pieces: true})
	r.pausePieces(1, true)
	r.pausePieces(99, true)
	mustAdd(t, r, chunk(1, 1, 0, 0, "BE", "a"), chunk(2, 2, 0, 0, "BE", "b"), chunk(3, 1, 1, 0, "BE", "c"))
	wantPieces(t, r, "<2:b>")
	if got := r.appendReadable(nil); len(got) != 0 {
		t.Errorf("readable %v while paused", got)
	}
	wantRead(t, r, 1, "a", true)
	r.pausePieces(1, false)
	wantPieces(t, r, "<1:c>")
}

func TestForwardAbortsWhatWasBegun(t *testing.T) {
	for _, idata := range []bool{false, true} {
		r := newRecv(reasmConfig{interleaved: idata, pieces: true})
		mustAdd(t, r, chunk(1, 0, 0, 0, "B", "a"), chunk(4, 0, 1, 0, "BE", "b"), chunk(5, 1, 0, 0, "BU", "u"))
		wantPieces(t, r, "<0:a", "<1:u")
		r.skip(0, false, 0)
		if idata {
			r.skip(1, true, 0)
		}
		r.forward(6)
		wantPieces(t, r, "0:>!", "1:>!", "<0:b>") // streams take turns
		if r.msgs > 1 {                           // one may wait to swallow remnants
			t.Errorf("idata %v: %d messages left", idata, r.msgs)
		}
	}
}

func TestForwardRemnantsAreSwallowed(t *testing.T) {
	// A peer that gives up a message in the middle and still sends its end.
	r := newRecv(reasmConfig{})
	mustAdd(t, r, chunk(1, 0, 0, 0, "B", "a"), chunk(4, 0, 0, 0, "E", "d"), chunk(5, 0, 1, 0, "BE", "next"))
	r.skip(0, false, 0)
	r.forward(2)
	if res := r.add(chunk(3, 0, 0, 0, "", "c"), nil); res != reasmStale {
		t.Errorf("remnant: %v, want stale", res)
	}
	if res := r.settle(5); res != reasmOK {
		t.Errorf("settle = %v", res)
	}
	wantRead(t, r, anyStream, "next", true)
	// And a whole message of before the skip, which is not acceptable otherwise.
	if res := r.add(chunk(6, 0, 0, 0, "B", "old"), nil); res != reasmStale {
		t.Errorf("old message: %v, want stale", res)
	}
	if res := r.add(chunk(7, 0, 0, 0, "E", "old"), nil); res != reasmStale {
		t.Errorf("old message's end: %v, want stale", res)
	}
	if res := r.settle(7); res != reasmOK || r.msgs != 0 || r.frags != 0 {
		t.Errorf("settle = %v, %d messages, %d fragments", res, r.msgs, r.frags)
	}
}

func TestForwardToTheLastFragmentReceived(t *testing.T) {
	// The message is abandoned, so what follows is another one.
	r := newRecv(reasmConfig{})
	mustAdd(t, r, chunk(2, 0, 0, 0, "BU", "a"))
	r.forward(2)
	if r.frags != 0 {
		t.Errorf("%d fragments held, want 0", r.frags)
	}
	mustAdd(t, r, chunk(3, 0, 0, 0, "BU", "b"), chunk(4, 0, 0, 0, "EU", "c"))
	wantRead(t, r, anyStream, "bc", true)
	if res := r.settle(4); res != reasmOK || r.msgs != 0 {
		t.Errorf("settle = %v, %d messages left", res, r.msgs)
	}
}

func TestForwardFar(t *testing.T) {
	// Few messages, huge numbers: the work is bounded by what is held.
	r := newRecv(reasmConfig{interleaved: true})
	mustAdd(t, r, chunk(3, 0, 5, 0, "BE", "five"), chunk(4, 0, 1<<30, 0, "BE", "far"), chunk(5, 0, 7, 0, "B", "lost"))
	r.skip(0, false, 1<<30+1)
	r.skip(0, false, 9) // a smaller one later does not take it back
	r.forward(1 << 30)
	wantRead(t, r, anyStream, "five", true)
	wantRead(t, r, anyStream, "far", true)
	wantNothing(t, r, anyStream)
	if st := r.stream(0); st.next != 1<<30+2 || r.frags != 0 {
		t.Errorf("next = %d, %d fragments; want %d, 0", st.next, r.frags, 1<<30+2)
	}
}

func TestResetStreams(t *testing.T) {
	for _, idata := range []bool{false, true} {
		for _, sids := range [][]uint16{{0, 2, 99}, nil} {
			r := newRecv(reasmConfig{interleaved: idata})
			mustAdd(t, r, chunk(1, 0, 0, 0, "BE", "a"), chunk(2, 1, 0, 0, "BE", "b"))
			r.deferReset(sids, 4)
			// RFC 6525, Section 5.2.2, E2: TSNs beyond 4 wait.
			mustAdd(t, r, chunk(5, 0, 0, 0, "BE", "A"), chunk(6, 2, 0, 0, "BE", "C"), chunk(4, 0, 2, 0, "BE", "d"))
			if len(sids) > 0 {
				mustAdd(t, r, chunk(7, 1, 1, 0, "BE", "e")) // not affected
			}
			wantRead(t, r, 0, "a", true)
			wantNothing(t, r, 0)
			wantNothing(t, r, 2)
			mustAdd(t, r, chunk(3, 0, 1, 0, "BE", "c"))
			if res := r.resetStreams(sids); res != reasmOK {
				t.Fatalf("reset: %v", res)
			}
			wantRead(t, r, 0, "c", true)
			wantRead(t, r, 0, "d", true)
			wantRead(t, r, 0, "A", true)
			wantRead(t, r, 2, "C", true)
			wantRead(t, r, 1, "b", true)
			if len(sids) > 0 {
				wantRead(t, r, 1, "e", true)
			} else {
				mustAdd(t, r, chunk(8, 1, 0, 0, "BE", "again"))
				wantRead(t, r, 1, "again", true)
			}
			if r.window.held != 0 {
				t.Errorf("%d bytes held", r.window.held)
			}
		}
	}
}

func TestResetHeldIsReleasedOnClose(t *testing.T) {
	r := newRecv(reasmConfig{})
	r.deferReset(nil, 10)
	mustAdd(t, r, chunk(11, 3, 0, 0, "BE", "A"))
	r.close()
	if r.frags != 0 || r.window.held != 0 {
		t.Errorf("%d fragments, %d bytes after close", r.frags, r.window.held)
	}
}

func TestFSNWraps(t *testing.T) {
	// RFC 8260, Section 2.1: "the FSN MAY wrap completely multiple times".
	r := newRecv(reasmConfig{interleaved: true, pieces: true})
	mustAdd(t, r, chunk(1, 0, 0, 0, "B", "a"))
	wantPieces(t, r, "<0:a")
	r.numbered.find(messageKey(0, false, 0)).next = 0xfffffffe // as after 2^32-2 fragments
	mustAdd(t, r, chunk(2, 0, 0, 1, "E", "e"), chunk(3, 0, 0, 0, "", "d"), chunk(4, 0, 0, 0xffffffff, "", "c"))
	mustAdd(t, r, chunk(5, 0, 0, 0xfffffffe, "", "b"))
	wantPieces(t, r, "0:b", "0:c", "0:d", "0:e>")
}

func TestPayloadsAliasOrAreCopied(t *testing.T) {
	var pool slab.Pool
	r := newRecv(reasmConfig{pieces: true})
	buf := pool.Get()
	add := func(tsn uint32, n int) {
		t.Helper()
		d := chunk(tsn, 0, tsn-1, 0, "BE", "")
		d.Payload = buf.B[:n]
		if res := r.add(d, buf); res != reasmOK {
			t.Fatal(res)
		}
	}
	add(1, slabMin-1)
	if buf.Shared() {
		t.Error("a small payload pins the receive buffer")
	}
	add(2, slabMin)
	add(3, slabMin)
	if !buf.Shared() || r.mem.pinned != 1 {
		t.Errorf("shared %v, %d pinned; want one reference for both", buf.Shared(), r.mem.pinned)
	}
	buf.Release()
	for i, aliased := range []bool{false, true, true} {
		p, ok := r.popPiece()
		if !ok || (p.Buf == buf) != aliased || aliased != (&p.Data[0] == &buf.B[0]) {
			t.Fatalf("piece %d: %v, buf %p, want aliased %v", i, ok, p.Buf, aliased)
		}
		if pool.Live() != 1 {
			t.Errorf("buffer gone while piece %d is out", i)
		}
		p.release()
	}
	if pool.Live() != 0 {
		t.Errorf("%d buffers live, want 0", pool.Live())
	}
}

func TestPinnedBuffersAreBounded(t *testing.T) {
	// One small chunk per datagram, each in a buffer of 64 KiB.
	var pool slab.Pool
	r := newRecv(reasmConfig{limit: 256 << 10})
	most := pinFactor * (256 << 10) / slab.Size
	if most < minPinned {
		most = minPinned
	}
	for tsn := uint32(2); tsn < 200; tsn++ {
		buf := pool.Get()
		d := chunk(tsn, 0, tsn, 0, "BE", "")
		d.Payload = buf.B[:300]
		d.Payload[0] = byte(tsn)
		if res := r.add(d, buf); res != reasmOK {
			t.Fatal(res)
		}
		buf.Release()
	}
	if got := int(pool.Live()); got != most || r.mem.pinned != most {
		t.Errorf("%d buffers pinned (%d counted), want %d", got, r.mem.pinned, most)
	}
	mustAdd(t, r, chunk(1, 0, 0, 0, "BE", "x"), chunk(200, 0, 1, 0, "BE", "x"))
	dst := make([]byte, 1000)
	for i := range 200 {
		n, _, ok := r.read(anyStream, dst)
		if !ok || i >= 2 && (n != 300 || dst[0] != byte(i)) {
			t.Fatalf("read %d: %d bytes %v", i, n, ok)
		}
	}
	if pool.Live() != 0 || r.window.held != 0 {
		t.Errorf("%d buffers, %d bytes left", pool.Live(), r.window.held)
	}
}

func TestRecvWindow(t *testing.T) {
	var w recvWindow
	w.init(100000)
	if got := w.open(); got != 100000 {
		t.Errorf("open = %d, want 100000", got)
	}
	w.held = 100000 - swsSegment
	if got := w.open(); got != swsSegment {
		t.Errorf("open = %d, want %d", got, swsSegment)
	}
	w.held++ // RFC 9260, Section 6.2: silly window syndrome
	if got := w.open(); got != 0 {
		t.Errorf("open = %d, want 0", got)
	}
	w.advertised(w.open())
	w.held = 100000 - 25000 + 1
	if w.grown() {
		t.Error("update for less than a quarter")
	}
	w.held--
	if !w.grown() {
		t.Error("no update for a quarter")
	}
	w.advertised(60000)
	w.held = 0
	if w.grown() {
		t.Error("update of a window that is wide open")
	}
	w.held = 300000
	if got := w.open(); got != 0 {
		t.Errorf("open = %d, want 0 when overdrawn", got)
	}
}

func TestRoomWhenTheWindowIsClosed(t *testing.T) {
	r := newRecv(reasmConfig{limit: 10000})
	m := newTSNMap(1)
	m.observe(5)
	for _, tt := range []struct {
		name                     string
		held, credit             int
		cumPlus1, filler, newest bool
	}{
		{"not full", 9999, 0, true, true, true},
		{"full, nothing under way", 10000, 99, true, true, false},
		{"full, more under way", 10000, 100, true, true, true},
		{"overdrawn", 30000, 100, true, false, false},
		{"overdrawn even more", 40000, 100, false, false, false},
	} {
		r.window.held, r.window.credit = tt.held, tt.credit
		got := [3]bool{r.room(m, 1, 100), r.room(m, 3, 100), r.room(m, 6, 100)}
		if want := [3]bool{tt.cumPlus1, tt.filler, tt.newest}; got != want {
			t.Errorf("%s: room = %v, want %v", tt.name, got, want)
		}
	}
}

func TestCreditIsWhatMayBeUnderWay(t *testing.T) {
	var w recvWindow
	w.init(1000)
	w.take(300)
	w.advertised(500) // 700 may be under way by the window of before
	if w.credit != 700 {
		t.Errorf("credit = %d, want 700", w.credit)
	}
	w.take(700)
	w.take(1)
	w.advertised(0)
	if w.credit != 0 {
		t.Errorf("credit = %d, want 0", w.credit)
	}
	w.advertised(400)
	if w.credit != 400 {
		t.Errorf("credit = %d, want 400", w.credit)
	}
}

// TestReassemblyIsNotQuadratic runs orders of arrival that are bad for lists. It
// would take minutes if a fragment cost more than O(log n).
func TestReassemblyIsNotQuadratic(t *testing.T) {
	const n = 100000
	orders := map[string]func(i int) int{
		"reverse":  func(i int) int { return n - 1 - i },
		"odd even": func(i int) int { return i*2%n + i*2/n },
		"stride":   func(i int) int { return i * 7919 % n },
	}
	for name, at := range orders {
		for _, idata := range []bool{false, true} {
			for _, whole := range []bool{false, true} {
				r := newRecv(reasmConfig{interleaved: idata, pieces: true, limit: 1 << 30})
				d := &wire.Data{Payload: []byte("x")}
				for i := range n {
					k := at(i)
					if whole {
						d.SSN, d.MID, d.Begin, d.End = uint16(k), uint32(k), true, true
						if !idata && (k >= 30000 || i >= n) {
							continue // 16 bits
						}
					} else {
						d.FSN, d.Begin, d.End = uint32(k), k == 0, k == n-1
					}
					d.TSN = uint32(k + 1)
					if res := r.add(d, nil); res != reasmOK {
						t.Fatalf("%s idata=%v whole=%v: add(%d) = %v", name, idata, whole, k, res)
					}
				}
				want := n
				if whole && !idata {
					want = 30000
				}
				if got := len(popAll(r)); got != want {
					t.Errorf("%s idata=%v whole=%v: %d pieces, want %d", name, idata, whole, got, want)
				}
			}
		}
	}
}

// feed is a sender of equal messages for allocation tests and benchmarks.
type feed struct {
	r     *reassembly
	pool  slab.Pool
	d     wire.Data
	frags int
	order []int
	dst   []byte
}

func newFeed(cfg reasmConfig, size, frags int, order []int) *feed {
	f := &feed{r: newRecv(cfg), frags: frags, order: order, dst: make([]byte, size*frags)}
	f.d = wire.Data{TSN: 1, Payload: bytes.Repeat([]byte{1}, size)}
	return f
}

// message sends and consumes one message.
func (f *feed) message() int {
	buf := f.pool.Get()
	d := f.d
	d.Payload = buf.B[:len(f.d.Payload)]
	for i := range f.frags {
		k := i
		if f.order != nil {
			k = f.order[i]
		}
		d.TSN, d.FSN = f.d.TSN+uint32(k), uint32(k)
		d.Begin, d.End = k == 0, k == f.frags-1
		if f.r.add(&d, buf).violation() {
			panic("violation")
		}
	}
	buf.Release()
	f.d.TSN += uint32(f.frags)
	f.d.SSN++
	f.d.MID++
	f.r.settle(TSN(f.d.TSN - 1))
	n := 0
	if f.r.cfg.pieces {
		for p, ok := f.r.popPiece(); ok; p, ok = f.r.popPiece() {
			n += len(p.Data)
			p.release()
		}
		return n
	}
	for {
		k, _, ok := f.r.read(anyStream, f.dst)
		if !ok {
			return n
		}
		n += k
	}
}

var feeds = []struct {
	name  string
	size  int
	frags int
	order []int
}{
	{"size=64/frags=1", 64, 1, nil},
	{"size=1452/frags=1", 1452, 1, nil},
	{"size=1452/frags=32", 1452, 32, nil},
	{"size=1452/frags=4/order=reverse", 1452, 4, []int{3, 2, 1, 0}},
}

func TestReassemblyDoesNotAllocate(t *testing.T) {
	for _, tt := range feeds {
		for _, idata := range []bool{false, true} {
			for _, pieces := range []bool{false, true} {
				f := newFeed(reasmConfig{interleaved: idata, pieces: pieces}, tt.size, tt.frags, tt.order)
				for range 10 {
					if n := f.message(); n != tt.size*tt.frags {
						t.Fatalf("%s: %d bytes, want %d", tt.name, n, tt.size*tt.frags)
					}
				}
				if got := testing.AllocsPerRun(100, func() { f.message() }); got != 0 {
					t.Errorf("%s idata=%v pieces=%v: %v allocations, want 0", tt.name, idata, pieces, got)
				}
				f.r.close()
				if f.pool.Live() != 0 {
					t.Errorf("%s: %d buffers live", tt.name, f.pool.Live())
				}
			}
		}
	}
}

func BenchmarkReassembly(b *testing.B) {
	for _, tt := range feeds {
		for _, mode := range []struct {
			name          string
			idata, pieces bool
		}{{"chunk=data/take=pieces", false, true}, {"chunk=idata/take=pieces", true, true}, {"chunk=data/take=read", false, false}} {
			b.Run(tt.name+"/"+mode.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(tt.size * tt.frags))
				f := newFeed(reasmConfig{interleaved: mode.idata, pieces: mode.pieces}, tt.size, tt.frags, tt.order)
				for b.Loop() {
					f.message()
				}
			})
		}
	}
}
