package mpi

import "context"

// sitesApart reports whether the groups of an intercommunicator have no site in common. It is the same on all
// ranks. What all ranks of a group are to get then crosses once, to its rank 0, which spreads it within the
// group, instead of once for each rank.
func (c *Comm) sitesApart() bool {
	const apart, common = 1, 2
	if c.coll.apart.Load() == 0 {
		found := int32(apart)
		local := make(map[string]bool)
		for _, p := range c.local.comm.Peers {
			local[p.Site] = true
		}
		for _, p := range c.comm.Peers {
			if local[p.Site] {
				found = common
			}
		}
		c.coll.apart.Store(found)
	}
	return c.coll.apart.Load() == apart
}

// interBcastSites prepares a broadcast to a group at other sites.
func (c *Comm) interBcastSites(ctx context.Context, k *collective) (*collective, error) {
	if k.Root == Root {
		k.run = func(k *collective) error { return k.Send(k.RecvBuf, 0) }
		return k, nil
	}
	spread, err := c.local.bcastCall(ctx, checked{recv: k.RecvBuf, elem: k.Elem, sig: k.comm.slot.Sig()}, 0)
	if err != nil {
		return k.refuse(err)
	}
	return k.parts(func(k *collective) error {
		if c.comm.Rank == 0 {
			if err := k.Recv(k.RecvBuf, k.Root); err != nil {
				return err
			}
		}
		return k.run1(spread)
	}, spread), nil
}

// interAllgatherSites prepares Allgather of groups at different sites: each gathers its blocks at its rank 0, and
// these swap them.
func (c *Comm) interAllgatherSites(ctx context.Context, k *collective) (*collective, error) {
	var all []byte
	if c.comm.Rank == 0 {
		all = k.Scratch(len(k.SendBuf) * len(c.group))
	}
	sig := k.comm.slot.Sig()
	gather, err := c.local.gatherCall(ctx, CollGather, checked{send: k.SendBuf, recv: all, elem: k.Elem, sig: sig}, 0)
	if err != nil {
		return k.refuse(err)
	}
	spread, err := c.local.bcastCall(ctx, checked{recv: k.RecvBuf, elem: k.Elem, sig: sig}, 0)
	if err != nil {
		gather.release()
		return k.refuse(err)
	}
	return k.around(gather, all, k.RecvBuf, spread), nil
}
