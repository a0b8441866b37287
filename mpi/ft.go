package mpi

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weftstack/weft/mpi/internal/ft"
)

// This file is the interface of user-level failure mitigation (ULFM): what a
// program does when ranks have died. A failure is noticed by each rank for
// itself, from the end of the link or from the launcher. It then fails what
// waits for the dead rank, and the collectives of its communicators; Revoke
// makes all members stop what they do on a communicator, Agree gives them a
// common view, and Shrink a new communicator without the dead.

// ftState is what the failure service keeps per communicator.
type ftState struct {
	revoked atomic.Bool
	broken  atomic.Pointer[RankError] // the first member that failed
	acked   []bool                    // failures that AckFailed has returned; guarded by eng.mu
}

// Failed returns the ranks in c that are known to be gone, lowest first: those
// of the remote group of an intercommunicator (MPIX_Comm_get_failed)
// (MPIX_Comm_get_failed) (MPIX_Comm_get_failed). It is local.
func (c *Comm) Failed() []int {
	var out []int
	for r, p := range c.peers {
		if p.gone() {
			out = append(out, r)
		}
	}
	return out
}

// AckFailed is Failed; besides, receives from AnySource on c, which do not
// complete while there are failures not yet acknowledged, work again, and Agree
// on c no longer returns an error because of these ranks, if all members have
// acknowledged them (MPIX_Comm_ack_failed) (MPIX_Comm_ack_failed)
// (MPIX_Comm_ack_failed).
func (c *Comm) AckFailed() []int {
	e := c.w.eng
	e.mu.Lock()
	defer e.mu.Unlock()
	failed := c.Failed()
	if c.ft.acked == nil {
		c.ft.acked = make([]bool, len(c.peers))
	}
	for _, r := range failed {
		c.ft.acked[r] = true
	}
	for _, x := range c.ctx {
		x.unacked = false
	}
	return failed
}

// hasAcked reports whether the failure of a rank is acknowledged. e.mu is held.
func (c *Comm) hasAcked(rank int) bool { return c.ft.acked != nil && c.ft.acked[rank] }

// Revoke makes c useless on all its members: every operation on it, in progress
// or to come, fails with ErrRevoked, except Shrink, Agree and the local ones
// (MPIX_Comm_revoke) (MPIX_Comm_revoke) (MPIX_Comm_revoke). One member calls
// it; the others need not. It is how a rank that has noticed a failure gets
// those out of their calls that have not. It does not wait for the others.
func (c *Comm) Revoke() error {
	if err := c.notFreed(); err != nil {
		return err
	}
	f := c.w.ft
	f.mu.Lock()
	k := f.comm(c.id)
	if k == nil {
		f.mu.Unlock()
		return fmt.Errorf("%w: too many communicators with failures", ErrLimit)
	}
	news := f.know(k, c)
	news = f.revoke(k) || news
	f.mu.Unlock()
	c.ft.revoked.Store(true) // also if another goroutine has just heard of it and is about to
	if news {
		c.revoked(c.w.Rank())
	}
	return nil
}

// IsRevoked reports whether c is known to be revoked (MPIX_Comm_is_revoked)
// (MPIX_Comm_is_revoked) (MPIX_Comm_is_revoked).
func (c *Comm) IsRevoked() bool { return c.ft.revoked.Load() }

// revoked is called once, when c is revoked: by a rank in MPI_COMM_WORLD, or Undefined.
func (c *Comm) revoked(by int) {
	c.w.recordRevoked(c, by)
	c.endRevoked()
}

// endRevoked ends the operations on c, which is revoked.
func (c *Comm) endRevoked() {
	c.ft.revoked.Store(true)
	e := c.w.eng
	e.dropContexts(ErrRevoked, c.ctx[:]...)
	e.interruptSends(func(x *matchContext) bool { return x.comm == c }, ErrRevoked)
	if c.local != nil && c.local.ft.revoked.CompareAndSwap(false, true) {
		c.local.endRevoked()
	}
}

// notFreed returns why not even the operations for failed communicators may be
// called, or nil.
func (c *Comm) notFreed() error {
	if c.freed.Load() {
		return ErrFreed
	}
	return c.w.usable()
}

