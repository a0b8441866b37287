package mpi

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/weftstack/weft/mpi/internal/ft"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// User-level failure mitigation (ULFM): what a program does after ranks have failed. Each rank
// detects a failure by itself, from the end of the link or from the launcher, and then fails the
// operations that wait for the failed rank, and the collectives of its communicators. Revoke ends
// all operations of all members on a communicator, Agree gives them a common view, and Shrink a new
// communicator of the survivors.

// Failed returns the ranks of c that are known to have failed, lowest first: those of the remote
// group for an intercommunicator (MPIX_Comm_get_failed). It is local.
func (c *Comm) Failed() []int {
	var out []int
	for r, p := range c.comm.Peers {
		if p.Gone() {
			out = append(out, r)
		}
	}
	return out
}

// AckFailed acknowledges the failures that [Comm.Failed] returns, and returns them, too
// (MPIX_Comm_ack_failed). Receives from [AnySource] on c, which do not complete while a failure is
// not acknowledged, work again. [Comm.Agree] on c returns no error because of these ranks once all
// members have acknowledged them. It is local.
func (c *Comm) AckFailed() []int {
	return c.comm.AckFailed(c.Failed)
}

// Revoke makes c useless on all its members: every operation on it, in progress or later, fails
// with ErrRevoked, except [Comm.Shrink], [Comm.Agree] and the local ones (MPIX_Comm_revoke). One
// member calls it; the others need not. So a rank that has detected a failure interrupts the calls
// of members that have not. It does not block. It returns ErrFreed after [Comm.Free].
func (c *Comm) Revoke() error {
	if err := c.notFreed(); err != nil {
		return err
	}
	news, err := c.w.job.FT.Revoke(ftComm{c})
	if err != nil {
		return err
	}
	c.comm.FT.Revoked.Store(true) // also if another goroutine has just heard of it and is about to
	if news {
		c.revoked(c.w.Rank())
	}
	return nil
}

// IsRevoked reports whether c is known to be revoked (MPIX_Comm_is_revoked). It is local.
func (c *Comm) IsRevoked() bool { return c.comm.FT.Revoked.Load() }

// revoked is called once when c is revoked. by is the rank in MPI_COMM_WORLD that did so, or
// Undefined.
func (c *Comm) revoked(by int) {
	c.w.recordRevoked(c, by)
	c.endRevoked()
}

// endRevoked fails the operations on c, which is revoked.
func (c *Comm) endRevoked() {
	c.comm.Revoke()
	if c.local != nil && c.local.comm.FT.Revoked.CompareAndSwap(false, true) {
		c.local.endRevoked()
	}
}

// notFreed returns why even Revoke, Agree and Shrink cannot be called, or nil.
func (c *Comm) notFreed() error {
	if c.comm.Freed.Load() {
		return ErrFreed
	}
	return c.w.usable()
}

// Agree returns the bitwise AND of the flags that the members of c give: the same value on all
// survivors, whatever ranks fail meanwhile (MPIX_Comm_agree). All survivors must call it; it works
// also on a revoked communicator. It blocks until all other survivors have called it, or ctx ends:
// this rank has then taken part all the same. If a member has failed, the error is a [RankError]
// that names one, the same on all members, and the result is valid; failures that all members have
// acknowledged ([Comm.AckFailed]) give no error.
func (c *Comm) Agree(ctx context.Context, flags uint64) (uint64, error) {
	wait, err := c.startAgree(flags)
	if err != nil {
		return 0, err
	}
	v, err := c.agreed(wait(ctx))
	return v, c.raise(err)
}

// Iagree starts [Comm.Agree] (MPIX_Comm_iagree). The result is stored in flags, which must not be
// touched until the request is done. It does not block.
func (c *Comm) Iagree(flags *uint64) (*Request, error) {
	wait, err := c.startAgree(*flags)
	if err != nil {
		return nil, err
	}
	return goRequest(c.w, func() (Status, error) {
		d, round, err := wait(context.Background())
		v, err := c.agreed(d, round, err)
		if d != nil {
			*flags = v
		}
		return Status{}, err
	}), nil
}

func (c *Comm) startAgree(flags uint64) (func(context.Context) (*ft.Ballot, uint64, error), error) {
	if err := c.notFreed(); err != nil {
		return nil, err
	}
	wait, err := c.w.job.FT.Start(ftComm{c}, func() *ft.Ballot { return c.ballot(flags) })
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*ft.Ballot, uint64, error) {
		d, round, err := wait(ctx)
		if err == nil {
			c.markFailedMembers(d)
		}
		return d, round, err
	}, nil
}

// markFailedMembers marks the members as failed that the agreement has found to have failed.
func (c *Comm) markFailedMembers(d *ft.Ballot) {
	members, me := c.members()
	for i, dead := range d.Failed {
		if dead && i != me {
			members[i].MarkFailed("found dead by an agreement")
		}
	}
}

