package cbinding

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A message that a call sends: to a rank of c, with a tag.
type outgoing struct {
	c         *communicator
	b         mpi.Buffer
	rank, tag int
}

// set checks the arguments of a call that sends.
func (m *outgoing) set(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle) (err error) {
	if m.c, err = commOf(comm); err != nil {
		return err
	}
	if m.rank, err = m.c.peer("dest", dest); err != nil {
		return err
	}
	if m.tag, err = tagOf("tag", tag); err != nil {
		return err
	}
	return setMessageBuffer(&m.b, buf, count, datatype)
}

// setMessageBuffer is setBuffer of a message. One of no items needs no datatype: programs give MPI_DATATYPE_NULL.
func setMessageBuffer(b *mpi.Buffer, buf uintptr, count int, datatype Handle) error {
	if datatype == abi.DatatypeNull && count == 0 {
		return nil
	}
	return setBuffer(b, buf, count, datatype)
}

// object returns the communicator as an object; nil if there is none, and MPI_COMM_SELF stands for it.
func (c *communicator) obj() *object {
	if c == nil {
		return nil
	}
	return &c.object
}

// Send is MPI_Send.
func Send(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = m.c.Send(background, m.b, m.rank, m.tag)
	}
	if err != nil {
		return doneOf(m.c.obj(), "MPI_Send", err)
	}
	return 0
}

// Ssend is MPI_Ssend.
func Ssend(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = m.c.Ssend(background, m.b, m.rank, m.tag)
	}
	if err != nil {
		return doneOf(m.c.obj(), "MPI_Ssend", err)
	}
	return 0
}

// Rsend is MPI_Rsend. A ready send may be done as a standard one (MPI-4.1, Section 3.4).
func Rsend(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = m.c.Send(background, m.b, m.rank, m.tag)
	}
	if err != nil {
		return doneOf(m.c.obj(), "MPI_Rsend", err)
	}
	return 0
}

// Bsend is MPI_Bsend.
func Bsend(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = m.buffered()
	}
	if err != nil {
		return doneOf(m.c.obj(), "MPI_Bsend", err)
	}
	return 0
}

// Isend is MPI_Isend.
func Isend(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle, request uintptr) int {
	return isend("MPI_Isend", (*mpi.Comm).Isend, buf, count, datatype, dest, tag, comm, request)
}

// Issend is MPI_Issend.
func Issend(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle, request uintptr) int {
	return isend("MPI_Issend", (*mpi.Comm).Issend, buf, count, datatype, dest, tag, comm, request)
}

// Irsend is MPI_Irsend.
func Irsend(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle, request uintptr) int {
	return isend("MPI_Irsend", (*mpi.Comm).Isend, buf, count, datatype, dest, tag, comm, request)
}

// Ibsend is MPI_Ibsend. The request is done once the message is in the buffer.
func Ibsend(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle, request uintptr) int {
	const proc = "MPI_Ibsend"
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = out("request", request)
	}
	var r *mpi.Request
	if err == nil {
		r, err = m.ibuffered()
	}
	if err != nil {
		return doneOf(m.c.obj(), proc, err)
	}
	return m.c.newMessage(proc, request, r, nil)
}

func isend(proc string, start func(*mpi.Comm, mpi.Buffer, int, int) (*mpi.Request, error), buf uintptr, count int,
	datatype Handle, dest, tag int, comm Handle, request uintptr) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = out("request", request)
	}
	if err != nil {
		return doneOf(m.c.obj(), proc, err)
	}
	r, err := start(m.c.Comm, m.b, m.rank, m.tag)
	return m.c.newMessage(proc, request, r, err)
}

// SendInit is MPI_Send_init.
func SendInit(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle, request uintptr) int {
	return sendInit("MPI_Send_init", (*mpi.Comm).SendInit, buf, count, datatype, dest, tag, comm, request)
}

// SsendInit is MPI_Ssend_init.
func SsendInit(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle, request uintptr) int {
	return sendInit("MPI_Ssend_init", (*mpi.Comm).SsendInit, buf, count, datatype, dest, tag, comm, request)
}

// RsendInit is MPI_Rsend_init.
func RsendInit(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle, request uintptr) int {
	return sendInit("MPI_Rsend_init", (*mpi.Comm).SendInit, buf, count, datatype, dest, tag, comm, request)
}

// BsendInit is MPI_Bsend_init.
func BsendInit(buf uintptr, count int, datatype Handle, dest, tag int, comm Handle, request uintptr) int {
	const proc = "MPI_Bsend_init"
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = out("request", request)
	}
	if err != nil {
		return doneOf(m.c.obj(), proc, err)
	}
	return m.c.prepared(proc, request, &requestType{o: &m.c.object, start: m.ibuffered, cancels: true})
}

func sendInit(proc string, prepare func(*mpi.Comm, mpi.Buffer, int, int) (*mpi.Persistent, error), buf uintptr,
	count int, datatype Handle, dest, tag int, comm Handle, request uintptr) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = out("request", request)
	}
	if err != nil {
		return doneOf(m.c.obj(), proc, err)
	}
	p, err := prepare(m.c.Comm, m.b, m.rank, m.tag)
	return m.c.persistentMessage(proc, request, p, err)
}

// persistentMessage is newPersistent of a message, which MPI_Cancel applies to.
func (o *object) persistentMessage(proc string, result uintptr, p *mpi.Persistent, err error) int {
	if err != nil {
		return o.done(proc, err)
	}
	return o.prepared(proc, result, &requestType{o: o, start: p.Start, drop: p.Free, cancels: true})
}

// requestType is request, where a parameter has that name.
type requestType = request
