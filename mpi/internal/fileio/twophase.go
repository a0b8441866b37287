package fileio

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Two-phase I/O, which MPI-4.1, Section 14.2.8, calls collective buffering: the stretch of the file that
// the ranks access together is cut into as many domains as there are aggregators. Each of these ranks
// reads or writes its domain, a buffer at a time, and exchanges the pieces with the ranks that they belong
// to. No byte is written that no rank gave.

// twoPhase is one collective operation of a rank.
type twoPhase struct {
	f      *File
	h      *Hints
	write  bool
	b      []byte
	runs   []run // of this rank, in the order of their beginnings
	ends   bool  // the ends of runs are in order, too: false only if some overlap
	size   int64 // of the file
	lo, hi int64 // stretch of the file that all ranks access
	domain int64 // bytes of the file for each aggregator
	rounds int64
}

// divide cuts the stretch into domains.
func (p *twoPhase) divide(all []Reach) {
	first := true
	for _, r := range all {
		if r.N == 0 {
			continue
		}
		if first {
			p.lo, p.hi, first = r.Lo, r.Hi, false
		}
		p.lo, p.hi = min(p.lo, r.Lo), max(p.hi, r.Hi)
	}
	p.ends = slices.IsSortedFunc(p.runs, func(a, b run) int { return cmp.Compare(a.off+a.n, b.off+b.n) })
	p.lo -= p.lo % p.h.Align
	aggregators := int64(p.h.Aggregators)
	p.domain = (p.hi - p.lo + aggregators - 1) / aggregators
	p.domain = (p.domain + p.h.Align - 1) / p.h.Align * p.h.Align
	buffer := int64(p.h.Buffer)
	p.rounds = (p.domain + buffer - 1) / buffer
}

// window is what an aggregator handles in a round.
func (p *twoPhase) window(aggregator int, round int64) (lo, hi int64) {
	lo = p.lo + int64(aggregator)*p.domain
	end := min(lo+p.domain, p.hi)
	lo += round * int64(p.h.Buffer)
	return lo, min(lo+int64(p.h.Buffer), end)
}

// rank returns the rank of an aggregator: they are spread over the ranks.
func (p *twoPhase) rank(aggregator int) int { return aggregator * p.f.c.Size() / p.h.Aggregators }

// run performs all rounds. After an error the rank goes on, because the others wait for it.
func (p *twoPhase) run(ctx context.Context) (int, error) {
	done := 0
	var failed error
	for round := range p.rounds {
		n, err := p.round(ctx, round)
		if err != nil && n < 0 { // of the messages
			return done, err
		}
		if err != nil && failed == nil {
			failed = err
		}
		done += max(n, 0)
	}
	return done, failed
}

// pieces returns the parts of the rank's runs that lie in a window.
func (p *twoPhase) pieces(lo, hi int64) []run {
	var out []run
	i := 0
	if p.ends {
		i = sort.Search(len(p.runs), func(i int) bool { return p.runs[i].off+p.runs[i].n > lo })
	}
	for ; i < len(p.runs) && p.runs[i].off < hi; i++ {
		r := p.runs[i]
		if r.off+r.n <= lo {
			continue
		}
		if cut := lo - r.off; cut > 0 {
			r.off, r.n, r.at = lo, r.n-cut, r.at+cut
		}
		r.n = min(r.n, hi-r.off)
		out = append(out, r)
	}
	return out
}

// round does one round and returns the bytes of this rank that it moved, or -1
// if messages failed.
func (p *twoPhase) round(ctx context.Context, round int64) (int, error) {
	c := p.f.c
	asked := make([][]run, c.Size()) // by rank of the aggregator
	msgs := make([][]byte, c.Size())
	mine := -1
	for aggregator := range p.h.Aggregators {
		rank := p.rank(aggregator)
		if rank == c.Rank() {
			mine = aggregator
		}
		asked[rank] = p.pieces(p.window(aggregator, round))
		msgs[rank] = p.request(asked[rank])
	}
	got, err := c.Alltoall(ctx, msgs)
	if err != nil {
		return -1, err
	}
	var replies [][]byte
	var failed error
	if replies = make([][]byte, c.Size()); mine >= 0 {
		failed = p.serve(got, replies)
	}
	if p.write {
		n := 0
		for _, runs := range asked {
			for _, r := range runs {
				n += int(r.n)
			}
		}
		return n, failed
	}
	back, err := c.Alltoall(ctx, replies)
	if err != nil {
		return -1, err
	}
	n := 0
	for rank, runs := range asked {
		from := back[rank]
		for _, r := range runs {
			if int64(len(from)) < r.n {
				break // the aggregator has failed: agree returns that
			}
			// Only bytes before the end of the file are copied: the rest of the
			// buffer keeps its contents, as in an independent read.
			n += copy(p.b[r.at:r.at+min(max(p.size-r.off, 0), r.n)], from)
			from = from[r.n:]
		}
	}
	return n, failed
}

