package relay

import "fmt"

// Handler has the upcalls for flows on some streams: see Node.Handle.
type Handler struct {
	// OnFragment and OnProgress are what they are in NodeConfig.
	OnFragment func(*Receiver, *Fragment)
	OnProgress func(*Sender)
}

// handled is a range of streams with upcalls of their own.
type handled struct {
	first, last uint16
	free        bool // Unhandle was called
	upcalls     Handler
}

// drop takes what is sent to streams whose program has left.
func drop(*Receiver, *Fragment) {}

// Handle has h get what belongs to the flows, in both directions, on the streams from first to last, in place of
// NodeConfig.OnFragment, NodeConfig.OnProgress and Node.Next: so several programs can share a node. What has been received
// on these streams and not read is passed to h.OnFragment before Handle returns. OnFragment must be set.
// Errors: ErrClosed, ErrConfig for streams of which some have a handler, or for a range that is another one than that of
// a former handler and overlaps it.
func (n *Node) Handle(first, last uint16, h Handler) error {
	if h.OnFragment == nil || first > last {
		return fmt.Errorf("%w: handler of streams %d to %d needs OnFragment and a range", ErrConfig, first, last)
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return ErrClosed
	}
	var r *handled
	for _, o := range n.ranges {
		switch {
		case o.free && o.first == first && o.last == last:
			r = o
		case o.first <= last && first <= o.last:
			n.mu.Unlock()
			return fmt.Errorf("%w: streams %d to %d have a handler", ErrConfig, max(first, o.first), min(last, o.last))
		}
	}
	if r == nil {
		r = &handled{first: first, last: last}
		n.ranges = append(n.ranges, r)
	}
	r.free, r.upcalls = false, h
	var waiting []*Receiver
	for id, f := range n.receivers {
		if id.stream < first || id.stream > last {
			continue
		}
		f.upcalls = &r.upcalls
		if !f.delivering && f.data.Len()+f.single.Len() > 0 {
			f.delivering = true
			waiting = append(waiting, f)
		}
	}
	for id, s := range n.senders {
		if id.stream >= first && id.stream <= last {
			s.upcalls = &r.upcalls
		}
	}
	for _, f := range waiting {
		f.deliver()
	}
	n.mu.Unlock()
	n.pump()
	return nil
}

// Unhandle ends what Handle has begun: what comes on these streams is dropped until Handle is called for them again. Upcalls that
// have begun may still run when it returns.
func (n *Node) Unhandle(first, last uint16) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.ranges {
		if r.first == first && r.last == last {
			r.free, r.upcalls = true, Handler{OnFragment: drop}
		}
	}
}

// handler returns the upcalls for a stream. mu is held.
func (n *Node) handler(stream uint16) *Handler {
	for _, r := range n.ranges {
		if r.first <= stream && stream <= r.last {
			return &r.upcalls
		}
	}
	return &n.upcalls
}
