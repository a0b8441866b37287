package cbinding

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A bsendBuffer is a buffer that the program has attached for buffered sends (MPI-4.1, Section 3.6). The
// library copies messages to memory of its own, never to the program's, but no more than fits: a message takes its
// length and MPI_BSEND_OVERHEAD until it has left.
type bsendBuffer struct {
	address uintptr // as given; MPI_BUFFER_AUTOMATIC: without a bound
	size    int

	flushing sync.Mutex // held by flush; taken before mu

	mu      sync.Mutex // guards what follows
	used    int
	pending []bufferedSend
}

type bufferedSend struct {
	r    *mpi.Request
	size int
}

// processBuffer is that of MPI_Buffer_attach.
var processBuffer atomic.Pointer[bsendBuffer]

func init() { atFinalize(func() { _, _ = detach(&processBuffer) }) }

// buffer returns the buffer that sends on c use: its own, or that of its session, or of the process (MPI-4.1,
// Section 3.6).
func (c *communicator) buffer() *bsendBuffer {
	if b := c.bsend.Load(); b != nil {
		return b
	}
	if s := c.session; s != nil {
		if b := s.bsend.Load(); b != nil {
			return b
		}
	}
	return processBuffer.Load()
}

// buffered is MPI_Bsend.
func (m *outgoing) buffered() error {
	if m.rank == mpi.ProcNull {
		return m.c.Bsend(m.b, m.rank, m.tag)
	}
	b := m.c.buffer()
	if b == nil {
		return &callError{class: abi.ErrBuffer, text: "no buffer is attached for buffered sends"}
	}
	return b.send(m)
}

// ibuffered is MPI_Ibsend: it returns a request that is done.
func (m *outgoing) ibuffered() (*mpi.Request, error) {
	if err := m.buffered(); err != nil {
		return nil, err
	}
	return m.c.Isend(mpi.Buffer{}, mpi.ProcNull, 0)
}

// send copies a message and starts to send it.
func (b *bsendBuffer) send(m *outgoing) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	need := m.b.Len() + abi.BsendOverhead
	if b.address != abi.BufferAutomatic {
		if b.used+need > b.size {
			b.sweep()
		}
		if b.used+need > b.size {
			return &callError{class: abi.ErrBuffer, text: fmt.Sprintf("a message of %d bytes and MPI_BSEND_OVERHEAD, %d, do not fit: "+
				"%d of the %d bytes attached are free", m.b.Len(), abi.BsendOverhead, b.size-b.used, b.size)}
		}
	} else if len(b.pending) >= sweepEvery {
		b.sweep()
	}
	r, err := m.c.Ibsend(m.b, m.rank, m.tag)
	if err != nil {
		return err
	}
	if _, done, _ := r.Test(); done {
		r.Free() // it has left already: a failure of the peer is not reported
		return nil
	}
	b.pending = append(b.pending, bufferedSend{r, need})
	b.used += need
	return nil
}

// sweepEvery is how many sends of an automatic buffer are pending before it looks which have left.
const sweepEvery = 64

// sweep forgets the messages that have left. mu is held.
func (b *bsendBuffer) sweep() {
	left := b.pending[:0]
	for _, p := range b.pending {
		if _, done, _ := p.r.Test(); done {
			p.r.Free()
			b.used -= p.size
		} else {
			left = append(left, p)
		}
	}
	clear(b.pending[len(left):])
	b.pending = left
}

// flush waits until all messages that are in the buffer now have left.
func (b *bsendBuffer) flush() {
	b.flushing.Lock() // what another call waits for is no longer in pending
	defer b.flushing.Unlock()
	b.mu.Lock()
	now := b.pending
	b.pending = nil
	b.mu.Unlock()
	for _, p := range now {
		_, _ = p.r.Wait(background) // a failure of the peer is not reported
		p.r.Free()
		b.mu.Lock()
		b.used -= p.size
		b.mu.Unlock()
	}
}

// attach makes b the buffer of an object or of the process.
func attach(to *atomic.Pointer[bsendBuffer], address uintptr, size int) error {
	switch {
	case size < 0:
		return argError(abi.ErrArg, "size", size, "is negative")
	case address == 0 && size > 0:
		return argError(abi.ErrBuffer, "buffer", "NULL", "is needed")
	case !to.CompareAndSwap(nil, &bsendBuffer{address: address, size: size}):
		return &callError{class: abi.ErrBuffer, text: "a buffer is attached already"}
	}
	return nil
}

// detach waits until the messages in a buffer have left, and takes it away.
func detach(from *atomic.Pointer[bsendBuffer]) (*bsendBuffer, error) {
	b := from.Load()
	if b == nil {
		return nil, errNoBuffer
	}
	b.flush()
	from.CompareAndSwap(b, nil)
	return b, nil
}

var errNoBuffer = &callError{class: abi.ErrBuffer, text: "no buffer is attached"}

