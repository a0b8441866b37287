package mpi

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/verbs"
)

// aggregatedPuts are short Puts to a target that wait for more of them: the system copies
// many by one call, and RDMA Writes that are posted together share packets. Their data is
// copied here. A Put need not be complete at the target before a synchronization (MPI-4.1,
// Section 12.5).
type aggregatedPuts struct {
	some atomic.Bool // true while puts is not nil
	mu   ctxMutex    // held by the one that adds to puts or has them copied
	puts *putList
}

// putList is the data of Puts, and where it goes.
type putList struct {
	mem    [aggregateBytes]byte
	n      int // bytes in mem
	pieces [aggregatePieces]piece
	used   int  // pieces
	count  int  // Puts
	rdma   bool // they go by RDMA Write

	wrs []verbs.SendWR // memory for those of the pieces
}

// piece is a place in the memory of a target.
type piece struct{ off, n int }

const (
	// aggregateLimit is the length up to which Puts are aggregated.
	aggregateLimit = 4 << 10
	// aggregatePieces and aggregateBytes bound what is aggregated for a target of a window. The
	// system takes 1024 pieces at most.
	aggregatePieces = 64
	aggregateBytes  = 64 << 10
)

var putLists = sync.Pool{New: func() any { return new(putList) }}

// add takes a Put, if there is room. One that begins where the last ends continues its
// piece, up to the given length: each takes its time.
func (p *putList) add(src []byte, off, longest int) bool {
	if len(src) > len(p.mem)-p.n {
		return false
	}
	if last := p.used - 1; last >= 0 && p.pieces[last].off+p.pieces[last].n == off && p.pieces[last].n+len(src) <= longest {
		p.pieces[last].n += len(src)
	} else if p.used < len(p.pieces) {
		p.pieces[p.used] = piece{off, len(src)}
		p.used++
	} else {
		return false
	}
	p.n += copy(p.mem[p.n:], src)
	p.count++
	return true
}

// set replaces the list. g.mu is held.
func (g *aggregatedPuts) set(p *putList) {
	g.puts = p
	g.some.Store(p != nil)
}

// aggregate takes a Put of up to aggregateLimit bytes. It reports false if the system has
// refused to copy earlier ones.
func (w *window) aggregate(ctx context.Context, src []byte, target, off int) (bool, error) {
	g, d := &w.to[target].aggregated, &w.direct[target]
	if err := g.mu.lock(ctx); err != nil {
		return false, err
	}
	defer g.mu.unlock()
	// What was refused may be under way by RDMA, which takes it from the list.
	if g.puts != nil && d.open.Load() && g.puts.add(src, off, aggregateBytes) {
		return true, nil
	}
	if err := w.copyGathered(ctx, target); err != nil || !d.open.Load() {
		return false, err
	}
	p := putLists.Get().(*putList)
	p.add(src, off, aggregateBytes)
	g.set(p)
	return true, nil
}

// aggregateWrite takes a Put of up to rmaInline bytes that goes by RDMA Write, if it is not
// the first since a synchronization: a packet for each would take longer than many do in
// one. The first goes at once, for which it reports false.
func (w *window) aggregateWrite(ctx context.Context, src []byte, target, off int) (bool, error) {
	t := &w.to[target]
	g := &t.aggregated
	if !g.some.Load() && !t.bursts() {
		return false, nil
	}
	if err := g.mu.lock(ctx); err != nil {
		return false, err
	}
	defer g.mu.unlock()
	if g.puts != nil && g.puts.rdma && g.puts.add(src, off, rmaInline) {
		return true, nil
	}
	if err := w.copyGathered(ctx, target); err != nil {
		return false, err
	}
	p := putLists.Get().(*putList)
	p.rdma = true
	p.add(src, off, rmaInline)
	g.set(p)
	return true, nil
}

// writeAggregated posts what is aggregated, of pieces of up to rmaInline bytes.
func (w *window) writeAggregated(ctx context.Context, target int, p *putList) error {
	c, remote, err := w.connTo(ctx, target)
	if err != nil {
		return err
	}
	at := 0
	for _, k := range p.pieces[:p.used] {
		p.wrs = append(p.wrs, verbs.SendWR{Op: verbs.OpWrite, Inline: p.mem[at : at+k.n], Remote: remote.At(uint64(k.off))})
		at += k.n
	}
	n, err := c.postAll(ctx, p.wrs, nil)
	clear(p.wrs)
	p.wrs = p.wrs[:0]
	if err == nil {
		w.to[target].posted(c, n)
	}
	return err
}

// reuse gives back a list that nobody reads any more.
func (p *putList) reuse() {
	p.n, p.used, p.count, p.rdma = 0, 0, 0, false
	putLists.Put(p)
}

// spill has what is aggregated for a target copied to it. An error is reported by the
// next synchronization, too: it is that of earlier Puts.
func (w *window) spill(ctx context.Context, target int) error {
	g := &w.to[target].aggregated
	if !g.some.Load() {
		return nil
	}
	if err := g.mu.lock(ctx); err != nil {
		return err
	}
	defer g.mu.unlock()
	return w.copyGathered(ctx, target)
}

// copyGathered is spill for those who have the turn. What the system refuses is put by
// RDMA, or fails as that does; if ctx ends it stays aggregated.
func (w *window) copyGathered(ctx context.Context, target int) error {
	t, peer := &w.to[target], w.c.peers[target]
	p := t.aggregated.puts
	if p == nil {
		return nil
	}
	if p.rdma {
		err := w.writeAggregated(ctx, target, p)
		if err != nil && ctx.Err() != nil {
			return err // it stays
		}
		if err != nil {
			t.note(err)
		}
		t.aggregated.set(nil)
		p.reuse()
		return err
	}
	d := &w.direct[target]
	if peer.failure() == nil && d.open.Load() && writePieces(d.pid, d.addr, p.mem[:p.n], p.pieces[:p.used]) == nil {
		peer.rdma.writes.add(p.count, p.n)
		t.aggregated.set(nil)
		p.reuse()
		return nil
	}
	d.open.Store(false)
	at := 0
	for _, k := range p.pieces[:p.used] {
		// RDMA may take the data from where it is, so the list is not used again.
		if err := w.writeRDMA(ctx, p.mem[at:at+k.n], target, k.off); err != nil {
			if ctx.Err() == nil {
				t.note(err)
				t.aggregated.set(nil)
			}
			return err
		}
		at += k.n
	}
	t.aggregated.set(nil)
	return nil
}
