package coll

import (
	"unsafe"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/op"
)

// Comm is the communicator as an algorithm uses it. All messages of a schedule carry the same
// tag and context, so messages between two ranks match in the order in which they are sent. A
// blocking method returns when its buffers may be used again. A peer of ProcNull stands for no
// process: nothing is sent to it or received from it.
//
// A message of another length, or of another element type, than its receiver expects is not an
// error of Recv: the implementation remembers the first one and reports it at the end, so that
// the other ranks are not left waiting because this one gave up.
type Comm interface {
	// Send sends b to rank dst.
	Send(b []byte, dst int) error
	// Recv receives exactly len(b) bytes from rank src.
	Recv(b []byte, src int) error
	// Sendrecv sends sb to dst while it receives rb from src.
	Sendrecv(sb []byte, dst int, rb []byte, src int) error
	// SendrecvReduce is Sendrecv with a fused reduction: it stores to acc, which may be mine, the
	// combination, by the operator of the schedule, of mine and what comes from src, as it comes. lower is
	// true if that comes from lower ranks, which makes it the left operand. sb must not overlap acc.
	SendrecvReduce(sb []byte, dst int, acc, mine []byte, src int, lower bool) error
	// StartSend and StartRecv start what Send and Recv do. Wait waits for all that was started.
	// After an error of one of them, what was started has ended.
	StartSend(b []byte, dst int) error
	StartRecv(b []byte, src int) error
	Wait() error
	// StartSendAwaited is StartSend, with a copy of b if the transport takes one, so that Wait does
	// not last until the other end has acknowledged b.
	StartSendAwaited(b []byte, dst int) error
	// Copy copies src to dst, as the function copy does, and Combine stores a op b to acc by the operator of
	// the schedule. Algorithms touch the memory of messages by no other means, so that they can be recorded.
	Copy(dst, src []byte)
	Combine(acc, a, b []byte)
}

// Special ranks.
const (
	ProcNull = -2 // of no process
	Root     = -3 // as the root of an operation between two groups: the caller is it
)

// A Schedule is one collective operation on one rank: what an algorithm works on. Its creator has
// checked the buffers.
type Schedule struct {
	Comm

	Rank int // of the caller
	Size int // of the communicator; of the remote group of an intercommunicator
	Root int

	SendBuf, RecvBuf       []byte
	Block                  int     // bytes of the block of one rank, in collectives with equal blocks
	SendLayout, RecvLayout *Layout // of blocks of unequal length, or nil

	Op   op.Reducer
	Elem int // bytes of an element
	// Fused is true if SendrecvReduce may combine with Op.
	Fused bool
	// Sites is nil unless the ranks are at several sites.
	Sites *Sites

	scratch []*bufpool.Buffer
	in      []byte    // scratch memory of sendrecvReduce
	inner   *siteComm // of atSite; nil until it is first called
}

// Layout says where the blocks of the ranks lie in a buffer, in bytes.
type Layout struct{ Counts, Displs []int }

// SetEven makes l a layout of equal blocks of n bytes that follow one another.
func (l *Layout) SetEven(size, n int) *Layout {
	l.Counts, l.Displs = l.Counts[:0], l.Displs[:0]
	for i := range size {
		l.Counts, l.Displs = append(l.Counts, n), append(l.Displs, i*n)
	}
	return l
}

// Scratch returns n bytes that belong to s until Release. Their content is undefined.
func (s *Schedule) Scratch(n int) []byte {
	b := bufpool.Get(n)
	s.scratch = append(s.scratch, b)
	return b.Bytes(n)
}

// Release returns the scratch memory and makes s blank.
func (s *Schedule) Release() {
	for i, b := range s.scratch {
		b.Put()
		s.scratch[i] = nil
	}
	if s.inner != nil {
		s.inner.Release()
		s.inner.outer, s.inner.ranks = nil, nil
	}
	*s = Schedule{scratch: s.scratch[:0], inner: s.inner}
}

// SendBlock returns the block of rank i in the send buffer.
func (s *Schedule) SendBlock(i int) []byte { return BlockOf(s.SendBuf, s.SendLayout, s.Block, i) }

// RecvBlock returns the block of rank i in the receive buffer.
func (s *Schedule) RecvBlock(i int) []byte { return BlockOf(s.RecvBuf, s.RecvLayout, s.Block, i) }

// BlockOf returns block i of b: by its layout, or if that is nil, of equal blocks of n bytes.
func BlockOf(b []byte, l *Layout, n, i int) []byte {
	if l != nil {
		return b[l.Displs[i] : l.Displs[i]+l.Counts[i]]
	}
	return b[i*n : (i+1)*n]
}

// cut returns where part i of parts begins when total bytes are cut into
// almost equal parts of whole elements; cut(parts) is total.
func (s *Schedule) cut(total, i, parts int) int {
	e := total / s.Elem
	return (e/parts*i + min(i, e%parts)) * s.Elem
}

// part returns part i of b, see cut.
func (s *Schedule) part(b []byte, i, parts int) []byte {
	return b[s.cut(len(b), i, parts):s.cut(len(b), i+1, parts)]
}

// recvReduce receives exactly len(acc) bytes from src and stores to acc, which may be mine, what
// they and mine combine to. lower is true if they come from lower ranks.
func (s *Schedule) recvReduce(acc, mine []byte, src int, lower bool) error {
	return s.sendrecvReduce(nil, ProcNull, acc, mine, src, lower)
}

// sendrecvReduce is recvReduce that sends sb, which acc does not overlap, to dst meanwhile. An
// operator that may not be fused combines after the message has arrived, in scratch memory.
func (s *Schedule) sendrecvReduce(sb []byte, dst int, acc, mine []byte, src int, lower bool) error {
	if s.Fused {
		return s.SendrecvReduce(sb, dst, acc, mine, src, lower)
	}
	if len(s.in) < len(acc) {
		s.in = s.Scratch(len(acc))
	}
	in := s.in[:len(acc)]
	if err := s.Sendrecv(sb, dst, in, src); err != nil {
		return err
	}
	if lower {
		s.Combine(acc, in, mine)
	} else {
		s.Combine(acc, mine, in)
	}
	return nil
}

// Same reports whether a and b are the same memory.
func Same(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// Overlap reports whether a and b share memory.
func Overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	pa, pb := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return pa < pb+uintptr(len(b)) && pb < pa+uintptr(len(a))
}
