package p2p

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// Send is the blocking send.
func (c *Comm) Send(ctx context.Context, s Slot, mode SendMode, b []byte, dst, tag int) error {
	if dst == ProcNull {
		return c.Usable()
	}
	return c.sendAs(ctx, GetRequest(c.Engine), s, mode, b, dst, tag)
}

// sendAs is Send by r to a rank, which it recycles.
func (c *Comm) sendAs(ctx context.Context, r *Request, s Slot, mode SendMode, b []byte, dst, tag int) error {
	if err := c.CheckPeer(s, dst); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done, err := c.startSend(r, s, mode, b, dst, tag, true)
	if err != nil {
		return err
	}
	if !done {
		if err := c.Engine.AwaitSend(ctx, r); err != nil {
			return err
		}
		if err := r.Err; err != nil {
			return err
		}
	} else if r.packed != nil { // the link has copied it
		r.takePacked().Put()
	}
	r.Recycle()
	return nil
}

// Isend starts a send.
func (c *Comm) Isend(s Slot, mode SendMode, b []byte, dst, tag int) (*Request, error) {
	r := GetRequest(c.Engine)
	if err := c.BeginSend(r, s, mode, b, dst, tag); err != nil {
		return nil, err
	}
	return r, nil
}

// IsendAwaited is Isend for a caller that is about to wait until b is free: as blocking sends do, it
// copies longer bodies, because one that is referenced is free only after a round trip.
func (c *Comm) IsendAwaited(s Slot, mode SendMode, b []byte, dst, tag int) (*Request, error) {
	r := GetRequest(c.Engine)
	if err := c.beginSend(r, s, mode, b, dst, tag, true); err != nil {
		return nil, err
	}
	return r, nil
}

// BeginSend makes r a nonblocking send. If it returns an error, r must not be used again.
func (c *Comm) BeginSend(r *Request, s Slot, mode SendMode, b []byte, dst, tag int) error {
	return c.beginSend(r, s, mode, b, dst, tag, false)
}

func (c *Comm) beginSend(r *Request, s Slot, mode SendMode, b []byte, dst, tag int, blocks bool) error {
	if dst == ProcNull {
		if err := c.Usable(); err != nil {
			return err
		}
		r.Status = noMessage
		r.Complete(nil)
		return nil
	}
	if err := c.CheckPeer(s, dst); err != nil {
		return err
	}
	done, err := c.startSend(r, s, mode, b, dst, tag, blocks)
	if done && err == nil {
		r.Complete(nil)
	}
	return err
}

// CheckPeer returns why no message can be exchanged with rank, or nil.
func (c *Comm) CheckPeer(s Slot, rank int) error {
	if rank < 0 || rank >= len(c.Peers) {
		return fmt.Errorf("%w: %d of %d", mpierr.ErrRank, rank, len(c.Peers))
	}
	return c.open(s)
}

