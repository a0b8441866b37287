package reasm

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
func newRecv(cfg Config) *Queue {
	if cfg.Streams == 0 {
		cfg.Streams = 4
	}
	if cfg.Limit == 0 {
		cfg.Limit = 1 << 20
	}
	return newQueue(cfg, 1)
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

func mustAdd(t *testing.T, r *Queue, ds ...*wire.Data) {
	t.Helper()
	for _, d := range ds {
		if res := r.Add(d, nil); res != taken {
			t.Fatalf("add(%+v) = %v", d, res)
		}
	}
}

// popAll pops every piece and describes them.
func popAll(r *Queue) []string {
	var out []string
	for p := (Piece{}); r.PopPiece(&p); {
		out = append(out, describe(p))
		p.Release()
	}
	return out
}

func wantPieces(t *testing.T, r *Queue, want ...string) {
	t.Helper()
	if got := popAll(r); !slices.Equal(got, want) {
		t.Errorf("pieces %q, want %q", got, want)
	}
}

func wantRead(t *testing.T, r *Queue, sid int, want string, eor bool) {
	t.Helper()
	dst := make([]byte, 100)
	var info RecvInfo
	n, ok := r.Read(sid, dst, &info)
	if !ok || string(dst[:n]) != want || info.EOR != eor {
		t.Errorf("read = %q EOR %v ok %v, want %q EOR %v", dst[:n], info.EOR, ok, want, eor)
	}
}

func wantNothing(t *testing.T, r *Queue, sid int) {
	t.Helper()
	var info RecvInfo
	if n, ok := r.Read(sid, make([]byte, 10), &info); ok {
		t.Errorf("read = %d bytes %+v, want nothing", n, info)
	}
}

func TestReassemblyViolations(t *testing.T) {
	ok := taken
	for _, tt := range []struct {
		name   string
		idata  bool
		chunks []*wire.Data
		cum    seq.TSN // of CheckUpTo at the end
		want   Result
	}{
		{"begin inside", false, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 0, 1, 0, "B", "b")}, 2, beginInside},
		{"begin inside, seen late", false, []*wire.Data{chunk(2, 0, 1, 0, "BE", "b"), chunk(1, 0, 0, 0, "B", "a")}, 2, beginInside},
		{"begin inside, seen late, of an older message", false, []*wire.Data{chunk(2, 0, 1, 0, "BE", "b"), chunk(1, 0, 0, 0, "B", "a"), chunk(5, 1, 0, 0, "BU", "c")}, 2, beginInside},
		{"no begin", false, []*wire.Data{chunk(1, 0, 0, 0, "E", "a")}, 1, noBegin},
		{"no begin after a complete one", false, []*wire.Data{chunk(1, 0, 0, 0, "BE", "a"), chunk(2, 0, 0, 0, "", "b")}, 2, noBegin},
		{"other SSN", false, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 0, 1, 0, "E", "b")}, 2, mixed},
		{"other stream", false, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 1, 0, 0, "E", "b")}, 2, mixed},
		{"other U bit", false, []*wire.Data{chunk(2, 0, 0, 0, "EU", "b"), chunk(1, 0, 0, 0, "B", "a")}, 2, mixed},
		{"SSN twice", false, []*wire.Data{chunk(1, 0, 0, 0, "BE", "a"), chunk(2, 0, 0, 0, "BE", "b")}, 2, repeated},
		{"SSN twice while the first is unfinished", false, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(5, 0, 0, 0, "BE", "b")}, 1, repeated},
		{"SSN twice while waiting", false, []*wire.Data{chunk(3, 0, 2, 0, "BE", "a"), chunk(5, 0, 2, 0, "BE", "b")}, 0, repeated},
		{"stream", false, []*wire.Data{chunk(1, 4, 0, 0, "BE", "a")}, 1, badStream},
		{"unordered SSN is ignored", false, []*wire.Data{chunk(1, 0, 9, 0, "BU", "a"), chunk(2, 0, 8, 0, "EU", "b")}, 2, ok},
		{"MID twice", true, []*wire.Data{chunk(1, 0, 0, 0, "BE", "a"), chunk(2, 0, 0, 0, "BE", "b")}, 2, repeated},
		{"MID twice while waiting", true, []*wire.Data{chunk(1, 0, 1, 0, "BE", "a"), chunk(2, 0, 1, 0, "BE", "b")}, 2, badFSN},
		{"FSN twice", true, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 0, 0, 2, "", "b"), chunk(3, 0, 0, 2, "", "c")}, 3, badFSN},
		{"FSN of the past", true, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 0, 0, 1, "", "b"), chunk(3, 0, 0, 1, "", "c")}, 3, badFSN},
		{"FSN 0 without begin", true, []*wire.Data{chunk(1, 0, 0, 0, "", "a")}, 1, badFSN},
		{"two begins", true, []*wire.Data{chunk(1, 0, 0, 0, "B", "a"), chunk(2, 0, 0, 0, "B", "b")}, 2, badFSN},
		{"two ends", true, []*wire.Data{chunk(1, 0, 0, 3, "E", "a"), chunk(2, 0, 0, 4, "E", "b")}, 2, badFSN},
		{"behind the end", true, []*wire.Data{chunk(1, 0, 0, 3, "E", "a"), chunk(2, 0, 0, 4, "", "b")}, 2, badFSN},
		{"end before the latest one", true, []*wire.Data{chunk(1, 0, 0, 5, "", "a"), chunk(2, 0, 0, 3, "", "b"), chunk(3, 0, 0, 4, "E", "c")}, 3, badFSN},
		{"end before a later one", true, []*wire.Data{chunk(1, 0, 0, 3, "", "a"), chunk(2, 0, 0, 2, "E", "b")}, 2, badFSN},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRecv(Config{Interleaved: tt.idata})
			got := ok
			for _, d := range tt.chunks {
				if got != ok {
					t.Fatalf("%v before the last chunk", got)
				}
				got = r.Add(d, nil)
			}
			if got == ok {
				got = r.CheckUpTo(tt.cum)
			}
			if got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if v := tt.want > badStream; got.Violation() != v {
				t.Errorf("violation = %v, want %v", got.Violation(), v)
			}
			r.Close()
			if r.frags != 0 || r.window.held != 0 {
				t.Errorf("%d fragments, %d bytes left after close", r.frags, r.window.held)
			}
		})
	}
}

