package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi/internal/hashid"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Partitioned communication (MPI-4.1, Chapter 4): one message with partitions that any goroutine
// marks as ready, or checks for arrival, one by one. Each pair of PsendInit and PrecvInit gets a
// communicator of the two ranks. Each partition is a message on it, with its number as tag, so on
// networks partitions travel on different streams and do not wait for lost packets of others.

// MaxPartitions bounds the partitions of a message.
const MaxPartitions = 1 << 20

// partHeadLen is the length of the header that the sender sends once: the numbers of partitions and
// of bytes.
const partHeadLen = 16

// partSide is the common state of a PartitionedSend and a PartitionedRecv.
type partSide struct {
	c     *Comm // of the two ranks: 0 sends, 1 receives; nil with ProcNull
	self  bool  // both are the caller
	parts int
	peer  int // as given
	tag   int
	buf   Buffer

	mu      sync.Mutex // guards what follows
	started bool       // Start was called
	active  bool       // the started operation is not done
	err     error      // of the last one that is done
}

func (c *Comm) openPart(b Buffer, partitions, peer, tag int, sends bool) (*partSide, error) {
	if b.err != nil {
		return nil, b.err
	}
	if partitions < 1 || partitions > MaxPartitions || b.Len()%partitions != 0 {
		return nil, fmt.Errorf("%w: %d bytes in %d partitions", ErrPartition, b.Len(), partitions)
	}
	if err := errors.Join(checkTag(tag), checkRank(c, peer)); err != nil {
		return nil, err
	}
	s := &partSide{parts: partitions, peer: peer, tag: tag, buf: b}
	if peer == ProcNull {
		return s, nil
	}
	// Operations match in the order they are made (MPI-4.1, Section 4.2).
	n := c.parts.next(partKey{sends, peer, tag})
	me, other := c.group[c.comm.Rank], c.comm.Peers[peer].ProcHandle
	from, to, side := c.comm.Rank, peer, c.side
	group, rank := []int32{me, other}, 0
	if !sends {
		from, to, side = peer, c.comm.Rank, 1-c.side
		group, rank = []int32{other, me}, 1
	}
	if c.remote == nil {
		side = 0
	}
	s.self = me == other
	id := hashid.Of("partitioned", fmt.Sprint(c.comm.ID, side, from, to, tag, n)) &^ uint64(p2p.SlotMask)
	s.c = c.w.newComm(id, group, rank, Info{InfoAllowOvertaking: "true"})
	s.c.prof = nil
	return s, nil
}

// begin starts the operation: run does it on a goroutine, unless there is no peer.
func (s *partSide) begin(w *World, run func() (Status, error)) (*Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active {
		return nil, fmt.Errorf("%w: started again before it was done", ErrPartition)
	}
	if s.c != nil {
		if err := s.c.comm.Usable(); err != nil {
			return nil, err
		}
	}
	s.started, s.err = true, nil
	if s.c == nil {
		return doneRequest(w, Status{Source: ProcNull, Tag: AnyTag}, nil), nil
	}
	s.active = true
	return goRequest(w, func() (Status, error) {
		st, err := run()
		s.mu.Lock()
		s.active, s.err = false, err
		s.mu.Unlock()
		return st, err
	}), nil
}

// Free gives the operation up. It must not be started. It is local.
func (s *partSide) Free() {
	// Messages to the caller itself share their contexts: the receiver frees them.
	if s.c != nil && (!s.self || s.c.comm.Rank == 1) {
		s.c.Free()
	}
}

// A PartitionedSend sends one message in parts, again and again
// (MPI_Psend_init).
type PartitionedSend struct {
	*partSide
	w     *World
	ready []bool            // parts marked in this round; guarded by mu
	sent  chan *p2p.Request // of these parts
}

// PsendInit prepares sending buf, in equal partitions, to rank dst of c (MPI_Psend_init). The
// matching [PrecvInit] has the same communicator and tag and as many bytes, but may have another
// number of partitions; operations of one pair of ranks and tag match in the order in which they
// are prepared. It does not block.
func PsendInit[T Element](c *Comm, buf []T, partitions, dst, tag int) (*PartitionedSend, error) {
	return c.PsendInit(Elements(buf), partitions, dst, tag)
}

// PsendInit is the function [PsendInit] of what b describes, which is divided into partitions of as many bytes of
// data (MPI_Psend_init: b has as many items as all partitions together).
func (c *Comm) PsendInit(b Buffer, partitions, dst, tag int) (*PartitionedSend, error) {
	s, err := c.openPart(b, partitions, dst, tag, true)
	if err != nil {
		return nil, c.raise(err)
	}
	if s.c != nil {
		head := binary.BigEndian.AppendUint64(make([]byte, 0, partHeadLen), uint64(partitions))
		head = binary.BigEndian.AppendUint64(head, uint64(b.Len()))
		if _, err := s.c.comm.Isend(p2p.SlotComm, p2p.SendStandard, head, 1, 0); err != nil {
			return nil, c.raise(err)
		}
	}
	return &PartitionedSend{partSide: s, w: c.w}, nil
}

// Start begins to send the message again; no partition is ready yet (MPI_Start). The request is
// done when all have been marked and the buffer may be used again. It does not block.
func (p *PartitionedSend) Start() (*Request, error) {
	sent := make(chan *p2p.Request, p.parts)
	r, err := p.begin(p.w, func() (Status, error) {
		var failed error
		for range p.parts {
			if _, err := (<-sent).Wait(context.Background()); err != nil && failed == nil {
				failed = err
			}
		}
		return Status{}, failed
	})
	if err == nil {
		p.mu.Lock()
		p.ready, p.sent = make([]bool, p.parts), sent
		p.mu.Unlock()
	}
	return r, err
}

