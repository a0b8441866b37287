package rma

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/cma"
	"github.com/weftstack/weft/mpi/internal/ctxmutex"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/verbs"
)

// aggregatedPuts are short Puts to a target that are sent together: one system call copies many of
// them, and RDMA Writes that are posted together share packets. Their data is copied here. A Put
// need not be complete at the target before a synchronization (MPI-4.1, Section 12.5).
type aggregatedPuts struct {
	some atomic.Bool    // true while puts is not nil
	mu   ctxmutex.Mutex // guards puts
	puts *putList
}

// putList is the data of aggregated Puts and their places at the target.
type putList struct {
	mem    [AggregateBytes]byte
	n      int // bytes in mem
	pieces [cma.MaxPieces]cma.Piece
	used   int  // pieces in use
	count  int  // Puts in the list
	rdma   bool // sent by RDMA Write, else copied by the system

	wrs []verbs.SendWR // reused memory: a work request for each piece
}

const (
	// AggregateLimit is the length up to which the system copies Puts aggregated, in bytes.
	AggregateLimit = 4 << 10
	// AggregatePieces and AggregateBytes bound what is aggregated for a target of a window.
	AggregatePieces = cma.MaxPieces
	AggregateBytes  = 64 << 10
)

var putLists = sync.Pool{New: func() any { return new(putList) }}

// add adds a Put, if there is room. A Put that begins where the last one ends extends its piece, up
// to the given length, because each piece costs time.
func (p *putList) add(src []byte, off, longest int) bool {
	if len(src) > len(p.mem)-p.n {
		return false
	}
	if last := p.used - 1; last >= 0 && p.pieces[last].Off+p.pieces[last].N == off &&
		p.pieces[last].N+len(src) <= longest {
		p.pieces[last].N += len(src)
	} else if p.used < len(p.pieces) {
		p.pieces[p.used] = cma.Piece{Off: off, N: len(src)}
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

// aggregate adds a Put of up to AggregateLimit bytes that the system copies. It reports false if
// the system has refused to copy earlier ones.
func (w *Window) aggregate(ctx context.Context, src []byte, target, off int) (bool, error) {
	g, d := &w.to[target].aggregated, &w.direct[target]
	if err := g.mu.Lock(ctx); err != nil {
		return false, err
	}
	defer g.mu.Unlock()
	// After a refusal RDMA Writes may be reading the list: it must not grow.
	if g.puts != nil && d.open.Load() && g.puts.add(src, off, AggregateBytes) {
		return true, nil
	}
	if err := w.copyGathered(ctx, target); err != nil || !d.open.Load() {
		return false, err
	}
	p := putLists.Get().(*putList)
	p.add(src, off, AggregateBytes)
	g.set(p)
	return true, nil
}

// aggregateWrite adds a Put of up to rdmadev.MaxInline bytes that goes by RDMA Write, unless it is the
// first one since a synchronization: that one is sent at once, and aggregateWrite reports false.
// Further ones share packets, because a packet of its own for each would take longer.
func (w *Window) aggregateWrite(ctx context.Context, src []byte, target, off int) (bool, error) {
	t := &w.to[target]
	g := &t.aggregated
	if !g.some.Load() && !t.bursts() {
		return false, nil
	}
	if err := g.mu.Lock(ctx); err != nil {
		return false, err
	}
	defer g.mu.Unlock()
	if g.puts != nil && g.puts.rdma && g.puts.add(src, off, rdmadev.MaxInline) {
		return true, nil
	}
	if err := w.copyGathered(ctx, target); err != nil {
		return false, err
	}
	p := putLists.Get().(*putList)
	p.rdma = true
	p.add(src, off, rdmadev.MaxInline)
	g.set(p)
	return true, nil
}

// writeAggregated posts an RDMA Write for each aggregated piece.
func (w *Window) writeAggregated(ctx context.Context, target int, p *putList) error {
	c, remote, err := w.connTo(ctx, target)
	if err != nil {
		return err
	}
	at := 0
	for _, k := range p.pieces[:p.used] {
		p.wrs = append(p.wrs, verbs.SendWR{Op: verbs.OpWrite, Inline: p.mem[at : at+k.N], Remote: remote.At(uint64(k.Off))})
		at += k.N
	}
	n, err := c.PostAll(ctx, p.wrs, nil)
	clear(p.wrs)
	p.wrs = p.wrs[:0]
	if err == nil {
		w.to[target].posted(c, n, true)
	}
	return err
}

// reuse returns the list to the pool. No work request references it.
func (p *putList) reuse() {
	p.n, p.used, p.count, p.rdma = 0, 0, 0, false
	putLists.Put(p)
}

// spill sends the Puts that are aggregated for a target. The next synchronization returns an error
// of it, too, because it is that of earlier Puts.
func (w *Window) spill(ctx context.Context, target int) error {
	g := &w.to[target].aggregated
	if !g.some.Load() {
		return nil
	}
	if err := g.mu.Lock(ctx); err != nil {
		return err
	}
	defer g.mu.Unlock()
	return w.copyGathered(ctx, target)
}

// copyGathered is spill with the mutex of the aggregatedPuts held. What the system refuses to copy
// is sent by RDMA Write. If ctx ends the Puts stay aggregated.
func (w *Window) copyGathered(ctx context.Context, target int) error {
	t := &w.to[target]
	p := t.aggregated.puts
	if p == nil {
		return nil
	}
	if p.rdma {
		err := w.writeAggregated(ctx, target, p)
		if err != nil && ctx.Err() != nil {
			return err // the list stays
		}
		if err != nil {
			t.note(err)
		}
		t.aggregated.set(nil)
		p.reuse()
		return err
	}
	d := &w.direct[target]
	if w.c.Failure(target) == nil && d.open.Load() &&
		cma.WritePieces(d.pid, d.addr, p.mem[:p.n], p.pieces[:p.used]) == nil {
		t.counters.Writes.Add(p.count, p.n)
		t.aggregated.set(nil)
		p.reuse()
		return nil
	}
	d.open.Store(false)
	at := 0
	for _, k := range p.pieces[:p.used] {
		// Work requests may reference the list, so it is not reused.
		if err := w.writeRDMA(ctx, p.mem[at:at+k.N], target, k.Off); err != nil {
			if ctx.Err() == nil {
				t.note(err)
				t.aggregated.set(nil)
			}
			return err
		}
		at += k.N
	}
	t.aggregated.set(nil)
	return nil
}
