package sctp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	weft "github.com/weftstack/weft/sctp"
)

const (
	// maxResets is how many streams one request names.
	maxResets = 200
	// busyDelay is how long a request waits when too many wait for the peer's answer.
	busyDelay = 50 * time.Millisecond
)

// resetState is how far the reset of an outgoing stream is.
type resetState uint8

const (
	resetNone    resetState = iota
	resetWanted             // when all that was sent is acknowledged
	resetQueued             // in Association.resets
	resetPending            // the peer has been asked
)

// outgoing is an outgoing stream below streams that were closed and opened again. Its fields are
// guarded by the mutex of the association.
type outgoing struct {
	id          uint16
	state       resetState
	outstanding int // messages not acknowledged
	users       int // streams that are open
	// again tells that a stream was closed while the reset for an earlier one of the same number was
	// under way: another one follows.
	again bool
}

func (o *outgoing) closing() bool { return o.state != resetNone }

// free forgets a reset: the association has ended, or the peer has restarted.
func (o *outgoing) free() { o.state, o.again = resetNone, false }

// Close closes the outgoing side of the stream: the peer reads io.EOF after all that was written (RFC
// 8831, Section 6.7; RFC 6525). Messages of the peer can be read until it has closed its side. Close
// does not wait, and a second one does nothing. It returns ErrResetPacketInStateNotExist if the
// association is not established.
func (s *Stream) Close() error {
	a := s.a
	a.mu.Lock()
	defer a.unlock()
	if s.state != StreamStateOpen {
		return nil
	}
	s.state = StreamStateClosing
	if s.readErr != nil {
		s.finish()
	}
	s.out.users--
	if a.ended || a.shutdown {
		return fmt.Errorf("%w: stream %d of %s", ErrResetPacketInStateNotExist, s.id, a.name)
	}
	switch {
	case s.failed != nil:
	case s.out.closing():
		s.out.again = true
	default:
		s.out.state = resetWanted
		a.mayReset(s.out)
	}
	return nil
}

// mayReset requests the reset of an outgoing stream that is to be reset if all that was sent is
// acknowledged or abandoned. RFC 6525 would have the request wait for that, and with it those for
// other streams. mu is held.
func (a *Association) mayReset(o *outgoing) {
	if o.state == resetWanted && o.outstanding == 0 {
		a.hurry(o)
	}
}

// hurry requests the reset of an outgoing stream, whatever is outstanding. mu is held.
func (a *Association) hurry(o *outgoing) {
	if o.state == resetWanted && !a.ended {
		o.state = resetQueued
		a.resets = append(a.resets, o)
	}
}

// nextResets returns the streams of the next request, or nil. mu is held.
func (a *Association) nextResets() []*outgoing {
	if len(a.resets) == 0 || a.resetting || a.ended {
		return nil
	}
	n := min(len(a.resets), maxResets)
	batch := a.resets[:n:n]
	a.resets = a.resets[n:]
	a.resetting = true
	for _, o := range batch {
		o.state = resetPending
	}
	return batch
}

// reset asks the peer to reset streams, and waits for its answer or the end of the association.
func (a *Association) reset(batch []*outgoing) {
	ids := make([]uint16, len(batch))
	for i, o := range batch {
		ids[i] = o.id
	}
	err := a.weft.ResetStreams(context.Background(), ids...)
	for errors.Is(err, weft.ErrBusy) {
		t := time.NewTimer(busyDelay)
		select {
		case <-t.C:
			err = a.weft.ResetStreams(context.Background(), ids...)
		case <-a.done:
			t.Stop()
		}
		if a.hasEnded() {
			break
		}
	}
	if err != nil {
		// The peer may not know that the streams were closed. They can be used again: their
		// sequence numbers go on.
		a.log.Debugf("[%s] reset of streams %v: %v", a.name, ids, err)
	}
	a.wereReset(batch)
}

// wereReset notes that a request has been answered, or has failed.
func (a *Association) wereReset(batch []*outgoing) {
	a.mu.Lock()
	a.resetting = false
	for _, o := range batch {
		again := o.again
		o.free()
		if again {
			o.state = resetWanted
			a.mayReset(o)
		}
		a.forget(o)
	}
	a.resetDone.Broadcast()
	a.unlock()
}

func (a *Association) hasEnded() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// forget frees the memory of an outgoing stream that is not in use. mu is held.
func (a *Association) forget(o *outgoing) {
	if o.users == 0 && o.outstanding == 0 && !o.closing() && a.slots[o.id] == o {
		delete(a.slots, o.id)
	}
}

// peerReset notes that the peer has reset its outgoing streams, all of them if ids is empty.
//
// RFC 8831, Section 6.7: "When the peer sees that an incoming stream was reset, it also resets its
// corresponding outgoing stream." That is up to the program, which reads io.EOF.
func (a *Association) peerReset(ids []uint16) {
	a.mu.Lock()
	defer a.unlock()
	if len(ids) == 0 {
		for _, s := range a.streams {
			a.wasReset(s)
		}
	}
	for _, id := range ids {
		if s := a.streams[id]; s != nil {
			a.wasReset(s)
		}
	}
}

// wasReset ends the incoming side of a stream. mu is held.
func (a *Association) wasReset(s *Stream) {
	delete(a.streams, s.id)
	a.parts.drop(a, s)
	s.endRead(io.EOF)
	if s.state == StreamStateClosing {
		s.finish()
	}
}
