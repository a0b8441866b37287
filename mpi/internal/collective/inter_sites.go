package collective

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/coll"
)

// sitesApart reports whether the groups of an intercommunicator have no site in common. It is the same on all
// ranks. What all ranks of a group are to get then crosses once, to its rank 0, which spreads it within the
// group, instead of once for each rank.
func (c *Comm) sitesApart() bool {
	const apart, common = 1, 2
	if c.apart.Load() == 0 {
		found := int32(apart)
		local := make(map[string]bool)
		for _, p := range c.Local.P2P.Peers {
			local[p.Site] = true
		}
		for _, p := range c.P2P.Peers {
			if local[p.Site] {
				found = common
			}
		}
		c.apart.Store(found)
	}
	return c.apart.Load() == apart
}

// interBcastSites prepares a broadcast to a group at other sites.
func (c *Comm) interBcastSites(ctx context.Context, k *Call) (*Call, error) {
	if k.Root == coll.Root {
		k.plain, k.run = true, func(k *Call) error { return k.Send(k.RecvBuf, 0) }
		return k, nil
	}
	spread, err := c.Local.Bcast(ctx, Args{Recv: k.RecvBuf, Elem: k.Elem, Sig: k.comm.slot.Sig()}, 0)
	if err != nil {
		return k.refuse(err)
	}
	return k.parts(func(k *Call) error {
		if c.P2P.Rank == 0 {
			if err := k.Recv(k.RecvBuf, k.Root); err != nil {
				return err
			}
		}
		return k.run1(spread)
	}, spread), nil
}

// interAllgatherSites prepares Allgather of groups at different sites: each gathers its blocks at its rank 0, and
// these swap them.
func (c *Comm) interAllgatherSites(ctx context.Context, k *Call) (*Call, error) {
	var all []byte
	if c.P2P.Rank == 0 {
		all = k.Scratch(len(k.SendBuf) * c.Size())
	}
	sig := k.comm.slot.Sig()
	gather, err := c.Local.Gather(ctx, coll.Gather, Args{Send: k.SendBuf, Recv: all, Elem: k.Elem, Sig: sig}, 0)
	if err != nil {
		return k.refuse(err)
	}
	spread, err := c.Local.Bcast(ctx, Args{Recv: k.RecvBuf, Elem: k.Elem, Sig: sig}, 0)
	if err != nil {
		gather.release()
		return k.refuse(err)
	}
	return k.around(gather, all, k.RecvBuf, spread), nil
}