// Agree returns the bitwise AND of the flags that the members of c give, and it
// returns the same on all of them that are alive, whatever ranks die meanwhile
// (MPIX_Comm_agree) (MPIX_Comm_agree) (MPIX_Comm_agree). All members of c that
// are alive must call it; it works also on a communicator that is revoked. If a
// member has died the error is a RankError that names one, again the same on
// all members; the result is valid all the same. It does not report those
// failures that all members have acknowledged. It blocks until all others alive
// have called it, or until ctx is done; this rank has then taken part
// nevertheless.
func (c *Comm) Agree(ctx context.Context, flags uint64) (uint64, error) {
	wait, err := c.startAgree(flags)
	if err != nil {
		return 0, err
	}
	v, err := c.agreed(wait(ctx))
	return v, c.raise(err)
}

// Iagree starts Agree (MPIX_Comm_iagree) (MPIX_Comm_iagree). The result is
// stored in flags, which must not be touched until the request is done. It does
// not block.
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
	wait, err := c.w.ft.start(c, func() *ft.Ballot { return c.ballot(flags) })
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

// markFailedMembers marks as failed the members that the agreement has found to have failed.
func (c *Comm) markFailedMembers(d *ft.Ballot) {
	members, me := c.members()
	for i, dead := range d.Failed {
		if dead && i != me {
			members[i].markFailed("found dead by an agreement")
		}
	}
}

// ballot returns what this rank knows of failures.
func (c *Comm) ballot(flags uint64) *ft.Ballot {
	members, me := c.members()
	b := ft.NewBallot(len(members))
	b.Flags = flags
	for i, p := range members {
		b.Failed[i] = p.gone() && i != me
	}
	e := c.w.eng
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.local != nil {
		copy(b.Acked[c.localAt():], c.local.ft.acked)
	}
	copy(b.Acked[c.remoteAt():], c.ft.acked)
	return b
}

// agreed makes the result of Agree.
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

// deathOf returns the error about a peer that the members have agreed is dead,
// though this rank may not have noticed yet.
func (c *Comm) deathOf(p *peer) error {
	if err := p.failure(); err != nil {
		return err
	}
	return p.lost(nil)
}

// members returns all members of c: of an intercommunicator, those of both
// groups, in the same order everywhere; and the place of the caller.
func (c *Comm) members() ([]*peer, int) {
	switch {
	case c.remote == nil:
		return c.peers, c.rank
	case c.side == 0:
		return slices.Concat(c.local.peers, c.peers), c.rank
	}
	return slices.Concat(c.peers, c.local.peers), len(c.peers) + c.rank
}

// Shrink makes a communicator of the members of c that are alive, in the order
// of their ranks (MPIX_Comm_shrink) (MPIX_Comm_shrink) (MPIX_Comm_shrink). All
// of them must call it; c may be revoked. They agree on who is dead, so all get
// the same group, though a member may have died since. It blocks until all
// others alive have called it.
func (c *Comm) Shrink(ctx context.Context) (*Comm, error) {
	wait, err := c.startAgree(^uint64(0))
	if err != nil {
		return nil, err
	}
	d, err := c.shrunk(wait(ctx))
	return d, c.raise(err)
}

// Ishrink starts Shrink (MPIX_Comm_ishrink) (MPIX_Comm_ishrink). The
// communicator is stored in to when the request is done. It does not block.
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

// shrunk makes the communicator of those that are alive.
func (c *Comm) shrunk(d *ft.Ballot, round uint64, err error) (*Comm, error) {
	if err != nil {
		return nil, err
	}
	if _, me := c.members(); d.Failed[me] {
		return nil, fmt.Errorf("%w: the others take this rank for dead", ErrProcFailed)
	}
	id := childID(c.id, round|1<<62)
	if c.remote == nil {
		group, rank := alive(c.group, d.Failed, c.rank)
		return c.w.newComm(id, group, rank, c.Info()), nil
	}
	group, rank := alive(c.group, d.Failed[c.localAt():], c.rank)
	remote, _ := alive(c.remote, d.Failed[c.remoteAt():], -1)
	if len(remote) == 0 {
		return nil, fmt.Errorf("%w: nobody is left of the remote group", ErrProcFailed)
	}
	return c.w.newIntercomm(id, group, rank, remote, c.side, c.Info()), nil
}

// localAt returns where the local group of an intercommunicator begins among
// the members.
func (c *Comm) localAt() int { return c.side * len(c.remote) }

// remoteAt returns where those that c exchanges messages with begin.
func (c *Comm) remoteAt() int {
	if c.remote == nil || c.side == 1 {
		return 0
	}
	return len(c.group)
}

// alive returns the members of a group that have not failed, and the place
// among them of the one that had the given rank.
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
