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
	w     *World
	c     *Comm // of the two ranks: 0 sends, 1 receives; nil with ProcNull
	self  bool  // both are the caller
	parts int
	peer  int // as given
	tag   int
	buf   Buffer

	mu       sync.Mutex // guards what follows
	started  bool       // Start was called
	active   *Request   // the started operation; nil when it is done
	status   Status     // for it
	messages []partMessage
	left     int   // messages of the started operation that are not done
	err      error // the first failure since Start
}

// partMessage is one message of a partitioned operation: a partition of the sender.
type partMessage struct {
	s      *partSide
	r      *p2p.Request
	waiter p2p.Waiter // its Found is done
	over   bool       // r is done; guarded by s.mu
}

// makeMessages makes room for n messages.
func (s *partSide) makeMessages(n int) []partMessage {
	ms := make([]partMessage, n)
	for i := range ms {
		ms[i].s = s
		ms[i].waiter.Found = ms[i].done
	}
	return ms
}

// reset prepares the messages for the next start. mu is held.
func (s *partSide) reset(ms []partMessage) {
	for i := range ms {
		m := &ms[i]
		if m.r != nil {
			m.r.Recycle()
			m.r = nil
		}
		m.over = false
	}
	s.messages, s.left = ms, len(ms)
}

// await has done called when r is done, which begin has started unless it returns an error.
func (m *partMessage) await(r *p2p.Request, begin func(*p2p.Request) error) error {
	err := begin(r)
	if err != nil {
		r = p2p.GetRequest(m.s.w.eng) // so that the operation ends
		r.Complete(err)
	}
	m.r = r
	if !r.AddWaiter(&m.waiter) {
		m.done()
	}
	return err
}

// done is called when the message is done, with the mutex of its request held or not. The operation ends with
// the last one.
func (m *partMessage) done() {
	s := m.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = m.r.Err
	}
	m.over = true
	if s.left--; s.left == 0 {
		s.end()
	}
}

// end ends the started operation. mu is held.
func (s *partSide) end() {
	r := s.active
	s.active = nil
	r.request.Status = p2p.Status(s.status)
	r.request.Complete(s.err)
}

// begin makes the started operation. It is done at once if there is no peer.
func (s *partSide) begin() (*Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active != nil {
		return nil, fmt.Errorf("%w: started again before it was done", ErrPartition)
	}
	s.started, s.err = true, nil
	if s.c == nil {
		return doneRequest(s.w, Status{Source: ProcNull, Tag: AnyTag}, nil), nil
	}
	if err := s.c.comm.Usable(); err != nil {
		return nil, err
	}
	r := newRequest(s.w)
	s.active = r
	return r, nil
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
	s := &partSide{w: c.w, parts: partitions, peer: peer, tag: tag, buf: b}
	if peer == ProcNull {
		return s, nil
	}
	// Operations match in the order they are made (MPI-4.1, Section 4.2).
	n := c.parts.next(partKey{sends, peer, tag})
	me, other := c.group[c.comm.Rank], c.comm.Peers[peer].ProcHandle
	from, to, side, way := c.comm.Rank, peer, c.side, "to"
	group, rank := []int32{me, other}, 0
	if !sends {
		from, to, side, way = peer, c.comm.Rank, 1-c.side, "from"
		group, rank = []int32{other, me}, 1
	}
	if c.remote == nil {
		side = 0
	}
	s.self = me == other
	id := hashid.Of("partitioned", fmt.Sprint(c.comm.ID, side, from, to, tag, n)) &^ uint64(p2p.SlotMask)
	s.c = c.w.newComm(id, group, rank, Info{InfoAllowOvertaking: "true"})
	s.c.prof = nil
	s.c.serve(c.Name(), fmt.Sprintf("a partitioned message %s rank %d with tag %d", way, peer, tag))
	return s, nil
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
	ready []bool // parts marked since Start; guarded by mu
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
	return &PartitionedSend{partSide: s}, nil
}

// Start begins to send the message again; no partition is ready yet (MPI_Start). The request is
// done when all have been marked and the buffer may be used again. It does not block.
func (p *PartitionedSend) Start() (*Request, error) {
	r, err := p.begin()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready == nil {
		p.ready = make([]bool, p.parts)
		if p.c != nil {
			p.messages = p.makeMessages(p.parts)
		}
	}
	clear(p.ready)
	p.reset(p.messages)
	return r, nil
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
	p.mu.Unlock()
	if p.c == nil {
		return nil
	}
	n := p.buf.Len() / p.parts
	return p.messages[i].await(p2p.GetRequest(p.w.eng), func(r *p2p.Request) error {
		return p.c.comm.BeginSendPart(r, &p.buf.items, i*n, n, 1, i)
	})
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
	head *p2p.Request // what the sender tells
	said [partHeadLen]byte
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
	s.status = Status{Source: src, Tag: tag, Bytes: b.Len()}
	p := &PartitionedRecv{partSide: s}
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
	r, err := p.begin()
	switch {
	case err != nil || p.c == nil:
	case p.head.Finished.Load():
		p.receive()
	default: // the first time, before the sender has told
		go func() {
			_ = p.head.Await(context.Background())
			p.receive()
		}()
	}
	return r, err
}

// receive posts receives for the messages of the started operation.
func (p *PartitionedRecv) receive() {
	n, err := p.senderParts()
	if err != nil {
		p.mu.Lock()
		p.err = err
		p.end()
		p.mu.Unlock()
		return
	}
	ms := p.messages // only receive changes them
	if ms == nil {
		ms = p.makeMessages(n)
	}
	p.mu.Lock()
	p.reset(ms)
	p.mu.Unlock()
	each := p.buf.Len() / n
	for i := range ms {
		// If one cannot be posted, others may still come: they belong to the operation, which ends with the error.
		_ = ms[i].await(p2p.GetRequest(p.w.eng), func(r *p2p.Request) error {
			return p.c.comm.BeginRecvPart(r, &p.buf.items, i*each, each, 0, i)
		})
	}
}

// senderParts returns how many partitions the sender has.
func (p *PartitionedRecv) senderParts() (int, error) {
	if err := p.head.Err; err != nil {
		return 0, err
	}
	n, size := binary.BigEndian.Uint64(p.said[:]), binary.BigEndian.Uint64(p.said[8:])
	if size != uint64(p.buf.Len()) || n < 1 || n > MaxPartitions || size%n != 0 {
		return 0, fmt.Errorf("%w: %d partitions of a message of %d bytes for a buffer of %d",
			ErrCount, n, size, p.buf.Len())
	}
	return int(n), nil
}

// Parrived reports whether partition i of the buffer holds its data (MPI_Parrived). If all do, the request is
// done. It does not block; it polls the transport once.
func (p *PartitionedRecv) Parrived(i int) (bool, error) {
	p.mu.Lock()
	started := p.started
	p.mu.Unlock()
	if i < 0 || i >= p.parts || !started {
		return false, fmt.Errorf("%w: partition %d of %d looked at", ErrPartition, i, p.parts)
	}
	if p.c != nil {
		p.w.eng.PollOnce()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active == nil || p.err != nil {
		return p.active == nil, p.err
	}
	n := len(p.messages)
	if n == 0 {
		return false, nil
	}
	// The sender's parts that overlap this one.
	for k := i * n / p.parts; k <= ((i+1)*n-1)/p.parts; k++ {
		if !p.messages[k].over {
			return false, nil
		}
	}
	return true, nil
}