// Pready says that partition i of the buffer may be sent (MPI_Pready). The partition must not be
// changed until the request is done. Partitions may be marked in any order and by any goroutine,
// each once after every Start: ErrPartition otherwise. It does not block.
func (p *PartitionedSend) Pready(i int) error {
	p.mu.Lock()
	if i < 0 || i >= p.parts || p.ready == nil || p.ready[i] {
		p.mu.Unlock()
		return fmt.Errorf("%w: partition %d of %d made ready", ErrPartition, i, p.parts)
	}
	p.ready[i] = true
	sent := p.sent
	p.mu.Unlock()
	if p.c == nil {
		return nil
	}
	r, n := p2p.GetRequest(p.w.eng), p.buf.Len()/p.parts
	err := p.c.comm.BeginSendPart(r, &p.buf.items, i*n, n, 1, i)
	if err != nil {
		r = p2p.GetRequest(p.w.eng) // so that the request ends
		r.Complete(err)
	}
	sent <- r
	return err
}

// PreadyRange is [PartitionedSend.Pready] for the partitions from first to last, both included
// (MPI_Pready_range).
func (p *PartitionedSend) PreadyRange(first, last int) error {
	for i := first; i <= last; i++ {
		if err := p.Pready(i); err != nil {
			return err
		}
	}
	return nil
}

// PreadyList is [PartitionedSend.Pready] for several partitions (MPI_Pready_list).
func (p *PartitionedSend) PreadyList(parts ...int) error {
	for _, i := range parts {
		if err := p.Pready(i); err != nil {
			return err
		}
	}
	return nil
}

// A PartitionedRecv receives one message in parts, again and again
// (MPI_Precv_init).
type PartitionedRecv struct {
	*partSide
	w    *World
	head *p2p.Request // what the sender tells
	said [partHeadLen]byte
	got  []*p2p.Request // of the sender's parts in this round; guarded by mu
}

// PrecvInit prepares receiving a message of [PsendInit] from rank src of c into buf, in equal
// partitions (MPI_Precv_init). Wildcards are not allowed. It does not block.
func PrecvInit[T Element](c *Comm, buf []T, partitions, src, tag int) (*PartitionedRecv, error) {
	return c.PrecvInit(Elements(buf), partitions, src, tag)
}

// PrecvInit is the function [PrecvInit] into what b describes (MPI_Precv_init). Datatypes of sender and receiver may
// have different layouts.
func (c *Comm) PrecvInit(b Buffer, partitions, src, tag int) (*PartitionedRecv, error) {
	s, err := c.openPart(b, partitions, src, tag, false)
	if err != nil {
		return nil, c.raise(err)
	}
	p := &PartitionedRecv{partSide: s, w: c.w}
	if s.c != nil {
		if p.head, err = s.c.comm.Irecv(p2p.SlotComm, p.said[:], 0, 0); err != nil {
			return nil, c.raise(err)
		}
	}
	return p, nil
}

// Start begins to receive the message again (MPI_Start). The buffer must not be touched until the
// request is done, except for partitions that have arrived. It does not block.
func (p *PartitionedRecv) Start() (*Request, error) {
	return p.begin(p.w, p.receive)
}

// receive receives the message.
func (p *PartitionedRecv) receive() (st Status, err error) {
	defer func() {
		p.mu.Lock()
		p.got = nil // Parrived knows the result from the end on
		p.mu.Unlock()
	}()
	if _, err := p.head.Wait(context.Background()); err != nil {
		return Status{}, err
	}
	n, size := binary.BigEndian.Uint64(p.said[:]), binary.BigEndian.Uint64(p.said[8:])
	if size != uint64(p.buf.Len()) || n < 1 || n > MaxPartitions || size%n != 0 {
		return Status{}, fmt.Errorf("%w: %d partitions of a message of %d bytes for a buffer of %d",
			ErrCount, n, size, p.buf.Len())
	}
	got, each := make([]*p2p.Request, 0, n), int(size/n)
	for i := range int(n) {
		r := p2p.GetRequest(p.w.eng)
		if err := p.c.comm.BeginRecvPart(r, &p.buf.items, i*each, each, 0, i); err != nil {
			for _, r := range got {
				r.Cancel(ErrCanceled)
			}
			return Status{}, err
		}
		got = append(got, r)
	}
	p.mu.Lock()
	p.got = got
	p.mu.Unlock()
	var failed error
	for _, r := range got {
		if _, err := r.Wait(context.Background()); err != nil && failed == nil {
			failed = err
		}
	}
	return Status{Source: p.peer, Tag: p.tag, Bytes: p.buf.Len()}, failed
}

// Parrived reports whether partition i of the buffer holds its data (MPI_Parrived). It does not
// block; it polls the transport once.
func (p *PartitionedRecv) Parrived(i int) (bool, error) {
	p.mu.Lock()
	started, active, err, got := p.started, p.active, p.err, p.got
	p.mu.Unlock()
	if i < 0 || i >= p.parts || !started {
		return false, fmt.Errorf("%w: partition %d of %d looked at", ErrPartition, i, p.parts)
	}
	if !active {
		return true, err
	}
	p.w.eng.PollOnce()
	if len(got) == 0 {
		return false, nil
	}
	// The sender's parts that overlap this one.
	first := i * len(got) / p.parts
	last := ((i+1)*len(got) - 1) / p.parts
	for _, r := range got[first : last+1] {
		if !r.Finished.Load() {
			return false, nil
		}
		if r.Err != nil {
			return false, r.Err
		}
	}
	return true, nil
}
