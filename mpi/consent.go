package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/consent"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// consent returns nil on all ranks of c, or of the local group of an intercommunicator, if err is
// nil and args print alike on all of them, else an error on all: see consent.Ask.
func (c *Comm) consent(ctx context.Context, err error, args ...any) error {
	if c.local != nil {
		c = c.local
	}
	if e := c.comm.Usable(); e != nil {
		return orFirst(err, e)
	}
	return consent.Ask(ctx, voters{c}, err, args...)
}

// voters are the ranks of a communicator as consent.Ask uses them.
type voters struct{ c *Comm }

// Rank implements consent.Comm.
func (v voters) Rank() int { return v.c.comm.Rank }

// Size implements consent.Comm.
func (v voters) Size() int { return len(v.c.group) }

func voteTag(up bool) int {
	if up {
		return tagVote
	}
	return tagResult
}

// SendVote implements consent.Comm.
func (v voters) SendVote(ctx context.Context, b []byte, to int, up bool) error {
	return v.c.comm.Send(ctx, p2p.SlotComm, p2p.SendStandard, b, to, voteTag(up))
}

// RecvVote implements consent.Comm.
func (v voters) RecvVote(ctx context.Context, b []byte, from int, up bool) (int, error) {
	st, err := v.c.comm.Recv(ctx, p2p.SlotComm, b, from, voteTag(up))
	return st.Bytes, err
}

// orFirst returns err, or e if err is nil.
func orFirst(err, e error) error {
	if err != nil {
		return err
	}
	return e
}
