package verbs

import (
	"errors"
	"io"
	"slices"

	"github.com/weftstack/weft/ddp/ddpsctp"
)

// Listen starts to take connection requests, each of which raises a
// CMConnectRequest. While backlog of them (0: Config.Backlog) are not answered
// further peers are refused. A device has one listener at a time, else ErrBusy.
func (id *CMID) Listen(backlog int) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.listen(backlog, func() (io.Closer, error) { return id.ch.dev.listen(id.requested) })
}

// listen takes what start starts.
func (id *CMID) listen(backlog int, start func() (io.Closer, error)) error { // mu is held
	if backlog < 0 {
		return checkLimit("backlog", backlog, 0, id.ch.dev.backlog())
	}
	if err := id.enter(cmListen, cmIdle); err != nil {
		return err
	}
	id.backlog = min(backlog, id.ch.dev.backlog())
	if id.backlog == 0 {
		id.backlog = id.ch.dev.backlog()
	}
	l, err := start()
	if err != nil {
		id.state = cmIdle
		return err
	}
	id.listener = l
	return nil
}

// requested takes a request to a listening identifier: upcall.
func (id *CMID) requested(r *ddpsctp.Request) bool {
	id.ch.dropStale(id)
	id.mu.Lock()
	defer id.mu.Unlock()
	id.pending = slices.DeleteFunc(id.pending, func(c *ConnRequest) bool { return !c.r.Pending() })
	if len(id.pending) >= id.backlog {
		return false
	}
	c := newConnRequest(r)
	if !id.raise(c) {
		return false
	}
	id.pending = append(id.pending, c)
	return true
}

// raise makes an identifier of a request, and an event.
func (id *CMID) raise(c *ConnRequest) bool { // mu is held
	if id.closed || id.ch.refs.enter() != nil {
		return false
	}
	fresh := id.ch.newID(id.context)
	fresh.state, fresh.request = cmRequest, c
	fresh.addr, fresh.tcp, fresh.process = c.Remote, c.RemoteTCP, c.RemoteProcess
	id.ch.push(CMEvent{Type: CMConnectRequest, ID: fresh, Listen: id,
		PrivateData: c.PrivateData, PeerIRD: c.PeerIRD, PeerORD: c.PeerORD})
	return true
}

// Accept accepts the request that the identifier was made for, with its queue
// pair; see ConnRequest.Accept. CMEstablished follows.
func (id *CMID) Accept(p ConnParams) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.qp == nil {
		return ErrCMState
	}
	if err := id.enter(cmConnected, cmRequest); err != nil {
		return err
	}
	if err := id.request.Accept(id.qp, p); err != nil {
		if errors.Is(err, ErrPrivateData) {
			id.state = cmRequest
		} else {
			id.state = cmEnded
		}
		return err
	}
	id.ch.push(CMEvent{Type: CMEstablished, ID: id, PeerIRD: id.request.PeerIRD, PeerORD: id.request.PeerORD})
	id.watch()
	return nil
}

// Reject rejects the request that the identifier was made for.
func (id *CMID) Reject(privateData []byte) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	if err := checkPrivate(privateData); err != nil {
		return err
	}
	if err := id.enter(cmEnded, cmRequest); err != nil {
		return err
	}
	return id.request.Reject(privateData)
}
