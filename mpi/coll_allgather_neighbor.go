package mpi

// allgatherNeighbor exchanges with the two neighbours in turn, two blocks at a
// time after the first: p/2 steps between neighbours only. It needs an even
// number of ranks. (Chen and others, 2005.)
func allgatherNeighbor(k *call) error {
	copy(k.rblock(k.rank), k.send)
	odd := k.rank % 2
	// Even ranks begin with the right neighbour, odd ones with the left.
	peers := [2]int{(k.rank + 1) % k.size, (k.rank - 1 + k.size) % k.size}
	if odd == 1 {
		peers[0], peers[1] = peers[1], peers[0]
	}
	if k.size == 1 {
		return nil
	}
	if err := k.swap(k.rblock(k.rank), peers[0], k.rblock(peers[0]), peers[0]); err != nil {
		return err
	}
	// Blocks travel in pairs (2i, 2i+1). Each step gives the pair got in the
	// step before and takes the one that the neighbour got then.
	pair := func(i int) []byte {
		i = (i%k.size + k.size) % k.size
		return k.recv[i*k.n : (i+2)*k.n]
	}
	give := k.rank - odd
	for step := 1; step < k.size/2; step++ {
		peer := peers[step%2]
		// An even rank looks left in odd steps and right in even ones; each
		// look reaches one pair further.
		var take int
		if (step%2 == 1) == (odd == 0) {
			take = k.rank - odd - 2*((step+1)/2)
		} else {
			take = k.rank - odd + 2*((step+1)/2)
		}
		if err := k.swap(pair(give), peer, pair(take), peer); err != nil {
			return err
		}
		give = take
	}
	return nil
}
