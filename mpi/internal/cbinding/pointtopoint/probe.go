package pointtopoint

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A message is an MPI_Message.
type message struct {
	*mpi.Message
	o *cbinding.Object // of the communicator
}

// messages are the messages of MPI_Mprobe that are not received yet.
var messages = cbinding.NewTable[message](cbinding.MessageKind)

func messageOf(h abi.Handle) (*message, error) { return messages.Lookup(h) }

// setProbe checks the arguments of a call that looks for a message.
func (m *incoming) setProbe(source, tag int, comm abi.Handle) (err error) {
	if m.c, err = cbinding.CommOf(comm); err == nil {
		err = m.from(source, tag)
	}
	return err
}

// Probe is MPI_Probe.
func Probe(source, tag int, comm abi.Handle, status uintptr) int {
	var m incoming
	err := m.setProbe(source, tag, comm)
	var st mpi.Status
	if err == nil {
		st, err = mpi.Probe(cbinding.Background, m.c.Comm, m.source, m.tag)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), "MPI_Probe", err)
	}
	cbinding.SetStatus(status, st)
	return 0
}

// Iprobe is MPI_Iprobe.
func Iprobe(source, tag int, comm abi.Handle, flag, status uintptr) int {
	var m incoming
	err := m.setProbe(source, tag, comm)
	if err == nil {
		err = cbinding.Out("flag", flag)
	}
	var st mpi.Status
	found := false
	if err == nil {
		st, found, err = mpi.Iprobe(m.c.Comm, m.source, m.tag)
	}
	if err != nil {
		return cbinding.DoneOf(commObject(m.c), "MPI_Iprobe", err)
	}
	*cbinding.At[int32](flag) = 0
	if found {
		*cbinding.At[int32](flag) = 1
		cbinding.SetStatus(status, st)
	}
	return 0
}

// Mprobe is MPI_Mprobe.
func Mprobe(source, tag int, comm abi.Handle, message, status uintptr) int {
	const proc = "MPI_Mprobe"
	cbinding.NullHandle(message, abi.MessageNull)
	var m incoming
	err := m.setProbe(source, tag, comm)
	if err == nil {
		err = cbinding.Out("message", message)
	}
	if err == nil {
		err = messages.Room()
	}
	var got *mpi.Message
	if err == nil {
		got, err = mpi.Mprobe(cbinding.Background, m.c.Comm, m.source, m.tag)
	}
	if err == nil {
		err = m.matched(got, message, status)
	}
	return cbinding.DoneOf(commObject(m.c), proc, err)
}

// Improbe is MPI_Improbe.
func Improbe(source, tag int, comm abi.Handle, flag, message, status uintptr) int {
	const proc = "MPI_Improbe"
	var m incoming
	err := m.setProbe(source, tag, comm)
	if err == nil {
		err = cbinding.Out("flag", flag)
	}
	if err == nil {
		err = cbinding.Out("message", message)
	}
	if err == nil {
		err = messages.Room()
	}
	var got *mpi.Message
	if err == nil {
		got, err = mpi.Improbe(m.c.Comm, m.source, m.tag)
	}
	if err == nil {
		*cbinding.At[int32](flag) = 0
		if got != nil {
			*cbinding.At[int32](flag) = 1
			err = m.matched(got, message, status)
		}
	}
	if err != nil {
		cbinding.NullHandle(message, abi.MessageNull)
		return cbinding.DoneOf(commObject(m.c), proc, err)
	}
	return 0
}

// matched stores the handle and the status of a message that was taken out of the matching.
func (m *incoming) matched(got *mpi.Message, result, status uintptr) error {
	h := abi.Handle(abi.MessageNoProc)
	if m.source != mpi.ProcNull {
		var err error
		if h, err = messages.Put(&message{Message: got, o: &m.c.Object}); err != nil {
			return err
		}
	}
	cbinding.SetHandle(result, h)
	cbinding.SetStatus(status, got.Status())
	return nil
}

// takeMessage returns the message whose handle is at p; nil for MPI_MESSAGE_NO_PROC.
func takeMessage(p uintptr) (*message, error) {
	if p == 0 {
		return nil, cbinding.NullError("message")
	}
	h := *cbinding.At[abi.Handle](p)
	if h == abi.MessageNoProc {
		return nil, nil
	}
	return messageOf(h)
}

// noProc is the status of a receive from MPI_PROC_NULL.
var noProc = mpi.Status{Source: mpi.ProcNull, Tag: mpi.AnyTag}

// Mrecv is MPI_Mrecv.
func Mrecv(buf uintptr, count int, datatype abi.Handle, message, status uintptr) int {
	const proc = "MPI_Mrecv"
	m, err := takeMessage(message)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	b, err := cbinding.BufferOf(buf, count, datatype)
	if err != nil {
		return cbinding.DoneOf(m.object(), proc, err)
	}
	st := noProc
	if m != nil {
		messages.Delete(*cbinding.At[abi.Handle](message))
		st, err = m.Recv(cbinding.Background, b)
	}
	cbinding.SetHandle(message, abi.MessageNull)
	cbinding.SetStatus(status, st)
	return cbinding.DoneOf(m.object(), proc, err)
}

// Imrecv is MPI_Imrecv.
func Imrecv(buf uintptr, count int, datatype abi.Handle, message, request uintptr) int {
	const proc = "MPI_Imrecv"
	m, err := takeMessage(message)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	b, err := cbinding.BufferOf(buf, count, datatype)
	if err == nil {
		err = cbinding.RequestRoom(request)
	}
	if err != nil {
		return cbinding.DoneOf(m.object(), proc, err)
	}
	var r *mpi.Request
	if m != nil {
		messages.Delete(*cbinding.At[abi.Handle](message))
		r, err = m.Irecv(b)
	} else {
		r, err = nothing()
	}
	cbinding.SetHandle(message, abi.MessageNull)
	if err != nil {
		return cbinding.DoneOf(m.object(), proc, err)
	}
	h, err := cbinding.PutMessage(r, m.object())
	if err == nil {
		cbinding.SetHandle(request, h)
	}
	return cbinding.DoneOf(m.object(), proc, err)
}

// object returns whose error handler gets the errors; nil for MPI_COMM_SELF.
func (m *message) object() *cbinding.Object {
	if m == nil {
		return nil
	}
	return m.o
}

// nothing returns a request that is done, of a receive from MPI_PROC_NULL.
func nothing() (*mpi.Request, error) {
	c, err := cbinding.AnyComm()
	if err != nil {
		return nil, err
	}
	return c.Irecv(mpi.Buffer{}, mpi.ProcNull, mpi.AnyTag)
}
