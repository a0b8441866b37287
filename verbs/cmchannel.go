package verbs

import (
	"context"
	"slices"
	"sync"
)

// CMEventType is the kind of an event of the connection manager.
type CMEventType uint8

// Events of the connection manager, named after those of rdma_cm.
const (
	// CMAddrResolved, CMAddrError: the end of ResolveAddr.
	CMAddrResolved CMEventType = iota + 1
	CMAddrError
	// CMRouteResolved, CMRouteError: the end of ResolveRoute.
	CMRouteResolved
	CMRouteError
	// CMConnectRequest: a peer wants to connect to a listening identifier. ID is
	// a new one, to be answered with Accept or Reject, and then to be closed.
	CMConnectRequest
	// CMEstablished: connected, on either side.
	CMEstablished
	// CMRejected: the peer's consumer rejected (Err is a *RejectError), or its
	// device refused (ErrRefused).
	CMRejected
	// CMUnreachable: the peer did not answer in time.
	CMUnreachable
	// CMConnectError: connecting failed for another reason.
	CMConnectError
	// CMDisconnected: either side disconnected, or the connection was lost; Err
	// is QP.Err.
	CMDisconnected
)

var cmEventNames = [...]string{"no event", "address resolved", "address error", "route resolved", "route error",
	"connect request", "established", "rejected", "unreachable", "connect error", "disconnected"}

// String returns a short lower-case name.
func (t CMEventType) String() string {
	if int(t) < len(cmEventNames) {
		return cmEventNames[t]
	}
	return "unknown event"
}

// CMEvent is an event of the connection manager.
type CMEvent struct {
	Type CMEventType
	// ID is what it is about. Of a CMConnectRequest Listen is the identifier
	// that listens.
	ID, Listen *CMID
	// PrivateData is that of the peer, of CMConnectRequest, CMRejected and, at
	// the active side, CMEstablished. PeerIRD and PeerORD are the read depths it
	// stated then, -1 if none.
	PrivateData      []byte
	PeerIRD, PeerORD int
	// Err tells why, of events that are errors.
	Err error
}

// CMChannel is an event channel: the connection manager in the manner of
// rdma_cm, where nothing blocks and one goroutine can serve any number of
// connections, over SCTP and over TCP. Device.Connect and Device.Listen,
// Device.ConnectTCP and Device.ListenTCP are the same in blocking form.
type CMChannel struct {
	dev  *Device
	refs refs     // identifiers
	wake doorbell // signalled while there may be events

	mu    sync.Mutex
	queue []CMEvent // guarded by mu; an identifier has few at a time
}

// NewCMChannel makes an event channel.
func (d *Device) NewCMChannel() (*CMChannel, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	return &CMChannel{dev: d, wake: newDoorbell()}, nil
}

// push queues an event. It may be called with locks held.
func (c *CMChannel) push(e CMEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, e)
	c.wake.signal()
}

// GetEvent returns the oldest event. It blocks until there is one or ctx is
// done.
func (c *CMChannel) GetEvent(ctx context.Context) (CMEvent, error) {
	return await(ctx, c.wake, c.take)
}

// take takes the oldest event.
func (c *CMChannel) take() (e CMEvent, ok bool, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return e, false, nil
	}
	e = c.queue[0]
	c.queue = slices.Delete(c.queue, 0, 1)
	if len(c.queue) > 0 {
		c.wake.signal()
	}
	return e, true, nil
}

// Close frees the channel. It returns ErrBusy while it has identifiers.
func (c *CMChannel) Close() error {
	if err := c.refs.close("event channel", "identifiers"); err != nil {
		return err
	}
	c.dev.unuse()
	return nil
}

// forget drops the events of an identifier. It returns those requests to a
// listening one whose event was not taken.
func (c *CMChannel) forget(id *CMID) (requests []*CMID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = slices.DeleteFunc(c.queue, func(e CMEvent) bool {
		if e.Listen == id {
			requests = append(requests, e.ID)
		}
		return e.ID == id || e.Listen == id
	})
	return requests
}

// dropStale drops requests to a listening identifier that the peer took back
// before anybody has seen them: they must not pile up.
func (c *CMChannel) dropStale(id *CMID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = slices.DeleteFunc(c.queue, func(e CMEvent) bool {
		if e.Listen != id || e.ID.request.r.Pending() {
			return false
		}
		e.ID.cancel()
		c.refs.leave()
		return true
	})
}