// ballot returns the vote of this rank: its flags, and the failures that it knows of.
func (c *Comm) ballot(flags uint64) *ft.Ballot {
	members, me := c.members()
	b := ft.NewBallot(len(members))
	b.Flags = flags
	for i, p := range members {
		b.Failed[i] = p.Gone() && i != me
	}
	if c.local != nil {
		c.local.comm.CopyAcked(b.Acked[c.localAt():])
	}
	c.comm.CopyAcked(b.Acked[c.remoteAt():])
	return b
}

// agreed returns the result of Agree.
func (c *Comm) agreed(d *ft.Ballot, _ uint64, err error) (uint64, error) {
	if err != nil {
		return 0, err
	}
	if r := d.Unacknowledged(); r >= 0 {
		members, _ := c.members()
		return d.Flags, c.deathOf(members[r])
	}
	return d.Flags, nil
}

// deathOf returns the error about a peer that has failed according to an agreement. This rank may
// not have detected the failure yet.
func (c *Comm) deathOf(p *p2p.Peer) error {
	if err := p.Failure(); err != nil {
		return err
	}
	return p.Lost(nil)
}

// members returns all members of c, and the index of the caller: for an intercommunicator those of
// both groups, in the same order everywhere.
func (c *Comm) members() ([]*p2p.Peer, int) {
	switch {
	case c.remote == nil:
		return c.comm.Peers, c.comm.Rank
	case c.side == 0:
		return slices.Concat(c.local.comm.Peers, c.comm.Peers), c.comm.Rank
	}
	return slices.Concat(c.comm.Peers, c.local.comm.Peers), len(c.comm.Peers) + c.comm.Rank
}

// Shrink makes a communicator of the survivors of c, in the order of their ranks
// (MPIX_Comm_shrink). All survivors must call it; it blocks until all have. c may be revoked. They
// agree on the failed members, so all get the same group, though a member may have failed since. It
// returns ErrProcFailed if the others take this rank for failed, or if no member of the remote
// group of an intercommunicator is left.
func (c *Comm) Shrink(ctx context.Context) (*Comm, error) {
	wait, err := c.startAgree(^uint64(0))
	if err != nil {
		return nil, err
	}
	d, err := c.shrunk(wait(ctx))
	return d, c.raise(err)
}

// Ishrink starts [Comm.Shrink] (MPIX_Comm_ishrink). The communicator is stored in to when the
// request is done. It does not block.
func (c *Comm) Ishrink(to **Comm) (*Request, error) {
	wait, err := c.startAgree(^uint64(0))
	if err != nil {
		return nil, err
	}
	return goRequest(c.w, func() (Status, error) {
		d, err := c.shrunk(wait(context.Background()))
		*to = d
		return Status{}, err
	}), nil
}

// shrunk makes the communicator of the survivors.
func (c *Comm) shrunk(d *ft.Ballot, round uint64, err error) (*Comm, error) {
	if err != nil {
		return nil, err
	}
	if _, me := c.members(); d.Failed[me] {
		return nil, fmt.Errorf("%w: the others take this rank for dead", ErrProcFailed)
	}
	id := childID(c.comm.ID, round|1<<62)
	if c.remote == nil {
		group, rank := alive(c.group, d.Failed, c.comm.Rank)
		return c.w.newComm(id, group, rank, c.Info()), nil
	}
	group, rank := alive(c.group, d.Failed[c.localAt():], c.comm.Rank)
	remote, _ := alive(c.remote, d.Failed[c.remoteAt():], -1)
	if len(remote) == 0 {
		return nil, fmt.Errorf("%w: nobody is left of the remote group", ErrProcFailed)
	}
	return c.w.newIntercomm(id, group, rank, remote, c.side, c.Info()), nil
}

// localAt returns the index of the local group of an intercommunicator in members.
func (c *Comm) localAt() int { return c.side * len(c.remote) }

// remoteAt returns the index in members of the ranks that c exchanges messages with.
func (c *Comm) remoteAt() int {
	if c.remote == nil || c.side == 1 {
		return 0
	}
	return len(c.group)
}

// alive returns the members of a group that have not failed, and the index among them of the one
// with the given rank.
func alive(group []int32, failed []bool, rank int) ([]int32, int) {
	var out []int32
	at := -1
	for r, h := range group {
		if failed[r] {
			continue
		}
		if r == rank {
			at = len(out)
		}
		out = append(out, h)
	}
	return out, at
}

// recordRevoked logs that c is revoked, by a rank in MPI_COMM_WORLD or Undefined.
func (w *World) recordRevoked(c *Comm, by int) {
	if w.job.Log == nil {
		return
	}
	attrs := []slog.Attr{slog.String("comm", c.Name()), slog.Int("size", c.Size())}
	if by != Undefined {
		attrs = append(attrs, slog.Int("by", by))
	}
	w.job.Record(slog.LevelWarn, "communicator revoked", attrs...)
}
