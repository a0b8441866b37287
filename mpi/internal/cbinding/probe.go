package cbinding

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A message is an MPI_Message.
type message struct {
	*mpi.Message
	o *object // of the communicator
}

// setProbe checks the arguments of a call that looks for a message.
func (m *incoming) setProbe(source, tag int, comm Handle) (err error) {
	if m.c, err = commOf(comm); err == nil {
		err = m.from(source, tag)
	}
	return err
}

// Probe is MPI_Probe.
func Probe(source, tag int, comm Handle, status uintptr) int {
	var m incoming
	err := m.setProbe(source, tag, comm)
	var st mpi.Status
	if err == nil {
		st, err = mpi.Probe(background, m.c.Comm, m.source, m.tag)
	}
	if err != nil {
		return doneOf(m.c.obj(), "MPI_Probe", err)
	}
	setStatus(status, st)
	return 0
}

// Iprobe is MPI_Iprobe.
func Iprobe(source, tag int, comm Handle, flag, status uintptr) int {
	var m incoming
	err := m.setProbe(source, tag, comm)
	if err == nil {
		err = out("flag", flag)
	}
	var st mpi.Status
	found := false
	if err == nil {
		st, found, err = mpi.Iprobe(m.c.Comm, m.source, m.tag)
	}
	if err != nil {
		return doneOf(m.c.obj(), "MPI_Iprobe", err)
	}
	*at[int32](flag) = 0
	if found {
		*at[int32](flag) = 1
		setStatus(status, st)
	}
	return 0
}

// Mprobe is MPI_Mprobe.
func Mprobe(source, tag int, comm Handle, message, status uintptr) int {
	const proc = "MPI_Mprobe"
	var m incoming
	err := m.setProbe(source, tag, comm)
	if err == nil {
		err = out("message", message)
	}
	var got *mpi.Message
	if err == nil {
		got, err = mpi.Mprobe(background, m.c.Comm, m.source, m.tag)
	}
	if err == nil {
		err = m.matched(got, message, status)
	}
	return doneOf(m.c.obj(), proc, err)
}

// Improbe is MPI_Improbe.
func Improbe(source, tag int, comm Handle, flag, message, status uintptr) int {
	const proc = "MPI_Improbe"
	var m incoming
	err := m.setProbe(source, tag, comm)
	if err == nil {
		err = out("flag", flag)
	}
	if err == nil {
		err = out("message", message)
	}
	var got *mpi.Message
	if err == nil {
		got, err = mpi.Improbe(m.c.Comm, m.source, m.tag)
	}
	if err == nil {
		*at[int32](flag) = 0
		if got != nil {
			*at[int32](flag) = 1
			err = m.matched(got, message, status)
		}
	}
	if err != nil {
		return doneOf(m.c.obj(), proc, err)
	}
	return 0
}

// matched stores the handle and the status of a message that was taken out of the matching.
func (m *incoming) matched(got *mpi.Message, result, status uintptr) error {
	h := Handle(abi.MessageNoProc)
	if m.source != mpi.ProcNull {
		var err error
		if h, err = messages.put(&message{Message: got, o: &m.c.object}); err != nil {
			return err
		}
	}
	setHandle(result, h)
	setStatus(status, got.Status())
	return nil
}

// takeMessage returns the message whose handle is at p; nil for MPI_MESSAGE_NO_PROC.
func takeMessage(p uintptr) (*message, error) {
	if p == 0 {
		return nil, nullError("message")
	}
	h := *at[Handle](p)
	if h == abi.MessageNoProc {
		return nil, nil
	}
	return messageOf(h)
}

// noProc is the status of a receive from MPI_PROC_NULL.
var noProc = mpi.Status{Source: mpi.ProcNull, Tag: mpi.AnyTag}

// Mrecv is MPI_Mrecv.
func Mrecv(buf uintptr, count int, datatype Handle, message, status uintptr) int {
	const proc = "MPI_Mrecv"
	m, err := takeMessage(message)
	if err != nil {
		return fail(proc, err)
	}
	b, err := bufferOf(buf, count, datatype)
	if err != nil {
		return doneOf(m.object(), proc, err)
	}
	st := noProc
	if m != nil {
		messages.delete(*at[Handle](message))
		st, err = m.Recv(background, b)
	}
	setHandle(message, abi.MessageNull)
	setStatus(status, st)
	return doneOf(m.object(), proc, err)
}

// Imrecv is MPI_Imrecv.
func Imrecv(buf uintptr, count int, datatype Handle, message, request uintptr) int {
	const proc = "MPI_Imrecv"
	m, err := takeMessage(message)
	if err != nil {
		return fail(proc, err)
	}
	b, err := bufferOf(buf, count, datatype)
	if err == nil {
		err = out("request", request)
	}
	if err != nil {
		return doneOf(m.object(), proc, err)
	}
	var r *mpi.Request
	if m != nil {
		messages.delete(*at[Handle](message))
		r, err = m.Irecv(b)
	} else {
		r, err = nothing()
	}
	setHandle(message, abi.MessageNull)
	if err != nil {
		return doneOf(m.object(), proc, err)
	}
	h, err := putRequest(r, m.object())
	if err == nil {
		setHandle(request, h)
	}
	return doneOf(m.object(), proc, err)
}

// object returns whose error handler gets the errors; nil for MPI_COMM_SELF.
func (m *message) object() *object {
	if m == nil {
		return nil
	}
	return m.o
}

// nothing returns a request that is done, of a receive from MPI_PROC_NULL.
func nothing() (*mpi.Request, error) {
	c, err := anyComm()
	if err != nil {
		return nil, err
	}
	return c.Irecv(mpi.Buffer{}, mpi.ProcNull, mpi.AnyTag)
}

// anyComm returns a communicator for calls without one: MPI_COMM_SELF, or one that was made in a session.
func anyComm() (c *communicator, err error) {
	if c = comms.get(abi.CommSelf); c != nil {
		return c, nil
	}
	comms.each(func(_ Handle, x *communicator) bool {
		c = x
		return false
	})
	switch err := notRunning(); {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, &callError{class: abi.ErrOther, text: "needs MPI_Init, or a communicator of a session"}
	}
	return c, nil
}
