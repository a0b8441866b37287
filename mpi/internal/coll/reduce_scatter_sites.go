package coll

// reduceScatterSites combines the operands of each site for each block at one rank: that which gets
// the block, or for blocks of another site one of them in turn, which sends the result there. Operands
// come in another order at each rank: for commutative operators. It serves ReduceScatter and
// ReduceScatterBlock.
func reduceScatterSites(s *Schedule) error {
	t := s.Sites
	own := t.Of[s.Rank]
	ranks := t.Ranks[own]
	me, n := t.place[s.Rank], len(ranks)
	block := func(i int) []byte { return BlockOf(s.SendBuf, s.SendLayout, s.Block, i) }
	// reducer returns the place at the own site of the rank that combines block i.
	reducer := func(i int) int { return t.place[i] % n }
	length := 0
	for i := range s.Size {
		if reducer(i) == me {
			length += len(block(i))
		}
	}
	acc, got := s.Scratch(length), s.Scratch(length)
	at := 0
	for i := range s.Size {
		if reducer(i) == me {
			s.Copy(acc[at:], block(i))
			at += len(block(i))
		}
	}
	for step := 1; step < n; step++ {
		to, from := (me+step)%n, (me-step+n)%n
		at = 0
		for i := range s.Size {
			if k := len(block(i)); reducer(i) == me {
				if err := s.StartRecv(got[at:at+k], ranks[from]); err != nil {
					return err
				}
				at += k
			}
		}
		for i := range s.Size {
			if reducer(i) == to {
				if err := s.StartSend(block(i), ranks[to]); err != nil {
					return err
				}
			}
		}
		if err := s.Wait(); err != nil {
			return err
		}
		s.Combine(acc, acc, got)
	}
	return s.swapReduced(acc)
}

// swapReduced ends reduceScatterSites: the results in acc, in the order of their blocks, go to the ranks
// that get them, which combine them with their own.
func (s *Schedule) swapReduced(acc []byte) error {
	t, k := s.Sites, len(s.RecvBuf)
	own := t.Of[s.Rank]
	n := len(t.Ranks[own])
	far := s.Scratch(len(t.Ranks) * k)
	for site, there := range t.Ranks {
		if site == own {
			continue
		}
		if err := s.startRecvFar(far[site*k:(site+1)*k], there[t.place[s.Rank]%len(there)]); err != nil {
			return err
		}
	}
	var mine []byte
	at := 0
	for i := range s.Size {
		if t.place[i]%n != t.place[s.Rank] {
			continue
		}
		b := acc[at : at+len(BlockOf(s.SendBuf, s.SendLayout, s.Block, i))]
		at += len(b)
		if t.Of[i] == own {
			mine = b
			continue
		}
		if err := s.startSendFar(b, i); err != nil {
			return err
		}
	}
	if err := s.Wait(); err != nil {
		return err
	}
	s.Copy(far[own*k:], mine)
	s.foldSites(s.RecvBuf, func(site int) []byte { return far[site*k : (site+1)*k] })
	return nil
}