func TestReassemblyCaps(t *testing.T) {
	r := newRecv(Config{Limit: 1 << 30})
	d := chunk(2, 0, 0, 0, "", "x")
	for range maxHeldFragments {
		if res := r.Add(d, nil); res != taken {
			t.Fatalf("add(%d) = %v", d.TSN, res)
		}
		d.TSN += 2
	}
	m := newTSNMap(1)
	if r.Room(m, seq.TSN(d.TSN), 1) {
		t.Error("room for one more than maxHeldFragments")
	}
	if res := r.Add(d, nil); res != Full {
		t.Errorf("one more than maxHeldFragments: %v, want full", res)
	}
	r.Close()
	if r.frags != 0 || r.mem.nfrags != maxFreeFragments {
		t.Errorf("%d held; free list of %d, want %d", r.frags, r.mem.nfrags, maxFreeFragments)
	}
}

func TestReassemblyMessageCap(t *testing.T) {
	// Messages that were begun and then skipped leave a notice behind each.
	r := newRecv(Config{Interleaved: true, Pieces: true, Limit: 1 << 30})
	for i := range uint32(maxHeldMessages) {
		mustAdd(t, r, chunk(i+1, 0, i, 0, "BU", "x"))
	}
	popped := popAll(r)
	if len(popped) != maxHeldMessages || r.frags != 0 {
		t.Fatalf("%d popped, %d left", len(popped), r.frags)
	}
	r.SkipMessages(0, true, maxHeldMessages)
	r.Forward(maxHeldMessages)
	if res := r.Add(chunk(maxHeldMessages+1, 1, 0, 0, "BE", "x"), nil); res != Full {
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
	r := newRecv(Config{Interleaved: true, Pieces: true})
	mustAdd(t, r, chunk(1, 0, 0, 0, "B", "a"))
	wantPieces(t, r, "<0:a")
	r.numbered.find(messageKey(0, false, 0)).next = 0xfffffffe // as after 2^32-2 fragments
	mustAdd(t, r, chunk(2, 0, 0, 1, "E", "e"), chunk(3, 0, 0, 0, "", "d"), chunk(4, 0, 0, 0xffffffff, "", "c"))
	mustAdd(t, r, chunk(5, 0, 0, 0xfffffffe, "", "b"))
	wantPieces(t, r, "0:b", "0:c", "0:d", "0:e>")
}
