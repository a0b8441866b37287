package coll

// allgatherNeighbor exchanges with the two neighbours in turn, two blocks at a
// time after the first: p/2 steps between neighbours only. It needs an even
// number of ranks. (Chen and others, 2005.)
func allgatherNeighbor(s *Schedule) error {
	s.Copy(s.RecvBlock(s.Rank), s.SendBuf)
	odd := s.Rank % 2
	// Even ranks begin with the right neighbour, odd ones with the left.
	peers := [2]int{(s.Rank + 1) % s.Size, (s.Rank - 1 + s.Size) % s.Size}
	if odd == 1 {
		peers[0], peers[1] = peers[1], peers[0]
	}
	if s.Size == 1 {
		return nil
	}
	if err := s.Sendrecv(s.RecvBlock(s.Rank), peers[0], s.RecvBlock(peers[0]), peers[0]); err != nil {
		return err
	}
	// Blocks travel in pairs (2i, 2i+1). Each step gives the pair got in the
	// step before and takes the one that the neighbour got then.
	pair := func(i int) []byte {
		i = (i%s.Size + s.Size) % s.Size
		return s.RecvBuf[i*s.Block : (i+2)*s.Block]
	}
	give := s.Rank - odd
	for step := 1; step < s.Size/2; step++ {
		peer := peers[step%2]
		// An even rank looks left in odd steps and right in even ones; each
		// look reaches one pair further.
		var take int
		if (step%2 == 1) == (odd == 0) {
			take = s.Rank - odd - 2*((step+1)/2)
		} else {
			take = s.Rank - odd + 2*((step+1)/2)
		}
		if err := s.Sendrecv(pair(give), peer, pair(take), peer); err != nil {
			return err
		}
		give = take
	}
	return nil
}
