package rdmap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/weftstack/weft/ddp"
)

// ordered plays two operations, each of several segments where it can have
// them, over a pipe that reorders, and checks what the ordering tables of RFC
// 5040, Appendix B and RFC 7306, Section 7 guarantee.
type ordered struct {
	t      *testing.T
	p      *pair
	mem    []byte // at b: what is written, read and counted in
	r      *ddp.Region
	result [2][]byte
	recv   [2][]byte
	// answered lists the responses that b has begun, by their operation.
	answered []int
	began    map[uint64]bool
}

const orderedSize = 480

func newOrdered(t *testing.T, seed uint64) *ordered {
	o := &ordered{t: t, p: newPair(t, pairConfig{seed: seed, mulpdu: 64}), mem: pattern(orderedSize+8, 1), began: map[uint64]bool{}}
	var err error
	o.r, err = o.p.b.table.Add(o.mem, 0, ddp.RemoteRead|ddp.RemoteWrite|ddp.RemoteAtomic, o.p.b.domain, nil)
	if err != nil {
		t.Fatal(err)
	}
	binary.NativeEndian.PutUint64(o.mem[orderedSize:], 5)
	for i := range o.recv {
		o.recv[i] = make([]byte, orderedSize)
		o.p.b.postRecv(uint64(i), o.recv[i])
	}
	return o
}

// data is what operation i sends or writes.
func (o *ordered) data(i int) []byte { return pattern(orderedSize, byte(100+i)) }

func (o *ordered) post(i int, kind OpKind, flags OpFlags) {
	w := Work{ID: uint64(i), Kind: kind, Flags: flags | FlagSignaled, STag: o.r.STag()}
	switch kind {
	case OpSend, OpWrite:
		o.p.a.post(w, o.data(i))
	case OpImm:
		w.Imm = uint64(i)
		o.p.a.post(w)
	case OpRead:
		o.result[i] = make([]byte, orderedSize+8)
		o.p.a.post(w, o.result[i])
	case OpFetchAdd:
		w.TO, w.Data = orderedSize, 1
		o.result[i] = make([]byte, 8)
		o.p.a.post(w, o.result[i])
	}
}

// done reports whether b has completed (sends) or placed (writes) or answered
// (reads, atomics) operation i.
func (o *ordered) done(i int, kind OpKind) bool {
	switch kind {
	case OpSend:
		return len(o.p.b.recv) > i && bytes.Equal(o.recv[i], o.data(i))
	case OpImm:
		return len(o.p.b.recv) > i && o.p.b.recv[i].Imm == uint64(i)
	case OpWrite:
		return bytes.Equal(o.mem[:orderedSize], o.data(i))
	}
	return len(o.answered) > i
}

// TestOrderAtTheRemotePeer: what a read, an atomic, a send or immediate data of
// the second operation finds done of the first.
func TestOrderAtTheRemotePeer(t *testing.T) {
	kinds := []OpKind{OpSend, OpImm, OpWrite, OpRead, OpFetchAdd}
	for _, first := range kinds {
		for _, second := range kinds {
			if second == OpWrite {
				continue // placed in any order: see TestFenceWaitsForReads
			}
			// A send or immediate data may overtake the answer of what it follows
			// (RFC 5040, Section 5.5, rule 18).
			free := !second.Responds() && first.Responds()
			overtaken := false
			t.Run(fmt.Sprintf("%v, %v", first, second), func(t *testing.T) {
				for seed := range uint64(15) {
					o := newOrdered(t, seed)
					fail := func(what string) {
						t.Fatalf("seed %d: the %v %s before the %v was done", seed, second, what, first)
					}
					o.p.pipe.B.Tap = func(seg []byte) {
						h, _, _ := ddp.ParseHeader(seg)
						op, _ := ParseControl(h.Ctrl)
						id := h.TO / (orderedSize + 8)
						switch {
						case op == AtomicResponse:
						case op == ReadResponse && !o.began[id]:
							o.began[id] = true
						default:
							return
						}
						if i := len(o.answered); second.Responds() && (i == 1 || !first.Responds()) && !o.done(0, first) {
							fail("was answered")
						}
						o.answered = append(o.answered, len(o.answered))
					}
					o.post(0, first, 0)
					o.post(1, second, 0)
					slot := 1
					if first.Responds() || first == OpWrite {
						slot = 0 // of the receives
					}
					for o.p.pipe.Step() {
						if !second.Responds() && len(o.p.b.recv) > slot {
							switch ok := o.done(0, first); {
							case free:
								overtaken = overtaken || len(o.p.a.sent) == 0
							case !ok:
								fail("was delivered")
							}
						}
					}
					o.p.a.wantSent(0, StatusSuccess) // rule 15
					o.p.a.wantSent(1, StatusSuccess)
					o.results(first, second)
				}
			})
			if free && !overtaken && !t.Failed() {
				t.Errorf("the %v never completed before the %v was answered: nothing is tested", second, first)
			}
		}
	}
}

