package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// send is the blocking send.
func (c *comm) send(ctx context.Context, s slot, mode sendMode, b []byte, dst, tag int) error {
	if dst == procNull {
		return c.usable()
	}
	if err := c.checkPeer(s, dst); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r := getRequest(c.eng)
	done, err := c.startSend(r, s, mode, b, dst, tag, true)
	if err != nil {
		return err
	}
	if !done {
		if err := c.eng.awaitSend(ctx, r); err != nil {
			return err
		}
		if err := r.err; err != nil {
			return err
		}
	}
	r.recycle()
	return nil
}

// isend starts a send.
func (c *comm) isend(s slot, mode sendMode, b []byte, dst, tag int) (*request, error) {
	r := getRequest(c.eng)
	if err := c.beginSend(r, s, mode, b, dst, tag); err != nil {
		return nil, err
	}
	return r, nil
}

// beginSend makes r a nonblocking send. If it returns an error, r must not be used again.
func (c *comm) beginSend(r *request, s slot, mode sendMode, b []byte, dst, tag int) error {
	if dst == procNull {
		if err := c.usable(); err != nil {
			return err
		}
		r.status = noMessage
		r.complete(nil)
		return nil
	}
	if err := c.checkPeer(s, dst); err != nil {
		return err
	}
	done, err := c.startSend(r, s, mode, b, dst, tag, false)
	if done && err == nil {
		r.complete(nil)
	}
	return err
}

// checkPeer returns why no message can be exchanged with rank, or nil.
func (c *comm) checkPeer(s slot, rank int) error {
	if rank < 0 || rank >= len(c.peers) {
		return fmt.Errorf("%w: %d of %d", mpierr.ErrRank, rank, len(c.peers))
	}
	return c.open(s)
}

// startSend sends b eagerly, or begins a rendezvous by an RTS if b is longer than the eager limit
// or the peer has no room. It reports true if the message is sent and b is free again; otherwise r
// is completed later. It does not block. blocks says that the caller is about to wait until b is
// free.
func (c *comm) startSend(r *request, s slot, mode sendMode, b []byte, dst, tag int, blocks bool) (done bool, err error) {
	e, x, p := c.eng, c.ctx[s.context()], c.peers[dst]
	v := envelope.Header{Kind: envelope.Eager, Sig: s.sig(), Source: uint32(c.rank), Context: x.id, Tag: int32(tag), Length: uint64(len(b))}
	hints := c.hints.Load()
	r.peer, r.stream, r.sent = p, hints.streamOf(x, v.Tag), x
	waits := int32(0) // events that complete r: see Request.pending
	sole, sent := e.coalescer.sends.Add(1) == 1, false
	if mode == sendSync {
		v.Kind = envelope.Sync
		waits = 1
	}

	p.mu.Lock()
	err = p.failure()
	if err == nil && p.announced.Load() >= maxAnnounced {
		err = fmt.Errorf("%w at rank %d", mpierr.ErrLimit, p.rank)
	}
	if err != nil {
		p.mu.Unlock()
		return false, err
	}
	if s.context() == slotUser && !hints.overtaking {
		v.Flags = envelope.FlagSeq
		v.Seq = c.seq[dst]
		c.seq[dst]++
	}
	price := cost(len(b))
	switch {
	case len(b) > hints.eager || p.credit.Load() < price:
		p.announced.Add(1)
		v.Kind = envelope.RTS
		r.buf = b
		switch hints.rendezvous {
		case rendezvousWrite:
			v.Flags |= envelope.FlagWrite
		case rendezvousRead:
			e.offer(r, &v)
		default:
			if l, ok := p.link.(memoryLink); ok {
				if v.Key, v.HasKey = l.Offer(r); v.HasKey {
					v.Flags |= envelope.FlagCMA
				}
			}
		}
		r.pending.Store(1)
		r.id = e.ids.add(r, p)
		v.ID = r.id
		err = p.link.Send(r.stream, v.Encode(&r.hdr), nil, nil)
		waits = 1
	default:
		p.credit.Add(-price)
		if waits > 0 {
			r.id = e.ids.add(r, p)
			v.ID = r.id
		}
		hdr := v.Encode(&r.hdr)
		r.pending.Store(waits)
		err = transport.ErrFull
		if now, ok := p.link.(transport.PromptLink); ok && sole && len(b) <= maxPrompt {
			err = now.SendNow(r.stream, hdr, b)
			sent = err == nil
		} else if len(b) <= p.link.CopyLimit(blocks) {
			err = p.link.Send(r.stream, hdr, b, nil)
		}
		if errors.Is(err, transport.ErrFull) {
			waits++
			r.pending.Store(waits)
			err = p.link.Send(r.stream, hdr, b, (*sendOwner)(r))
		}
	}
	if err == nil {
		p.sent[s.context()].count(len(b))
	}
	p.mu.Unlock()
	if err != nil {
		if r.id != 0 && e.ids.remove(r.id, p) != nil {
			r.afterReads(func(bool) {}) // the peer has not learned of the offer
		}
		return false, p.lost(err)
	}
	if !sent {
		e.transmit(p, len(b), sole, mode == sendHeld)
	}
	if waits > 0 {
		if err := c.stopped(x); err != nil { // interruptSends may have run before ids had r
			e.interruptSends(func(y *matchContext) bool { return y == x }, err)
		}
	}
	return waits == 0, nil
}

