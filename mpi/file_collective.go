package mpi

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/weftstack/weft/internal/bufpool"
)

// Collective reads and writes work in two phases (MPI-4.1, Section 14.2.8 calls
// it collective buffering): the stretch of the file that the ranks access
// together is cut into as many domains as there are nodes; each of these ranks
// reads or writes its domain, a buffer at a time, and exchanges the pieces with
// the ranks that they are of. No byte is written that no rank gave.

// fileReach is what the ranks tell each other about their part.
type fileReach struct {
	Lo, Hi, N int64 // of the file; how much data
	Size      int64 // of the file, as the rank sees it
	Bad       int64
}

// collect performs a collective operation when its turn has come. bad is what
// is wrong with the rank's own part.
func (f *file) collect(ctx context.Context, op fileOp, bad error, before, done chan struct{}) (int, error) {
	if err := awaitTurn(ctx, before, done); err != nil {
		return 0, err
	}
	defer close(done)
	if bad != nil {
		op.b, op.off = nil, 0
		op.view, _ = f.now()
	}
	if op.at == atShared {
		if err := f.ordered(ctx, &op); err != nil && bad == nil {
			bad, op.b, op.off = err, nil, 0
		}
	}
	rep := op.view.rep
	if !rep.converts() {
		return f.together(ctx, op, op.b, bad)
	}
	b := make([]byte, len(op.b)/f.elem.Size*rep.size)
	if op.write && bad == nil {
		bad = rep.toFile(b, op.b) // told to the others
	}
	n, err := f.together(ctx, op, b, bad)
	n /= rep.size
	if !op.write && err == nil {
		if err = f.agree(ctx, rep.fromFile(op.b[:n*f.elem.Size], b[:n*rep.size])); err != nil {
			return 0, err
		}
	}
	return n * f.elem.Size, err
}

// ordered gives the ranks places behind one another at the shared pointer.
func (f *file) ordered(ctx context.Context, op *fileOp) error {
	n := int64(len(op.b) / f.elem.Size)
	sum := []int64{n}
	if err := Scan(ctx, f.c, sum, sum, Sum); err != nil {
		return err
	}
	start := []int64{0}
	last := f.c.Size() - 1
	if f.c.rank == last { // it knows the total
		var err error
		if start[0], err = f.shared.FetchAndOp(ctx, sum[0], 0, 0, Sum); err != nil {
			return err
		}
	}
	if err := Bcast(ctx, f.c, start, last); err != nil {
		return err
	}
	off, err := f.bytes(op.view, start[0]+sum[0]-n, len(op.b))
	op.off = off
	return err
}

// together performs a collective operation on all ranks.
func (f *file) together(ctx context.Context, op fileOp, b []byte, bad error) (int, error) {
	runs := op.view.list(op.off, int64(len(b)))
	mine := fileReach{N: int64(len(b))}
	if len(runs) > 0 {
		mine.Lo, mine.Hi = runs[0].off, endOf(runs)
	}
	if bad != nil {
		mine.Bad = 1
	}
	var err error
	if mine.Size, err = f.size(); err != nil && bad == nil {
		bad, mine.Bad = err, 1
	}
	all := make([]fileReach, f.c.Size())
	if err := Allgather(ctx, f.c, []fileReach{mine}, all); err != nil {
		return 0, err
	}
	size := int64(0)
	for _, r := range all {
		if r.Bad != 0 { // all ranks see it
			return 0, f.agree(ctx, bad)
		}
		size = max(size, r.Size)
	}
	unlock, err := f.lockAll(ctx)
	if err != nil {
		return 0, err
	}
	var n int
	h := f.hints.Load()
	if h.mixed(all, op.write) {
		p := &phases{f: f, h: h, write: op.write, b: b, runs: runs, size: size}
		p.divide(all)
		n, err = p.run(ctx)
		if op.view.mixed && !op.write {
			n = min(n, before(runs, size))
		}
	} else if op.write {
		n, err = f.writeRuns(op.view, op.off, b)
	} else {
		n, err = f.readRuns(op.view, op.off, b)
	}
	err = f.agree(ctx, err)
	return n, unlock(ctx, err)
}

// lockAll keeps other operations away in atomic mode: rank 0 holds the lock for
// all.
func (f *file) lockAll(ctx context.Context) (unlock func(context.Context, error) error, err error) {
	if !f.atomic.Load() {
		return func(_ context.Context, err error) error { return err }, nil
	}
	free := func() {}
	if f.c.rank == 0 {
		var unlock func()
		if unlock, err = f.lock(ctx, true); err == nil {
			free = unlock
		}
	}
	if err = f.agree(ctx, err); err != nil {
		free()
		return nil, err
	}
	return func(_ context.Context, err error) error {
		free() // agree has waited for all
		return err
	}, nil
}

// mixed reports whether to work in two phases. All ranks find the same.
func (h *fileHints) mixed(all []fileReach, write bool) bool {
	if how := h.how(write); how != bufferAuto {
		return how == bufferAlways
	}
	sorted := slices.DeleteFunc(slices.Clone(all), func(r fileReach) bool { return r.N == 0 })
	slices.SortFunc(sorted, func(a, b fileReach) int { return cmp.Compare(a.Lo, b.Lo) })
	for i := range sorted {
		if i > 0 && sorted[i].Lo < sorted[i-1].Hi {
			return true
		}
	}
	return false
}