// results checks what reads and atomics have returned.
func (o *ordered) results(first, second OpKind) {
	o.t.Helper()
	count := uint64(5)
	for i, kind := range []OpKind{first, second} {
		switch kind {
		case OpFetchAdd:
			if got := binary.NativeEndian.Uint64(o.result[i]); got != count {
				o.t.Fatalf("%v, %v: original value %d, want %d", first, second, got, count)
			}
			count++
		case OpRead:
			want := pattern(orderedSize, 1)
			if i == 1 && first == OpWrite {
				want = o.data(0) // the read was posted after the write
			}
			if !bytes.Equal(o.result[i][:orderedSize], want) {
				o.t.Fatalf("%v, %v: read something else", first, second)
			}
			if got := binary.NativeEndian.Uint64(o.result[i][orderedSize:]); i == 1 && got != count {
				o.t.Fatalf("%v, %v: read a count of %d, want %d", first, second, got, count)
			}
		}
	}
	if got := binary.NativeEndian.Uint64(o.mem[orderedSize:]); got != count {
		o.t.Fatalf("%v, %v: count %d at the end, want %d", first, second, got, count)
	}
}

// TestFenceAfterAtomics: a fenced operation starts when all reads and atomics
// before it have been answered, and not earlier.
func TestFenceAfterAtomics(t *testing.T) {
	for seed := range uint64(20) {
		o := newOrdered(t, seed)
		var started []Opcode
		o.p.pipe.A.Tap = func(seg []byte) {
			if h, _, _ := ddp.ParseHeader(seg); h.Last {
				op, _ := ParseControl(h.Ctrl)
				started = append(started, op)
			}
		}
		o.post(0, OpFetchAdd, 0)
		o.p.a.post(Work{ID: 7, Kind: OpRead, STag: o.r.STag()}, make([]byte, 100))
		o.p.a.post(Work{ID: 8, Kind: OpImm, Flags: FlagFence | FlagSignaled})
		for o.p.pipe.Step() {
			if len(started) > 2 && o.p.a.s.rdTail != 2 {
				t.Fatalf("seed %d: the fenced operation started with %d of two answered", seed, o.p.a.s.rdTail)
			}
		}
		if len(started) != 3 || started[2] != Immediate {
			t.Fatalf("seed %d: %v", seed, started)
		}
		o.p.a.wantSent(0, StatusSuccess)
		o.p.a.wantSent(8, StatusSuccess)
	}
}

func TestPauseAndResume(t *testing.T) {
	p := newPair(t, pairConfig{})
	target := p.b.region(5000, ddp.RemoteWrite)
	p.a.post(Work{ID: 1, Kind: OpWrite, Flags: FlagSignaled, STag: target.STag()}, make([]byte, 5000))
	if err := p.a.s.Pause(); err != nil {
		t.Fatal(err)
	}
	p.a.post(Work{ID: 2, Kind: OpWrite, Flags: FlagSignaled, STag: target.STag()}, make([]byte, 100))
	if p.a.idle != 0 {
		t.Error("idle with a write under way")
	}
	p.pipe.Run()
	p.a.wantSent(1, StatusSuccess)
	p.a.wantNothing()
	if paused, idle := p.a.s.Paused(); !paused || !idle || p.a.idle != 1 {
		t.Errorf("paused %v, idle %v, told %d times", paused, idle, p.a.idle)
	}
	if err := p.a.s.Resume(); err != nil {
		t.Fatal(err)
	}
	p.pipe.Run()
	p.a.wantSent(2, StatusSuccess)
	// An end of the stream ends the pause, and is not idleness.
	p.a.s.Pause()
	p.a.post(Work{ID: 3, Kind: OpImm, Flags: FlagSignaled})
	p.a.s.Abort(ErrClosed)
	p.pipe.Run()
	p.a.wantSent(3, StatusFlush)
	if p.a.idle != 2 || p.a.s.Pause() != ErrState || p.a.s.Resume() != ErrState {
		t.Errorf("idle %d times", p.a.idle)
	}
}