// request is a message to an aggregator: the number of pieces, place and
// length of each, and for a write the data. Nothing is empty.
func (p *twoPhase) request(runs []run) []byte {
	if len(runs) == 0 {
		return nil
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(len(runs)))
	for _, r := range runs {
		b = binary.BigEndian.AppendUint64(b, uint64(r.off))
		b = binary.BigEndian.AppendUint64(b, uint64(r.n))
	}
	if p.write {
		for _, r := range runs {
			b = append(b, p.b[r.at:r.at+r.n]...)
		}
	}
	return b
}

// parse is the reverse of request.
func (p *twoPhase) parse(b []byte) (runs []run, data []byte, err error) {
	if len(b) == 0 {
		return nil, nil, nil
	}
	bad := fmt.Errorf("%w: request for pieces of a file", mpierr.ErrProtocol)
	if len(b) < 8 {
		return nil, nil, bad
	}
	n := binary.BigEndian.Uint64(b)
	if b = b[8:]; n > uint64(len(b)/16) {
		return nil, nil, bad
	}
	total := int64(0)
	for i := range int(n) {
		r := run{int64(binary.BigEndian.Uint64(b[16*i:])), int64(binary.BigEndian.Uint64(b[16*i+8:])), total}
		if r.n < 1 || r.n > int64(p.h.Buffer) || r.off < 0 {
			return nil, nil, bad
		}
		total += r.n
		runs = append(runs, r)
	}
	if data = b[16*n:]; p.write && int64(len(data)) != total {
		return nil, nil, bad
	}
	return runs, data, nil
}

// serve reads or writes for all ranks, and makes the replies.
func (p *twoPhase) serve(got, replies [][]byte) error {
	type piece struct {
		run
		data []byte
	}
	var all []piece
	bounds := make([]int, len(got)+1)
	for rank, msg := range got {
		runs, data, err := p.parse(msg)
		if err != nil {
			return err
		}
		for _, r := range runs {
			all = append(all, piece{r, nil})
			if p.write {
				all[len(all)-1].data = data[r.at : r.at+r.n]
			}
		}
		bounds[rank+1] = len(all)
	}
	if len(all) == 0 {
		return nil
	}
	// Stretches without gaps.
	order := make([]run, len(all))
	for i := range all {
		order[i] = all[i].run
	}
	sortRuns(order)
	merged := order[:1]
	for _, r := range order[1:] {
		last := &merged[len(merged)-1]
		if r.off <= last.off+last.n {
			last.n = max(last.n, r.off+r.n-last.off)
		} else {
			merged = append(merged, r)
		}
	}
	lo := merged[0].off
	span := int(merged[len(merged)-1].off + merged[len(merged)-1].n - lo)
	s := bufpool.Get(span)
	defer s.Put()
	mem := s.Bytes(span)
	if p.write {
		for _, a := range all {
			copy(mem[a.off-lo:], a.data)
		}
		for _, r := range merged {
			if _, err := p.f.os.WriteAt(mem[r.off-lo:r.off-lo+r.n], r.off); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range merged {
		merged[i].at = merged[i].off - lo
	}
	clear(mem) // what lies behind the end of the file
	if _, err := p.f.readSieved(merged, mem); err != nil {
		return err
	}
	for rank := range got {
		for _, a := range all[bounds[rank]:bounds[rank+1]] {
			replies[rank] = append(replies[rank], mem[a.off-lo:a.off-lo+a.n]...)
		}
	}
	return nil
}
