package main

import (
	"context"

	"github.com/weftstack/weft/mpi"
)

// Bounds of what rank 0 has under way: messages, and roughly their bytes.
const (
	maxSends     = 256
	maxSendBytes = 64 << 20
)

// sendRing is a ring of buffers with a send of each under way.
type sendRing struct {
	bufs  [][]byte
	sends []*mpi.Request // nil where the buffer is free
	at    int
}

func newSendRing(task int) *sendRing {
	n := max(2, min(maxSends, maxSendBytes/task))
	r := &sendRing{bufs: make([][]byte, n), sends: make([]*mpi.Request, n)}
	for i := range r.bufs {
		r.bufs[i] = make([]byte, taskHeader+task)
	}
	return r
}

// next returns the buffer for the next message, when its last send is over.
func (r *sendRing) next(ctx context.Context) ([]byte, error) {
	r.at = (r.at + 1) % len(r.bufs)
	return r.bufs[r.at], r.wait(ctx, r.at)
}

// send sends the part of the buffer from next that is in use.
func (r *sendRing) send(c *mpi.Comm, msg []byte, to, tag int) (err error) {
	r.sends[r.at], err = mpi.Isend(c, msg, to, tag)
	return err
}

func (r *sendRing) wait(ctx context.Context, i int) error {
	if r.sends[i] == nil {
		return nil
	}
	_, err := r.sends[i].Wait(ctx)
	r.sends[i] = nil
	return err
}

// drain waits for all sends.
func (r *sendRing) drain(ctx context.Context) error {
	for i := range r.sends {
		if err := r.wait(ctx, i); err != nil {
			return err
		}
	}
	return nil
}