// list returns the runs of n bytes of data from pos on, in the order of the file.
func (v *fileView) list(pos, n int64) []fileRun {
	var runs []fileRun
	at := int64(0)
	v.each(pos, n, func(off, n int64) bool {
		if k := len(runs) - 1; k >= 0 && runs[k].off+runs[k].n == off {
			runs[k].n += n
		} else {
			runs = append(runs, fileRun{off, n, at})
		}
		at += n
		return true
	})
	if v.mixed {
		sortRuns(runs)
	}
	return runs
}

// endOf returns where in the file the last byte of runs is.
func endOf(runs []fileRun) int64 {
	end := int64(0)
	for _, r := range runs {
		end = max(end, r.off+r.n)
	}
	return end
}

// before returns how much of the data of all runs, from the first on, lies before
// byte size of the file.
func before(runs []fileRun, size int64) int {
	n, total := int64(-1), int64(0)
	for _, r := range runs {
		total += r.n
		if there := min(max(size-r.off, 0), r.n); there < r.n && (n < 0 || r.at+there < n) {
			n = r.at + there
		}
	}
	if n < 0 {
		n = total
	}
	return int(n)
}

// phases is one collective operation of a rank.
type phases struct {
	f      *file
	h      *fileHints
	write  bool
	b      []byte
	runs   []fileRun // of this rank; ends are in order, too, unless some overlap
	ends   bool      // they are
	size   int64     // of the file
	lo, hi int64     // of all ranks
	domain int64     // bytes of the file for each node
	rounds int64
}

// divide cuts the file into domains.
func (p *phases) divide(all []fileReach) {
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
	p.ends = slices.IsSortedFunc(p.runs, func(a, b fileRun) int { return cmp.Compare(a.off+a.n, b.off+b.n) })
	p.lo -= p.lo % p.h.align
	nodes := int64(p.h.nodes)
	p.domain = (p.hi - p.lo + nodes - 1) / nodes
	p.domain = (p.domain + p.h.align - 1) / p.h.align * p.h.align
	room := int64(p.h.room)
	p.rounds = (p.domain + room - 1) / room
}

// window is what a node handles in a round.
func (p *phases) window(node int, round int64) (lo, hi int64) {
	lo = p.lo + int64(node)*p.domain
	end := min(lo+p.domain, p.hi)
	lo += round * int64(p.h.room)
	return lo, min(lo+int64(p.h.room), end)
}

// node returns the rank that is a node: they are spread over the ranks.
func (p *phases) rank(node int) int { return node * p.f.c.Size() / p.h.nodes }

// run does all rounds. After an error the rank goes on, so that the others
// need not wait.
func (p *phases) run(ctx context.Context) (int, error) {
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
func (p *phases) pieces(lo, hi int64) []fileRun {
	var out []fileRun
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
func (p *phases) round(ctx context.Context, round int64) (int, error) {
	c := p.f.c
	asked := make([][]fileRun, c.Size()) // by rank of the node
	msgs := make([][]byte, c.Size())
	mine := -1
	for node := range p.h.nodes {
		rank := p.rank(node)
		if rank == c.rank {
			mine = node
		}
		asked[rank] = p.pieces(p.window(node, round))
		msgs[rank] = p.request(asked[rank])
	}
	got, err := AlltoallSlices(ctx, c, msgs)
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
	back, err := AlltoallSlices(ctx, c, replies)
	if err != nil {
		return -1, err
	}
	n := 0
	for rank, runs := range asked {
		from := back[rank]
		for _, r := range runs {
			if int64(len(from)) < r.n {
				break // the node failed, and tells
			}
			// Only bytes before the end of the file are copied: the rest of the
			// buffer keeps its contents, as in an independent read.
			n += copy(p.b[r.at:r.at+min(max(p.size-r.off, 0), r.n)], from)
			from = from[r.n:]
		}
	}
	return n, failed
}

// request says what the rank wants of a node: the number of pieces, place and
// length of each, and for a write the data. Nothing is empty.
func (p *phases) request(runs []fileRun) []byte {
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
func (p *phases) parse(b []byte) (runs []fileRun, data []byte, err error) {
	if len(b) == 0 {
		return nil, nil, nil
	}
	bad := fmt.Errorf("%w: request for pieces of a file", ErrProtocol)
	if len(b) < 8 {
		return nil, nil, bad
	}
	n := binary.BigEndian.Uint64(b)
	if b = b[8:]; n > uint64(len(b)/16) {
		return nil, nil, bad
	}
	total := int64(0)
	for i := range int(n) {
		r := fileRun{int64(binary.BigEndian.Uint64(b[16*i:])), int64(binary.BigEndian.Uint64(b[16*i+8:])), total}
		if r.n < 1 || r.n > int64(p.h.room) || r.off < 0 {
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
func (p *phases) serve(got, replies [][]byte) error {
	type piece struct {
		fileRun
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
	order := make([]fileRun, len(all))
	for i := range all {
		order[i] = all[i].fileRun
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
