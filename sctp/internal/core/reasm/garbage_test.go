package reasm

import (
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
	"pgregory.net/rapid"
)

// TestReassemblyGarbage takes chunks, skips and resets at random: whatever a
// peer makes up, the queue stays consistent until it calls it a violation, and
// then releases everything.
func TestReassemblyGarbage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, initial, firstNum := drawMode(t)
		cfg.Limit = rapid.SampledFrom([]int{3000, 1 << 20}).Draw(t, "limit")
		cfg.partial = rapid.SampledFrom([]int{0, 100}).Draw(t, "partial")
		r := newReceiver(t, &sender{}, cfg, initial, firstNum)
		num := func() uint32 { return firstNum + rapid.Uint32Range(0, 3).Draw(t, "number") }
		sid := func() uint16 { return uint16(rapid.IntRange(0, 4).Draw(t, "sid")) }
		var out []Piece
		res := taken
		for n := rapid.IntRange(1, 200).Draw(t, "steps"); n > 0 && !res.Violation(); n-- {
			cum := r.m.CumTSN()
			switch rapid.IntRange(0, 12).Draw(t, "step") {
			case 0:
				to := cum + seq.TSN(rapid.IntRange(-1, 20).Draw(t, "forward"))
				for range rapid.IntRange(0, 3).Draw(t, "skips") {
					r.SkipMessages(sid(), rapid.Bool().Draw(t, "unordered"), num())
				}
				if r.m.Forward(to) {
					r.Forward(to)
				}
				res = r.CheckUpTo(r.m.CumTSN())
			case 1:
				if rapid.Bool().Draw(t, "defer") {
					r.DeferReset([]uint16{sid()}, cum+3)
				} else {
					res = r.ResetStreams([]uint16{sid()})
				}
			case 2, 3:
				r.Read(rapid.IntRange(AnyStream, 5).Draw(t, "from"), make([]byte, rapid.IntRange(0, 300).Draw(t, "size")), new(RecvInfo))
			case 4, 5:
				if p := (Piece{}); r.PopPiece(&p) {
					out = append(out, p)
				}
				if len(out) > 3 {
					out[0].Release()
					out = out[1:]
				}
			case 6:
				r.PausePieces(sid(), rapid.Bool().Draw(t, "pause"))
			default:
				bits := rapid.IntRange(0, 7).Draw(t, "bits")
				n := num()
				d := &wire.Data{TSN: uint32(cum) + rapid.Uint32Range(1, 15).Draw(t, "tsn"), SID: sid(), SSN: uint16(n), MID: n,
					FSN: rapid.Uint32Range(0, 4).Draw(t, "fsn"), Begin: bits&1 != 0, End: bits&2 != 0, Unordered: bits&4 != 0}
				buf := r.pool.Get()
				d.Payload = buf.B[:rapid.SampledFrom([]int{1, 100, 300}).Draw(t, "length")]
				if r.m.Check(seq.TSN(d.TSN)) == seq.New && r.Room(r.m, seq.TSN(d.TSN), len(d.Payload)) {
					if res = r.Add(d, buf); res != Full {
						r.m.Observe(seq.TSN(d.TSN))
					}
				}
				buf.Release()
				if !res.Violation() {
					res = r.CheckUpTo(r.m.CumTSN())
				}
			}
			checkReassembly(t, r.Queue, out)
		}
		r.Close()
		for i := range out {
			out[i].Release()
		}
		r.finish(true)
	})
}

// checkReassembly checks what r holds.
func checkReassembly(t *rapid.T, r *Queue, out []Piece) {
	frags, held, msgs := len(out), 0, 0
	for i := range out {
		if out[i].frag == nil {
			frags--
			continue
		}
		held += out[i].frag.charge
	}
	count := func(f *frag) {
		for ; f != nil; f = f.next {
			frags++
			held += f.charge
		}
	}
	seen := map[*message]bool{}
	message := func(m *message) {
		if seen[m] {
			return
		}
		seen[m] = true
		msgs++
		held += messageRecord
		count(m.head)
		count(m.loose.head)
		n := 0
		for f := m.head; f != nil; f = f.next {
			n += len(f.data)
		}
		if n != m.avail {
			t.Fatalf("message has %d bytes, counts %d", n, m.avail)
		}
	}
	for _, st := range r.streams {
		if st == nil {
			continue
		}
		for m := st.ready.head; m != nil; m = m.links[linkReady].next {
			message(m)
		}
		for i := range st.pending {
			for m := st.pending[i].head; m != nil; m = m.links[linkPending].next {
				message(m)
			}
		}
		count(st.held.head)
		if st.queued != (!st.paused && st.deliverable()) {
			t.Fatalf("stream %d: queued %v, paused %v, deliverable %v", st.sid, st.queued, st.paused, st.deliverable())
		}
	}
	count(r.looseList.head)
	count(r.unfragmented.head)
	for _, m := range r.open.appendAll(nil) {
		message(m)
	}
	if r.last != nil {
		message(r.last)
	}
	if frags != r.frags || held != r.window.held || msgs != r.msgs {
		t.Fatalf("found %d fragments, %d bytes, %d messages; counted %d, %d, %d", frags, held, msgs, r.frags, r.window.held, r.msgs)
	}
}
