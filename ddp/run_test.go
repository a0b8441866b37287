package ddp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Segments does what calls of Segment do, whatever comes.
func TestSegmentsAsOneByOne(t *testing.T) {
	runs := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		// Messages of equal and of other segments, tagged and not, some with faults.
		var segs [][]byte
		msn, to := uint32(1), uint64(0)
		for len(segs) < 40 {
			n, size := 1+rng.IntN(12), rng.IntN(12)
			h := Header{Tagged: rng.IntN(5) > 0, MSN: msn, STag: uint32(rng.IntN(2)) * 9, TO: uint64(rng.IntN(1000))}
			if rng.IntN(3) == 0 { // short ones, each where the one before ended
				n, size, h.STag, h.TO = 1, 5, 0, min(to, 1000)
			}
			if h.Tagged && rng.IntN(60) == 0 {
				h.TO = uint64(len(newMem()) - n*size/2) // out of bounds in the midst
			}
			if !h.Tagged {
				n, size = min(n, 4), 1
				msn++
			}
			for i := range n {
				h.Last = i == n-1
				if i > 0 && rng.IntN(30) == 0 {
					h.STag ^= 9
				}
				b := AppendHeader(nil, &h)
				if rng.IntN(400) == 0 {
					b[0] ^= 1 // the version
				}
				l := size
				if rng.IntN(10) == 0 && i < n-1 {
					l = rng.IntN(12)
				}
				for range l {
					b = append(b, byte(rng.Uint32()))
				}
				h.advance(l)
				segs = append(segs, b)
			}
			to = h.TO
		}
		end := len(segs) - rng.IntN(9)*rng.IntN(2)
		var r [2]*Receiver
		var u [2]*testULP
		for i := range r {
			r[i], u[i] = newReceiver(30, 8)
			u[i].mem = newMem()
		}
		var errs [2]error
		both := func(what string) {
			t.Helper()
			a, b := u[0], u[1]
			if errs[0] != errs[1] || !bytes.Equal(a.mem, b.mem) || !slices.Equal(a.delivered, b.delivered) || a.fault != b.fault ||
				!bytes.Equal(a.header, b.header) || a.length != b.length || a.ended != b.ended || r[0].Next() != r[1].Next() || r[0].Early() != r[1].Early() {
				t.Fatalf("seed %d, %s: one by one %v %+v, together %v %+v", seed, what, errs[0], a, errs[1], b)
			}
		}
		for order, at := rng.IntN(3), 0; at < len(segs); {
			n := min(1+rng.IntN(10), len(segs)-at)
			if at < end {
				n = min(n, end-at)
			}
			if order == 0 && at+n < end { // what follows comes first
				m := min(1+rng.IntN(10), end-at-n)
				for i := range r {
					errs[i] = give(r[i], i == 1, uint64(at+n), segs[at+n:][:m])
				}
				both("early")
				for i := range r {
					errs[i] = give(r[i], i == 1, uint64(at), segs[at:][:n])
				}
				n += m
			} else {
				for i := range r {
					errs[i] = give(r[i], i == 1, uint64(at), segs[at:][:n])
				}
			}
			both(fmt.Sprintf("segments %d to %d", at, at+n))
			at += n
			if at < end || r[0].ended {
				continue
			}
			for i := range r {
				errs[i] = r[i].End(uint64(end)) // perhaps before the last ones
			}
			both("end")
			at++
		}
		if u[0].runs > 0 {
			t.Fatal("Segment makes runs")
		}
		runs += u[1].runs
	}
	if runs < 1000 {
		t.Errorf("%d runs", runs)
	}
}

func newMem() []byte { return make([]byte, 1200) }

// give hands segments over, together or one by one.
func give(r *Receiver, together bool, first uint64, segs [][]byte) error {
	if together {
		return r.Segments(first, segs)
	}
	for i, seg := range segs {
		if err := r.Segment(first+uint64(i), seg); err != nil {
			return err
		}
	}
	return nil
}
