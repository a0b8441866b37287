package sctp

import (
	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

// sharedBatch is a GSO batch with packets of several associations between the same UDP
// addresses: the kernel takes them in one call, and the peer receives one GRO batch.
type sharedBatch struct {
	t        *Transport
	b        *batchBuf // tx describes what is in mem[from:to]
	from, to int
}

// flushList is flush for several associations, whose packets share GSO batches. It adds to
// each entry what is deferred. No lock is held.
func (t *Transport) flushList(list []touched) {
	t.flushes.Add(1)
	defer t.flushes.Add(-1)
	s := sharedBatch{t: t, b: batchBufs.Get().(*batchBuf)}
	for i := range list {
		c := &list[i]
		if c.flushing = 0; c.idle || c.a.flushing.Add(1) != 1 {
			continue
		}
		c.flushing = c.a.flushing.Load()
		c.deferred |= s.add(c.a)
	}
	s.send()
	batchBufs.Put(s.b)
	// Until here flushing kept other goroutines from transmitting for these associations:
	// their packets would have overtaken those in the batch.
	for i := range list {
		c := &list[i]
		if c.flushing != 0 && !c.a.flushing.CompareAndSwap(c.flushing, 0) {
			t.flushes.Add(1)
			c.a.mu.Lock()
			c.deferred |= c.a.transmitAll(t.now())
		}
	}
}

// add takes in all that an association has to send, and sets its timer.
func (s *sharedBatch) add(a *Association) (w deferred) {
	for {
		if s.to > s.from && s.b.tx.Segs >= s.segs() {
			s.send()
		}
		a.mu.Lock()
		if s.to > s.from && udpio.MaxBatchBytes-s.to < a.core.Room() {
			a.mu.Unlock()
			s.send()
			a.mu.Lock()
		}
		if a.core.Borrowing() || a.core.BatchOpen() {
			a.flushing.Add(1) // for transmitAll, which sends from other memory
			a.mu.Unlock()
			return w
		}
		segs := s.segs()
		if s.to > s.from {
			segs -= s.b.tx.Segs
		}
		now := s.t.now()
		var out []byte
		var tx core.Transmit
		ok := !s.t.full()
		if ok {
			out, tx, ok = a.core.PollTransmit(now, s.b.mem[s.to:s.to:udpio.MaxBatchBytes], segs)
		}
		if !ok || tx.Last {
			a.arm()
		}
		w |= a.drainAndUnlock()
		if ok {
			s.take(out, &tx)
		}
		if !ok || tx.Last {
			return w
		}
	}
}

func (s *sharedBatch) segs() int { return s.t.sockets().maxSegs }

// take appends packets, which are in the memory behind the batch already.
func (s *sharedBatch) take(out []byte, tx *core.Transmit) {
	at, n := s.to, len(out)
	if s.to > s.from && canAppend(&s.b.tx, s.to-s.from, tx) {
		s.b.tx.Segs += tx.Segs
		s.to += n
		return
	}
	s.send()
	if cap(out) > udpio.MaxBatchBytes-at { // it did not fit
		s.b.tx = *tx
		s.t.send(out, s.b)
		return
	}
	s.b.tx, s.from, s.to = *tx, at, at+n
}

// canAppend reports whether the packets that b describes may follow, in one GSO batch, the n
// bytes that a describes: same addresses and marks, and all packets but the last one equally
// long.
func canAppend(a *core.Transmit, n int, b *core.Transmit) bool {
	return a.Tuple == b.Tuple && a.ECN == b.ECN && a.DSCP == b.DSCP && !a.Fragment && !b.Fragment && n == a.Segs*a.SegSize &&
		(b.SegSize == a.SegSize || b.Segs == 1 && b.SegSize < a.SegSize)
}

// send transmits the batch, if it is not empty.
func (s *sharedBatch) send() {
	if s.to > s.from {
		s.t.send(s.b.mem[s.from:s.to], s.b)
	}
	s.from, s.to = 0, 0
}