// detachTo is detach that stores the address and the size.
func detachTo(from *atomic.Pointer[bsendBuffer], address, size uintptr, large bool) error {
	if address == 0 {
		return nullError("buffer_addr")
	}
	if size == 0 {
		return nullError("size")
	}
	b, err := detach(from)
	if err != nil {
		return err
	}
	*at[uintptr](address) = b.address
	return setInt(size, b.size, large)
}

// flushOf is flush of the buffer of an object or of the process.
func flushOf(from *atomic.Pointer[bsendBuffer]) error {
	b := from.Load()
	if b == nil {
		return errNoBuffer
	}
	b.flush()
	return nil
}

// iflush starts flush on a goroutine.
func iflush(proc string, o *object, from *atomic.Pointer[bsendBuffer], request uintptr) int {
	b := from.Load()
	err := out("request", request)
	if err == nil && b == nil {
		err = errNoBuffer
	}
	var c *communicator
	if err == nil {
		c, err = anyComm()
	}
	if err != nil {
		return doneOf(o, proc, err)
	}
	g := c.World().StartGrequest(nil)
	go func() {
		b.flush()
		g.Complete(mpi.Status{}, nil)
	}()
	h, err := putRequest(g.Request(), o)
	if err == nil {
		setHandle(request, h)
	}
	return doneOf(o, proc, err)
}

// dropBuffer detaches the buffer of a communicator or session that is freed, if there is one.
func (o *object) dropBuffer() { _, _ = detach(&o.bsend) }

// BufferAttach is MPI_Buffer_attach.
func BufferAttach(buffer uintptr, size int) int {
	err := notRunning()
	if err == nil {
		err = attach(&processBuffer, buffer, size)
	}
	return fail("MPI_Buffer_attach", err)
}

// BufferDetach is MPI_Buffer_detach.
func BufferDetach(bufferAddr, size uintptr, large bool) int {
	return fail("MPI_Buffer_detach", detachTo(&processBuffer, bufferAddr, size, large))
}

// BufferFlush is MPI_Buffer_flush.
func BufferFlush() int { return fail("MPI_Buffer_flush", flushOf(&processBuffer)) }

// BufferIflush is MPI_Buffer_iflush.
func BufferIflush(request uintptr) int {
	return iflush("MPI_Buffer_iflush", nil, &processBuffer, request)
}

// CommAttachBuffer is MPI_Comm_attach_buffer.
func CommAttachBuffer(comm Handle, buffer uintptr, size int) int {
	c, err := commOf(comm)
	if err == nil {
		err = attach(&c.bsend, buffer, size)
	}
	return doneOf(c.obj(), "MPI_Comm_attach_buffer", err)
}

// CommDetachBuffer is MPI_Comm_detach_buffer.
func CommDetachBuffer(comm Handle, bufferAddr, size uintptr, large bool) int {
	c, err := commOf(comm)
	if err == nil {
		err = detachTo(&c.bsend, bufferAddr, size, large)
	}
	return doneOf(c.obj(), "MPI_Comm_detach_buffer", err)
}

// CommFlushBuffer is MPI_Comm_flush_buffer.
func CommFlushBuffer(comm Handle) int {
	c, err := commOf(comm)
	if err == nil {
		err = flushOf(&c.bsend)
	}
	return doneOf(c.obj(), "MPI_Comm_flush_buffer", err)
}

// CommIflushBuffer is MPI_Comm_iflush_buffer.
func CommIflushBuffer(comm Handle, request uintptr) int {
	const proc = "MPI_Comm_iflush_buffer"
	c, err := commOf(comm)
	if err != nil {
		return fail(proc, err)
	}
	return iflush(proc, &c.object, &c.bsend, request)
}

// SessionAttachBuffer is MPI_Session_attach_buffer.
func SessionAttachBuffer(session Handle, buffer uintptr, size int) int {
	const proc = "MPI_Session_attach_buffer"
	s, err := sessionOf(session)
	if err != nil {
		return fail(proc, err)
	}
	return s.done(proc, attach(&s.bsend, buffer, size))
}

// SessionDetachBuffer is MPI_Session_detach_buffer.
func SessionDetachBuffer(session Handle, bufferAddr, size uintptr, large bool) int {
	const proc = "MPI_Session_detach_buffer"
	s, err := sessionOf(session)
	if err != nil {
		return fail(proc, err)
	}
	return s.done(proc, detachTo(&s.bsend, bufferAddr, size, large))
}

// SessionFlushBuffer is MPI_Session_flush_buffer.
func SessionFlushBuffer(session Handle) int {
	const proc = "MPI_Session_flush_buffer"
	s, err := sessionOf(session)
	if err != nil {
		return fail(proc, err)
	}
	return s.done(proc, flushOf(&s.bsend))
}

// SessionIflushBuffer is MPI_Session_iflush_buffer.
func SessionIflushBuffer(session Handle, request uintptr) int {
	const proc = "MPI_Session_iflush_buffer"
	s, err := sessionOf(session)
	if err != nil {
		return fail(proc, err)
	}
	return iflush(proc, &s.object, &s.bsend, request)
}
