package core

import "net/netip"

// EventKind tells what an Event is about.
type EventKind uint8

// Events, after RFC 9260, Section 11.2.
const (
	// EventUp: the association is established (COMMUNICATION UP).
	EventUp EventKind = iota + 1
	// EventRestart: the peer restarted; Tag is the new local tag, by which the
	// association must be found from now on (RESTART).
	EventRestart
	// EventPeerShutdown: the peer shuts down; no new data can be sent.
	EventPeerShutdown
	// EventDown: the association ended; Err is nil after a graceful shutdown
	// (SHUTDOWN COMPLETE) and tells why otherwise (COMMUNICATION LOST). It is
	// the last event.
	EventDown
	// EventPathUp, EventPathDown: the path to Addr became active or inactive
	// (NETWORK STATUS CHANGE).
	EventPathUp
	EventPathDown
	// EventPathConfirmed: Addr answered its first heartbeat (RFC 9260, Section
	// 5.4).
	EventPathConfirmed
	// EventPrimary: Addr is the new primary path.
	EventPrimary
	// EventPathMoved: the peer's UDP port changed; Addr is the new address of
	// the path (RFC 6951, Section 5.4).
	EventPathMoved
	// EventPeerError: the peer sent an ERROR chunk with Cause
	// (COMMUNICATION ERROR).
	EventPeerError
	// EventWritable: a Send that would have failed with ErrWouldBlock may
	// succeed now.
	EventWritable
	// EventDry, of associations whose Config asks for it: everything sent has been
	// acknowledged.
	EventDry
	// EventPartialAborted: the message that was being delivered in part on
	// Stream will not be completed.
	EventPartialAborted
	// EventSendFailed: a message on Stream with PPID was abandoned.
	EventSendFailed
	// EventRequestDone: the request to the peer that a call named Request is
	// done; Err tells how it failed, if it did.
	EventRequestDone
	// EventStreamsReset: the peer reset the incoming streams in Streams, all of
	// them if it is empty (RFC 6525).
	EventStreamsReset
	// EventOutStreamsReset: outgoing streams in Streams were reset, all of them
	// if it is empty, or not if Err is set.
	EventOutStreamsReset
	// EventStreamsAdded: the number of streams changed.
	EventStreamsAdded
	// EventAuthKey: the peer authenticates with the shared key Key from now on
	// (RFC 4895).
	EventAuthKey
	// EventAuthKeyFree: the shared key Key, which was deactivated, will not be used
	// to send any more (RFC 6458, Section 6.1.8).
	EventAuthKeyFree
	// EventPathAdded, EventPathRemoved: the peer added or removed Addr (RFC
	// 5061).
	EventPathAdded
	EventPathRemoved
	// EventPathFailed: the path to Addr is potentially failed; EventPathUp or
	// EventPathDown ends that (RFC 7829, Section 3.2, rule 12).
	EventPathFailed
	// EventPathMTU: the largest packet for the path to Addr changed (RFC 8899).
	EventPathMTU
	// EventState, of associations whose Config asks for it: Change is a transition between
	// states (RFC 9260, Section 4).
	EventState
)

// Transition is a change of an association's state, with its reason.
type Transition struct {
	From, To State
	Reason   string
}

// Event is something that happened to an association and is not data.
type Event struct {
	Kind   EventKind
	Stream uint16
	Cause  uint16
	Tag    uint32
	PPID   uint32
	Addr   netip.AddrPort
	Err    error
	// Streams and Request are set in the events that mention them.
	Streams []uint16
	Request uint32
	Key     uint16
	Change  *Transition
}

var eventNames = [...]string{EventUp: "up", EventRestart: "restart", EventPeerShutdown: "peer shutdown",
	EventDown: "down", EventPathUp: "path up", EventPathDown: "path down",
	EventPathConfirmed: "path confirmed", EventPrimary: "primary changed", EventPathMoved: "path moved",
	EventPeerError: "peer error", EventWritable: "writable", EventDry: "dry",
	EventPartialAborted: "partial delivery aborted", EventSendFailed: "send failed",
	EventRequestDone: "request done", EventStreamsReset: "streams reset",
	EventOutStreamsReset: "outgoing streams reset", EventStreamsAdded: "streams added",
	EventAuthKey: "shared key changed", EventAuthKeyFree: "shared key unused", EventPathAdded: "path added", EventPathRemoved: "path removed",
	EventPathFailed: "path potentially failed", EventPathMTU: "path MTU changed", EventState: "state changed"}

// String returns a short lower-case name.
func (k EventKind) String() string {
	if int(k) < len(eventNames) && eventNames[k] != "" {
		return eventNames[k]
	}
	return "unknown"
}

// maxEvents bounds the events that wait for PollEvent. Only a caller that
// never polls reaches it; EventUp, EventRestart, EventDown and EventRequestDone
// are kept even then, but of restarts one behind the other only the last.
const maxEvents = 256

// eventQueue is a FIFO of events that reuses its memory.
type eventQueue struct {
	list []Event
	head int
}

func (q *eventQueue) push(e Event) {
	if len(q.list)-q.head >= maxEvents {
		switch last := &q.list[len(q.list)-1]; e.Kind {
		case EventRestart:
			if last.Kind == EventRestart {
				*last = e // a peer can restart as often as it likes
				return
			}
		case EventUp, EventDown, EventRequestDone:
		default:
			return
		}
	}
	q.list = append(q.list, e)
}

func (q *eventQueue) pop() (Event, bool) {
	if q.head == len(q.list) {
		return Event{}, false
	}
	e := q.list[q.head]
	q.list[q.head] = Event{}
	q.head++
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
	return e, true
}

// HasEvents reports whether PollEvent has any.
func (a *Assoc) HasEvents() bool {
	return a.events.head < len(a.events.list) || a.tx.q.HasFailed()
}

// PollEvent returns the next event, oldest first.
func (a *Assoc) PollEvent() (Event, bool) {
	for _, m := range a.tx.q.TakeFailed() {
		a.events.push(Event{Kind: EventSendFailed, Stream: m.SID, PPID: m.PPID})
	}
	return a.events.pop()
}

// endError is what unfinished requests are told when the association ends with
// err.
func endError(err error) error {
	if err == nil {
		return ErrClosed
	}
	return err
}

// requestDone tells the outcome of request id; 0 is nobody's.
func (c *situation) requestDone(id uint32, err error) {
	if id != 0 {
		c.events.push(Event{Kind: EventRequestDone, Request: id, Err: err})
	}
}
