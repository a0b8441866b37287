package pointtopoint

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A message that a call sends: to a rank of c, with a tag.
type outgoing struct {
	c         *cbinding.Communicator
	b         mpi.Buffer
	rank, tag int
}

// set checks the arguments of a call that sends.
func (m *outgoing) set(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle) (err error) {
	if m.c, err = cbinding.CommOf(comm); err != nil {
		return err
	}
	if m.rank, err = m.c.Peer("dest", dest); err != nil {
		return err
	}
	if m.tag, err = cbinding.TagOf("tag", tag); err != nil {
		return err
	}
	return setMessageBuffer(&m.b, buf, count, datatype)
}

// setMessageBuffer is SetBuffer of a message. One of no items needs no datatype: programs give MPI_DATATYPE_NULL.
func setMessageBuffer(b *mpi.Buffer, buf uintptr, count int, datatype abi.Handle) error {
	if datatype == abi.DatatypeNull && count == 0 {
		return nil
	}
	return cbinding.SetBuffer(b, buf, count, datatype)
}

// commObject returns the communicator as an object; nil if there is none, and MPI_COMM_SELF stands for it.
func commObject(c *cbinding.Communicator) *cbinding.Object {
	if c == nil {
		return nil
	}
	return &c.Object
}

// Send is MPI_Send.
func Send(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = m.c.Send(cbinding.Background, m.b, m.rank, m.tag)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), "MPI_Send", err)
	}
	return 0
}

// Ssend is MPI_Ssend.
func Ssend(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = m.c.Ssend(cbinding.Background, m.b, m.rank, m.tag)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), "MPI_Ssend", err)
	}
	return 0
}

// Rsend is MPI_Rsend. A ready send may be done as a standard one (MPI-4.1, Section 3.4).
func Rsend(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = m.c.Send(cbinding.Background, m.b, m.rank, m.tag)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), "MPI_Rsend", err)
	}
	return 0
}

// Bsend is MPI_Bsend.
func Bsend(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = m.buffered()
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), "MPI_Bsend", err)
	}
	return 0
}

// Isend is MPI_Isend.
func Isend(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle, request uintptr) int {
	return isend("MPI_Isend", (*mpi.Comm).Isend, buf, count, datatype, dest, tag, comm, request)
}

// Issend is MPI_Issend.
func Issend(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle, request uintptr) int {
	return isend("MPI_Issend", (*mpi.Comm).Issend, buf, count, datatype, dest, tag, comm, request)
}

// Irsend is MPI_Irsend.
func Irsend(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle, request uintptr) int {
	return isend("MPI_Irsend", (*mpi.Comm).Isend, buf, count, datatype, dest, tag, comm, request)
}

// Ibsend is MPI_Ibsend. The request is done once the message is in the buffer.
func Ibsend(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle, request uintptr) int {
	const proc = "MPI_Ibsend"
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = cbinding.RequestRoom(request)
	}
	var r *mpi.Request
	if err == nil {
		r, err = m.ibuffered()
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), proc, err)
	}
	return m.c.NewMessage(proc, request, r, nil)
}

func isend(proc string, start func(*mpi.Comm, mpi.Buffer, int, int) (*mpi.Request, error), buf uintptr, count int,
	datatype abi.Handle, dest, tag int, comm abi.Handle, request uintptr) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = cbinding.RequestRoom(request)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), proc, err)
	}
	r, err := start(m.c.Comm, m.b, m.rank, m.tag)
	return m.c.NewMessage(proc, request, r, err)
}

// SendInit is MPI_Send_init.
func SendInit(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle, request uintptr) int {
	return sendInit("MPI_Send_init", (*mpi.Comm).SendInit, buf, count, datatype, dest, tag, comm, request)
}

// SsendInit is MPI_Ssend_init.
func SsendInit(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle, request uintptr) int {
	return sendInit("MPI_Ssend_init", (*mpi.Comm).SsendInit, buf, count, datatype, dest, tag, comm, request)
}

// RsendInit is MPI_Rsend_init.
func RsendInit(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle, request uintptr) int {
	return sendInit("MPI_Rsend_init", (*mpi.Comm).SendInit, buf, count, datatype, dest, tag, comm, request)
}

// BsendInit is MPI_Bsend_init.
func BsendInit(buf uintptr, count int, datatype abi.Handle, dest, tag int, comm abi.Handle, request uintptr) int {
	const proc = "MPI_Bsend_init"
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = cbinding.RequestRoom(request)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), proc, err)
	}
	return m.c.Prepared(proc, request, &cbinding.Request{Owner: &m.c.Object, Start: m.ibuffered, Cancels: true})
}

func sendInit(proc string, prepare func(*mpi.Comm, mpi.Buffer, int, int) (*mpi.Persistent, error), buf uintptr,
	count int, datatype abi.Handle, dest, tag int, comm abi.Handle, request uintptr) int {
	var m outgoing
	err := m.set(buf, count, datatype, dest, tag, comm)
	if err == nil {
		err = cbinding.RequestRoom(request)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), proc, err)
	}
	p, err := prepare(m.c.Comm, m.b, m.rank, m.tag)
	return m.c.PersistentMessage(proc, request, p, err)
}