// maxPrompt is the longest message that is transmitted under the lock of the peer, in bytes.
const maxPrompt = 4 << 10

// sendOwner is the owner of a body that the link references: the request of its send.
type sendOwner request

// Released is called when the link no longer reads the body.
func (o *sendOwner) Released(err error) { (*request)(o).event(err) }

// event counts one of the events that complete a send; an error completes it at once.
func (r *request) event(err error) {
	if err != nil {
		if r.peer.failure() == nil {
			err = r.peer.lost(err)
		} else {
			err = r.peer.failure()
		}
		r.complete(err)
		return
	}
	if r.pending.Add(-1) == 0 {
		r.complete(r.dropped)
	}
}

// sendBody answers a CTS: it sends or writes the body that the receiver has asked for.
func (e *engine) sendBody(p *peer, v *envelope.Header) error {
	r := e.ids.remove(v.ID, p)
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
	p.announced.Add(-1)
	if r.ctx != nil || v.Length > uint64(len(r.buf)) {
		err := fmt.Errorf("%w: body of %d bytes asked for", mpierr.ErrProtocol, v.Length)
		r.fail(err)
		return err
	}
	if r.offered != nil { // the receiver could not read all of it
		w := *v
		r.afterReads(func(bool) { e.sendBodyAs(r, &w) })
		return nil
	}
	e.sendBodyAs(r, v)
	return nil
}

// sendBodyAs sends the body of r as a message for a CTS, or by RDMA Write for a CTSKey.
func (e *engine) sendBodyAs(r *request, v *envelope.Header) {
	switch {
	case v.Length == 0:
		r.event(nil)
	case v.Kind == envelope.CTSKey && e.bulk != nil:
		e.bulk.Write(r, v)
	default:
		e.sendBodyMessage(r, v.PeerID, int(v.Length), 0)
	}
}

// sendBodyMessage sends the first n bytes of r as a message for receive id of the peer.
func (e *engine) sendBodyMessage(r *request, id uint64, n int, flags uint8) {
	p := r.peer
	h := envelope.Header{Kind: envelope.Data, Flags: flags, ID: id, Length: uint64(n)}
	if err := p.link.Send(e.bodyStream(r.stream), h.Encode(&r.hdr), r.buf[:n], (*sendOwner)(r)); err != nil {
		r.event(err)
		return
	}
	p.link.Flush()
}

// awaitSend waits for r. If ctx ends first, it asks the receiver to drop the message and waits for
// the answer: either the message is dropped and awaitSend returns ctx.Err(), or a receive has
// matched it and the send succeeds. Only the receiver can decide, because a decision of the sender
// could cross a match on the wire.
func (e *engine) awaitSend(ctx context.Context, r *request) error {
	err := r.await(ctx)
	if err == nil {
		return nil
	}
	r.cancelSend()
	_ = r.await(context.Background())
	if r.err == mpierr.ErrCanceled {
		return err
	}
	return r.err
}

// revoked handles SendFailed: a send was given up because of a failure. Its RTS is removed from the
// unexpected queue, or the receive that has matched it goes on to its next match. A receive of a
// collective fails, as the collective does.
func (e *engine) revoked(p *peer, v *envelope.Header) {
	if v.PeerID != 0 {
		r := e.ids.remove(v.PeerID, p)
		if r == nil || r.ctx == nil {
			return
		}
		why := mpierr.ErrCanceled
		if v.Flags&envelope.FlagFailed != 0 && r.ctx.interrupted() {
			why = mpierr.ErrProcFailed // which this rank has not noticed yet
		}
		err := fmt.Errorf("%w: rank %d has given its send up", why, p.rank)
		if r.ctx.interrupted() {
			r.fail(err)
		} else {
			e.rematch(r, err)
		}
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.contexts {
		for _, m := range x.messages(func(m *message) bool {
			return m.peer == p && m.kind == envelope.RTS && m.id == v.ID
		}) {
			x.removeMessage(m)
			m.recycle()
		}
	}
}