// startSend sends b eagerly, or begins a rendezvous by an RTS if b is longer than the eager limit
// or the peer has no room. It reports true if the message is sent and b is free again; otherwise r
// is completed later. It does not block. blocks says that the caller is about to wait until b is
// free.
func (c *Comm) startSend(
	r *Request, s Slot, mode SendMode, b []byte, dst, tag int, blocks bool,
) (done bool, err error) {
	e, x, p := c.Engine, c.Contexts[s.context()], c.Peers[dst]
	n := len(b)
	if r.Gaps.Type != nil {
		n = r.Room()
	}
	v := envelope.Header{Kind: envelope.Eager, Sig: s.Sig(), Source: uint32(c.Rank), Context: x.id, Tag: int32(tag),
		Length: uint64(n)}
	hints := c.Hints.Load()
	r.Peer, r.stream, r.Sent, r.tag = p, hints.StreamOf(x, v.Tag), x, v.Tag
	waits := int32(0) // events that complete r: see Request.pending
	sole, sent := e.Coalescer.sends.Add(1) == 1, false
	var t *runTable
	if r.Gaps.Type != nil && n <= p.eager(hints) {
		t = r.runTable(n)
	}
	if mode == SendSync {
		v.Kind = envelope.Sync
		waits = 1
	}

	p.mu.Lock()
	err = p.Failure()
	if err == nil && p.Announced.Load() >= MaxAnnounced {
		err = fmt.Errorf("%w at rank %d", mpierr.ErrLimit, p.Rank)
	}
	if err != nil {
		p.mu.Unlock()
		t.put()
		return false, err
	}
	if s.context() == SlotUser && !hints.Overtaking {
		v.Flags = envelope.FlagSeq
		v.Seq = c.seq[dst]
		c.seq[dst]++
	}
	price := cost(n)
	switch {
	case n > p.eager(hints) || p.Credit.Load() < price || r.Gaps.Type != nil && t == nil: // the hints may have changed
		p.Announced.Add(1)
		v.Kind = envelope.RTS
		r.Buf, r.announced = b, true
		switch hints.Rendezvous {
		case RendezvousWrite:
			r.pack()
			v.Flags |= envelope.FlagWrite
		case RendezvousRead:
			r.pack()
			e.offer(r, &v)
		default:
			if l, ok := p.Link.(MemoryLink); ok {
				if v.Key, v.HasKey = l.Offer(r); v.HasKey {
					v.Flags |= envelope.FlagCMA
				}
			}
		}
		r.pending.Store(1)
		r.id = e.IDs.Add(r, p)
		v.ID = r.id
		err = p.Link.Send(r.stream, v.Encode(&r.hdr), nil, nil)
		waits = 1
	default:
		p.Credit.Add(-price)
		var own *bufpool.Buffer
		if t != nil {
			r.Gaps = datatype.Buffer{} // of an announced send
		} else if r.packed != nil && len(b) > maxPrompt {
			own = r.takePacked()
		}
		// From Add on others may end r: what they look at is set before, and the end of this call is an event.
		begun := waits > 0
		if begun {
			waits++
		}
		r.pending.Store(waits)
		if begun {
			r.id = e.IDs.Add(r, p)
			v.ID = r.id
		}
		hdr := v.Encode(&r.hdr)
		err = transport.ErrFull
		if t != nil {
			waits++
			r.pending.Add(1)
			err = t.sendBy(r.stream, hdr)
			t = nil
		} else if now, ok := p.Link.(transport.PromptLink); ok && (sole || !p.Coalesces) && len(b) <= maxPrompt {
			err = now.SendNow(r.stream, hdr, b)
			sent = err == nil
		} else if own != nil {
			err = p.Link.Send(r.stream, hdr, b, own)
		} else if len(b) <= p.Link.CopyLimit(blocks) {
			err = p.Link.Send(r.stream, hdr, b, nil)
		}
		if errors.Is(err, transport.ErrFull) {
			waits++
			r.pending.Add(1)
			err = p.Link.Send(r.stream, hdr, b, (*sendOwner)(r))
		}
		if begun && err == nil {
			r.Event(nil)
		}
	}
	if err == nil {
		p.sent[s.context()].count(n)
	}
	p.mu.Unlock()
	t.put()
	if err != nil {
		if r.id != 0 && e.IDs.remove(r.id, p) != nil {
			r.AfterReads(func(bool) {}) // the peer has not learned of the offer
		}
		return false, p.Lost(err)
	}
	if !sent {
		e.transmit(p, n, sole, mode == SendHeld)
	}
	if waits > 0 {
		if err := c.stopped(x); err != nil { // InterruptSends may have run before ids had r
			e.InterruptSends(func(y *Context) bool { return y == x }, err)
		}
	}
	return waits == 0, nil
}

// distantFactor is how many times longer eager messages to other sites may be: a rendezvous costs one more round trip,
// in which at 1 Gb/s and 9 ms 2 MiB could be sent. Credit bounds them like others.
const distantFactor = 4

// eager returns the eager limit of messages to p.
func (p *Peer) eager(h *Hints) int {
	if p.Distant {
		return distantFactor * h.Eager
	}
	return h.Eager
}

// maxPrompt is the longest message that is transmitted under the lock of the peer, in bytes.
const maxPrompt = 4 << 10

// sendOwner is the owner of a body that the link references: the request of its send.
type sendOwner Request

// Released is called when the link no longer reads the body.
func (o *sendOwner) Released(err error) { (*Request)(o).Event(err) }

// Event counts one of the events that complete a send; an error completes it at once.
func (r *Request) Event(err error) {
	if err != nil {
		if r.Peer.Failure() == nil {
			err = r.Peer.Lost(err)
		} else {
			err = r.Peer.Failure()
		}
		r.Complete(err)
		return
	}
	if r.pending.Add(-1) == 0 {
		r.Complete(r.dropped)
	}
}

