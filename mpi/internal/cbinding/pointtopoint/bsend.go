package pointtopoint

import (
	"sync/atomic"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// buffered is MPI_Bsend.
func (m *outgoing) buffered() error {
	if m.rank == mpi.ProcNull {
		return m.c.Bsend(m.b, m.rank, m.tag)
	}
	b := m.c.Buffer()
	if b == nil {
		return &cbinding.CallError{Class: abi.ErrBuffer, Text: "no buffer is attached for buffered sends"}
	}
	return b.Send(m.c, m.b, m.rank, m.tag)
}

// ibuffered is MPI_Ibsend: it returns a request that is done.
func (m *outgoing) ibuffered() (*mpi.Request, error) {
	if err := m.buffered(); err != nil {
		return nil, err
	}
	return m.c.Isend(mpi.Buffer{}, mpi.ProcNull, 0)
}

// detachTo is detach that stores the address and the size.
func detachTo(from *atomic.Pointer[cbinding.BsendBuffer], address, size uintptr, large bool) error {
	if address == 0 {
		return cbinding.NullError("buffer_addr")
	}
	if size == 0 {
		return cbinding.NullError("size")
	}
	b, err := cbinding.Detach(from)
	if err != nil {
		return err
	}
	*cbinding.At[uintptr](address) = b.Address
	return cbinding.SetInt(size, b.Size, large)
}

// flushOf is flush of the buffer of an object or of the process.
func flushOf(from *atomic.Pointer[cbinding.BsendBuffer]) error {
	b := from.Load()
	if b == nil {
		return cbinding.ErrNoBuffer
	}
	b.Flush()
	return nil
}

// iflush starts flush on a goroutine.
func iflush(proc string, o *cbinding.Object, from *atomic.Pointer[cbinding.BsendBuffer], request uintptr) int {
	b := from.Load()
	err := cbinding.RequestRoom(request)
	if err == nil && b == nil {
		err = cbinding.ErrNoBuffer
	}
	var c *cbinding.Communicator
	if err == nil {
		c, err = cbinding.AnyComm()
	}
	if err != nil {
		return cbinding.DoneOf(o, proc, err)
	}
	g := c.World().StartGrequest(nil)
	now := b.Messages() // not those that the program sends after this call
	go func() {
		b.Await(now)
		g.Complete(mpi.Status{}, nil)
	}()
	h, err := cbinding.PutRequest(g.Request(), o)
	if err == nil {
		cbinding.SetHandle(request, h)
	}
	return cbinding.DoneOf(o, proc, err)
}

// BufferAttach is MPI_Buffer_attach.
func BufferAttach(buffer uintptr, size int) int {
	err := cbinding.NotRunning()
	if err == nil {
		err = cbinding.Attach(&cbinding.ProcessBuffer, buffer, size)
	}
	return cbinding.Fail("MPI_Buffer_attach", err)
}

// BufferDetach is MPI_Buffer_detach.
func BufferDetach(bufferAddr, size uintptr, large bool) int {
	return cbinding.Fail("MPI_Buffer_detach", detachTo(&cbinding.ProcessBuffer, bufferAddr, size, large))
}

// BufferFlush is MPI_Buffer_flush.
func BufferFlush() int { return cbinding.Fail("MPI_Buffer_flush", flushOf(&cbinding.ProcessBuffer)) }

// BufferIflush is MPI_Buffer_iflush.
func BufferIflush(request uintptr) int {
	return iflush("MPI_Buffer_iflush", nil, &cbinding.ProcessBuffer, request)
}

// CommAttachBuffer is MPI_Comm_attach_buffer.
func CommAttachBuffer(comm abi.Handle, buffer uintptr, size int) int {
	c, err := cbinding.CommOf(comm)
	if err == nil {
		err = cbinding.Attach(&c.BsendBuffer, buffer, size)
	}
	return cbinding.DoneOf(commObject(c), "MPI_Comm_attach_buffer", err)
}

// CommDetachBuffer is MPI_Comm_detach_buffer.
func CommDetachBuffer(comm abi.Handle, bufferAddr, size uintptr, large bool) int {
	c, err := cbinding.CommOf(comm)
	if err == nil {
		err = detachTo(&c.BsendBuffer, bufferAddr, size, large)
	}
	return cbinding.DoneOf(commObject(c), "MPI_Comm_detach_buffer", err)
}

// CommFlushBuffer is MPI_Comm_flush_buffer.
func CommFlushBuffer(comm abi.Handle) int {
	c, err := cbinding.CommOf(comm)
	if err == nil {
		err = flushOf(&c.BsendBuffer)
	}
	return cbinding.DoneOf(commObject(c), "MPI_Comm_flush_buffer", err)
}

// CommIflushBuffer is MPI_Comm_iflush_buffer.
func CommIflushBuffer(comm abi.Handle, request uintptr) int {
	const proc = "MPI_Comm_iflush_buffer"
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return iflush(proc, &c.Object, &c.BsendBuffer, request)
}

// SessionAttachBuffer is MPI_Session_attach_buffer.
func SessionAttachBuffer(session abi.Handle, buffer uintptr, size int) int {
	const proc = "MPI_Session_attach_buffer"
	s, err := cbinding.SessionOf(session)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return s.Done(proc, cbinding.Attach(&s.BsendBuffer, buffer, size))
}

// SessionDetachBuffer is MPI_Session_detach_buffer.
func SessionDetachBuffer(session abi.Handle, bufferAddr, size uintptr, large bool) int {
	const proc = "MPI_Session_detach_buffer"
	s, err := cbinding.SessionOf(session)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return s.Done(proc, detachTo(&s.BsendBuffer, bufferAddr, size, large))
}

// SessionFlushBuffer is MPI_Session_flush_buffer.
func SessionFlushBuffer(session abi.Handle) int {
	const proc = "MPI_Session_flush_buffer"
	s, err := cbinding.SessionOf(session)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return s.Done(proc, flushOf(&s.BsendBuffer))
}

// SessionIflushBuffer is MPI_Session_iflush_buffer.
func SessionIflushBuffer(session abi.Handle, request uintptr) int {
	const proc = "MPI_Session_iflush_buffer"
	s, err := cbinding.SessionOf(session)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return iflush(proc, &s.Object, &s.BsendBuffer, request)
}
