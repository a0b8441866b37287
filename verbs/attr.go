package verbs

import (
	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/rdmap"
)

// DeviceAttr are the limits of a device (ibv_query_device).
type DeviceAttr struct {
	// MaxQP bounds queue pairs, regions and windows together, since each has an
	// STag; MaxMR and MaxMW are the same number. MaxQPPerPeer bounds the queue
	// pairs with one other device over SCTP: the streams of an association.
	MaxQP, MaxMR, MaxMW, MaxQPPerPeer int
	// MaxMRSize bounds the bytes of a region, MaxMessage those of a message.
	MaxMRSize, MaxMessage uint64
	// MaxQPWR bounds each work queue, MaxSGE each scatter/gather list,
	// MaxInline the inline data.
	MaxQPWR, MaxSGE, MaxInline int
	// MaxCQE bounds a completion queue, MaxSRQWR a shared receive queue.
	// Completion queues, shared receive queues and protection domains
	// themselves are limited by memory only.
	MaxCQE, MaxSRQWR int
	// MaxQPRdAtom and MaxQPInitRdAtom bound IRD and ORD.
	MaxQPRdAtom, MaxQPInitRdAtom int
	// MaxPrivateData bounds private data, Backlog the requests that wait.
	MaxPrivateData, Backlog int
	// MaxEvents bounds the asynchronous events that wait.
	MaxEvents int
}

// Query returns the limits of the device.
func (d *Device) Query() DeviceAttr {
	return DeviceAttr{
		MaxQP: ddp.MaxRegions, MaxMR: ddp.MaxRegions, MaxMW: ddp.MaxRegions, MaxQPPerPeer: d.streams(),
		MaxMRSize: MaxRegion, MaxMessage: 1<<32 - 1,
		MaxQPWR: MaxDepth, MaxSGE: MaxSGE, MaxInline: MaxInline,
		MaxCQE: MaxCQ, MaxSRQWR: MaxSRQDepth,
		MaxQPRdAtom: MaxReadDepth, MaxQPInitRdAtom: MaxReadDepth,
		MaxPrivateData: MaxPrivateData, Backlog: d.backlog(), MaxEvents: MaxEvents,
	}
}

// QPAttr are the attributes of a queue pair (ibv_query_qp).
type QPAttr struct {
	// State and, in StateSQD, whether what was started is still being completed.
	State    State
	Draining bool
	// Access are the remote rights that the peer may use through this queue
	// pair, as far as regions grant them: all unless Modify took some away.
	Access Access
	// IRD and ORD bound the incoming and outgoing reads and atomics in flight.
	IRD, ORD int
	// SendDepth to MaxInline are the capacities.
	SendDepth, RecvDepth, MaxSendSGE, MaxRecvSGE, MaxInline int
	SignalAll                                               bool
	// SendQueued and RecvQueued are the work requests that have not completed;
	// with a shared receive queue RecvQueued is how many of its receives
	// messages of this queue pair hold.
	SendQueued, RecvQueued int
	// SendCQ, RecvCQ and SRQ are what it uses.
	SendCQ, RecvCQ *CQ
	SRQ            *SRQ
	// Err is why it left StateRTS.
	Err error
}

// Query returns the attributes.
func (qp *QP) Query() QPAttr {
	c := &qp.cfg
	a := QPAttr{State: qp.State(), Access: remoteAccess &^ qp.stream().Scope().Denied(), IRD: c.IRD, ORD: qp.ORD(),
		SendDepth: c.SendDepth, RecvDepth: c.RecvDepth, MaxSendSGE: c.MaxSendSGE, MaxRecvSGE: c.MaxRecvSGE,
		MaxInline: c.MaxInline, SignalAll: c.SignalAll, SendCQ: c.SendCQ, RecvCQ: c.RecvCQ, SRQ: c.SRQ, Err: qp.Err()}
	a.SendQueued, a.RecvQueued = qp.stream().Queued()
	paused, idle := qp.stream().Paused()
	a.Draining = paused && !idle
	return a
}

// AttrMask names attributes of a queue pair.
type AttrMask uint8

// Attributes that Modify changes.
const (
	AttrState AttrMask = 1 << iota
	AttrAccess
	AttrORD
)

// Modify changes the attributes in mask (ibv_modify_qp):
//
//   - State, from StateRTS to StateSQD: no send work request is started any more,
//     though they may be posted; when those started have completed there is an
//     EventSQDrained. The peer's reads are still answered. From StateSQD to
//     StateRTS: all goes on. To StateClosing: a Disconnect that does not wait. To
//     StateError: the end, at once; work requests are flushed. From StateError to
//     StateIdle, as Reset says: ErrBusy until Done.
//   - Access: the remote rights of the peer. Segments being placed are not
//     waited for.
//   - ORD, up to QPConfig.ORD. Beyond what the peer agreed to serve it will end
//     the connection.
//
// Other transitions are made by connecting, or return ErrQPState.
func (qp *QP) Modify(attr QPAttr, mask AttrMask) error {
	if mask&^(AttrState|AttrAccess|AttrORD) != 0 || mask&AttrAccess != 0 && attr.Access&^remoteAccess != 0 {
		return explain(ErrInvalid, "Modify: mask %#x, access %#x: attributes or rights that cannot be changed", mask,
			attr.Access)
	}
	if mask&AttrORD != 0 && qp.stream().SetORD(attr.ORD) != nil {
		return checkLimit("ORD", attr.ORD, 0, qp.cfg.ORD)
	}
	if mask&AttrAccess != 0 {
		qp.stream().Scope().Deny(remoteAccess &^ attr.Access)
	}
	if mask&AttrState == 0 {
		return nil
	}
	switch attr.State {
	case StateSQD:
		return qp.postError(qp.stream().Pause(), nil)
	case StateRTS:
		return qp.postError(qp.stream().Resume(), nil)
	case StateClosing:
		if st := qp.State(); st != StateRTS && st != StateSQD {
			return qp.stateError()
		}
		qp.stream().Close()
		return nil
	case StateError:
		qp.stream().Abort(rdmap.ErrClosed)
		return nil
	case StateIdle:
		l := qp.now.Load()
		if qp.State() != StateError {
			return qp.stateError()
		}
		select {
		case <-l.done:
			return qp.reset(l)
		default:
			return explain(ErrBusy, "QP %d: work requests have not completed", qp.num)
		}
	}
	return qp.stateError()
}