// onSyncAck ends the synchronous send that p has matched.
func (e *Engine) onSyncAck(p *Peer, id uint64) error {
	r := e.IDs.remove(id, p)
	if r == nil {
		return nil // it has ended for another reason
	}
	if r.Context != nil || r.announced {
		err := fmt.Errorf("%w: rank %d has matched request %d, which is no synchronous send", mpierr.ErrProtocol, p.Rank, id)
		r.abandon(err)
		return err
	}
	r.Event(nil)
	return nil
}

// sendBody answers a CTS: it sends or writes the body that the receiver has asked for.
func (e *Engine) sendBody(p *Peer, v *envelope.Header) error {
	r := e.IDs.remove(v.ID, p)
	if r == nil { // withdrawn
		if v.PeerID != 0 {
			answer := envelope.Header{Kind: envelope.SendFailed, PeerID: v.PeerID}
			if e.failures() {
				answer.Flags = envelope.FlagFailed
			}
			p.control(0, &answer)
		}
		return nil
	}
	if r.announced {
		p.Announced.Add(-1)
	}
	if r.Context != nil || !r.announced || v.Length > uint64(r.Room()) {
		err := fmt.Errorf("%w: body of %d bytes asked for", mpierr.ErrProtocol, v.Length)
		r.abandon(err)
		return err
	}
	if r.Offered != nil { // the receiver could not read all of it
		w := *v
		r.AfterReads(func(bool) { e.sendBodyAs(r, &w) })
		return nil
	}
	e.sendBodyAs(r, v)
	return nil
}

// sendBodyAs sends the body of r as a message for a CTS, or by RDMA Write for a CTSKey.
func (e *Engine) sendBodyAs(r *Request, v *envelope.Header) {
	switch {
	case v.Length == 0:
		r.Event(nil)
	case v.Kind == envelope.CTSKey && e.Bulk != nil:
		r.pack()
		e.Bulk.Write(r, v)
	default:
		e.SendBodyMessage(r, v.PeerID, int(v.Length), 0)
	}
}

// SendBodyMessage sends the first n bytes of r as a message for receive id of the peer.
func (e *Engine) SendBodyMessage(r *Request, id uint64, n int, flags uint8) {
	p, stream := r.Peer, e.bodyStream(r.stream)
	h := envelope.Header{Kind: envelope.Data, Flags: flags, ID: id, Length: uint64(n)}
	hdr := h.Encode(&r.hdr)
	var err error
	if t := r.runTable(n); t != nil {
		err = t.sendBy(stream, hdr)
	} else {
		r.pack()
		err = p.Link.Send(stream, hdr, r.Buf[:n], (*sendOwner)(r))
	}
	if err != nil {
		r.Event(err)
		return
	}
	p.Link.Flush()
}

// AwaitSend waits for r. If ctx ends first, it asks the receiver to drop the message and waits for
// the answer: either the message is dropped and AwaitSend returns ctx.Err(), or a receive has
// matched it and the send succeeds. Only the receiver can decide, because a decision of the sender
// could cross a match on the wire.
func (e *Engine) AwaitSend(ctx context.Context, r *Request) error {
	err := r.Await(ctx)
	if err == nil {
		return nil
	}
	r.cancelSend()
	_ = r.Await(context.Background())
	if r.Err == mpierr.ErrCanceled {
		return err
	}
	return r.Err
}

// revoked handles SendFailed: a send was given up because of a failure. Its RTS is removed from the
// unexpected queue, or the receive that has matched it goes on to its next match. A receive of a
// collective fails, as the collective does.
func (e *Engine) revoked(p *Peer, v *envelope.Header) {
	if v.PeerID != 0 {
		r := e.IDs.remove(v.PeerID, p)
		if r == nil || r.Context == nil {
			return
		}
		why := mpierr.ErrCanceled
		if v.Flags&envelope.FlagFailed != 0 && r.Context.interrupted() {
			why = mpierr.ErrProcFailed // which this rank has not noticed yet
		}
		err := fmt.Errorf("%w: rank %d has given its send up", why, p.Rank)
		if r.Context.interrupted() {
			r.Fail(err)
		} else {
			e.rematch(r, err)
		}
		return
	}
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for _, x := range e.Contexts {
		for _, m := range x.messages(func(m *Message) bool {
			return m.peer == p && m.kind == envelope.RTS && m.id == v.ID
		}) {
			x.removeMessage(m)
			m.recycle()
		}
	}
}
