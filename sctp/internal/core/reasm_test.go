package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

func newTSNMap(initial seq.TSN) *seq.Map {
	m := new(seq.Map)
	m.Init(initial)
	return m
}

// newRecv returns a queue for tests that name every chunk.
func newRecv(cfg reasmConfig) *reassembly {
	if cfg.streams == 0 {
		cfg.streams = 4
	}
	if cfg.limit == 0 {
		cfg.limit = 1 << 20
	}
	return newReassembly(cfg, 1)
}

func describe(p Piece) string {
	s := fmt.Sprintf("%d:%s", p.SID, p.Data)
	if p.Begin {
		s = "<" + s
	}
	if p.End {
		s += ">"
	}
	if p.Aborted {
		s += "!"
	}
	return s
}

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
	for p := (Piece{}); r.popPiece(&p); {
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
	var info RecvInfo
	n, ok := r.read(sid, dst, &info)
	if !ok || string(dst[:n]) != want || info.EOR != eor {
		t.Errorf("read = %q EOR %v ok %v, want %q EOR %v", dst[:n], info.EOR, ok, want, eor)
	}
}

func wantNothing(t *testing.T, r *reassembly, sid int) {
	t.Helper()
	var info RecvInfo
	if n, ok := r.read(sid, make([]byte, 10), &info); ok {
		t.Errorf("read = %d bytes %+v, want nothing", n, info)
	}
}

func TestReassemblyViolations(t *testing.T) {
	ok := reasmOK
	for _, tt := range []struct {
		name   string
		idata  bool
		chunks []*wire.Data
		cum    seq.TSN // of the settle at the end
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
	if r.room(m, seq.TSN(d.TSN), 1) {
		t.Error("room for one more than maxHeldFragments")
	}
	if res := r.add(d, nil); res != reasmFull {
		t.Errorf("one more than maxHeldFragments: %v, want full", res)
	}
	r.close()
	if r.frags != 0 || r.mem.nfrags != maxFreeFragments {
		t.Errorf("%d held; free list of %d, want %d", r.frags, r.mem.nfrags, maxFreeFragments)
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
	if r.msgs != 0 || r.nfreeMsgs != maxFreeFragments {
		t.Errorf("%d messages, %d free; want 0, %d", r.msgs, r.nfreeMsgs, maxFreeFragments)
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
