package pointtopoint

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A message that a call receives: from a source of c, with a tag.
type incoming struct {
	c           *cbinding.Communicator
	b           mpi.Buffer
	source, tag int
}

// set checks the arguments of a call that receives.
func (m *incoming) set(buf uintptr, count int, datatype abi.Handle, source, tag int, comm abi.Handle) (err error) {
	if m.c, err = cbinding.CommOf(comm); err != nil {
		return err
	}
	if err = m.from(source, tag); err == nil {
		err = setMessageBuffer(&m.b, buf, count, datatype)
	}
	return err
}

// from checks from where a message is received.
func (m *incoming) from(source, tag int) (err error) {
	if m.source, err = m.c.Source("source", source); err == nil {
		m.tag, err = cbinding.SourceTag("tag", tag)
	}
	return err
}

// Recv is MPI_Recv.
func Recv(buf uintptr, count int, datatype abi.Handle, source, tag int, comm abi.Handle, status uintptr) int {
	var m incoming
	err := m.set(buf, count, datatype, source, tag, comm)
	if err == nil {
		var st mpi.Status
		st, err = m.c.Recv(cbinding.Background, m.b, m.source, m.tag)
		cbinding.SetStatus(status, st)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), "MPI_Recv", err)
	}
	return 0
}

// Irecv is MPI_Irecv.
func Irecv(buf uintptr, count int, datatype abi.Handle, source, tag int, comm abi.Handle, request uintptr) int {
	const proc = "MPI_Irecv"
	var m incoming
	err := m.set(buf, count, datatype, source, tag, comm)
	if err == nil {
		err = cbinding.RequestRoom(request)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), proc, err)
	}
	r, err := m.c.Irecv(m.b, m.source, m.tag)
	return m.c.NewMessage(proc, request, r, err)
}

// RecvInit is MPI_Recv_init.
func RecvInit(buf uintptr, count int, datatype abi.Handle, source, tag int, comm abi.Handle, request uintptr) int {
	const proc = "MPI_Recv_init"
	var m incoming
	err := m.set(buf, count, datatype, source, tag, comm)
	if err == nil {
		err = cbinding.RequestRoom(request)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), proc, err)
	}
	p, err := m.c.RecvInit(m.b, m.source, m.tag)
	return m.c.PersistentMessage(proc, request, p, err)
}

// Sendrecv is MPI_Sendrecv.
func Sendrecv(sendbuf uintptr, sendcount int, sendtype abi.Handle, dest, sendtag int, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, source, recvtag int, comm abi.Handle, status uintptr) int {
	s, r, err := both(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm)
	if err == nil {
		var st mpi.Status
		st, err = s.c.Sendrecv(cbinding.Background, s.b, s.rank, s.tag, r.b, r.source, r.tag)
		cbinding.SetStatus(status, st)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(s.c), "MPI_Sendrecv", err)
	}
	return 0
}

// both checks the arguments of a call that sends and receives.
func both(sendbuf uintptr, sendcount int, sendtype abi.Handle, dest, sendtag int, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, source, recvtag int, comm abi.Handle) (s outgoing, r incoming, err error) {
	if err = s.set(sendbuf, sendcount, sendtype, dest, sendtag, comm); err == nil {
		err = r.set(recvbuf, recvcount, recvtype, source, recvtag, comm)
	}
	return s, r, err
}

// SendrecvReplace is MPI_Sendrecv_replace.
func SendrecvReplace(buf uintptr, count int, datatype abi.Handle, dest, sendtag, source, recvtag int, comm abi.Handle,
	status uintptr) int {
	s, r, err := both(buf, count, datatype, dest, sendtag, buf, count, datatype, source, recvtag, comm)
	if err == nil {
		var st mpi.Status
		st, err = s.c.SendrecvReplace(cbinding.Background, s.b, s.rank, s.tag, r.source, r.tag)
		cbinding.SetStatus(status, st)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(s.c), "MPI_Sendrecv_replace", err)
	}
	return 0
}

// Isendrecv is MPI_Isendrecv.
func Isendrecv(sendbuf uintptr, sendcount int, sendtype abi.Handle, dest, sendtag int, recvbuf uintptr, recvcount int,
	recvtype abi.Handle, source, recvtag int, comm abi.Handle, request uintptr) int {
	const proc = "MPI_Isendrecv"
	s, r, err := both(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm)
	if err == nil {
		err = cbinding.RequestRoom(request)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(s.c), proc, err)
	}
	q, err := s.c.Isendrecv(s.b, s.rank, s.tag, r.b, r.source, r.tag)
	return s.c.NewRequest(proc, request, q, err)
}

// IsendrecvReplace is MPI_Isendrecv_replace.
func IsendrecvReplace(buf uintptr, count int, datatype abi.Handle, dest, sendtag, source, recvtag int, comm abi.Handle,
	request uintptr) int {
	const proc = "MPI_Isendrecv_replace"
	s, r, err := both(buf, count, datatype, dest, sendtag, buf, count, datatype, source, recvtag, comm)
	if err == nil {
		err = cbinding.RequestRoom(request)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(s.c), proc, err)
	}
	q, err := s.c.IsendrecvReplace(s.b, s.rank, s.tag, r.source, r.tag)
	return s.c.NewRequest(proc, request, q, err)
}
