package p2p

import "slices"

// ExpectedKind says what an operation waits for.
type ExpectedKind uint8

const (
	ExpectedMessage ExpectedKind = iota // the message of a posted receive
	ExpectedProbe                       // the message of a probe
	ExpectedBody                        // the rest of a message that a receive has matched
	ExpectedReceive                     // the receive of the peer that a send is for, or its acknowledgement
)

// Expected is something that an operation waits for from a peer.
type Expected struct {
	Kind      ExpectedKind
	Owner     any  // the communicator, nil if it is unknown
	Slot      Slot // of its context
	Peer, Tag int32
	Room      int // bytes that a posted receive takes
}

// prober is a goroutine that waits for a message in a probe.
type prober struct {
	w        *Waiter
	src, tag int32
}

// Expected lists what the operations of all communicators wait for. Peers are ranks in the communicator, in
// the remote group of an intercommunicator. What services wait for all the time is left out.
func (e *Engine) Expected() []Expected {
	var out []Expected
	sends, bodies := e.IDs.waiting()
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for id, x := range e.Contexts {
		if x.comm == nil || x.internal {
			continue
		}
		v := Expected{Owner: x.comm.owner, Slot: Slot(id & uint64(SlotMask))}
		x.posted.each(func(el *matchElem) {
			if r := el.request; !r.Standing {
				v.Peer, v.Tag, v.Room = r.src, r.tag, len(r.Buf)
				if r.Gaps.Type != nil {
					v.Room = r.Gaps.Count * r.Gaps.Type.Size()
				}
				out = append(out, v)
			}
		})
		v.Kind, v.Room = ExpectedProbe, 0
		for _, p := range x.probers {
			v.Peer, v.Tag = p.src, p.tag
			out = append(out, v)
		}
	}
	for kind, list := range map[ExpectedKind][]answer{ExpectedReceive: sends, ExpectedBody: bodies} {
		for _, a := range list {
			v := Expected{Kind: kind, Peer: int32(a.p.Rank), Tag: a.tag}
			if x := a.x; x != nil && x.comm != nil && !x.internal {
				v.Owner, v.Slot = x.comm.owner, Slot(x.id&uint64(SlotMask))
				if i := slices.Index(x.comm.Peers, a.p); i >= 0 {
					v.Peer = int32(i)
				}
			}
			out = append(out, v)
		}
	}
	return out
}

// answer is what a request with an id waits for.
type answer struct {
	p   *Peer
	x   *Context // nil of a request that was not sent in one
	tag int32
}

// waiting returns the requests with ids: sends, and receives whose bodies are on their way.
func (t *idTable) waiting() (sends, bodies []answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.slots {
		switch {
		case s.r == nil:
		case s.r.Context != nil:
			bodies = append(bodies, answer{s.p, s.r.Context, s.r.tag})
		default:
			sends = append(sends, answer{s.p, s.r.Sent, s.r.tag})
		}
	}
	return sends, bodies
}
