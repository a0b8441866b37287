package coll

// bcastSites sends the buffer to one rank of each other site, and at each site down a binomial tree.
// A rank starts all of its messages at once, those to other sites first.
func bcastSites(s *Schedule) error {
	t := s.Sites
	own := t.Of[s.Rank]
	ranks, leader := t.Ranks[own], s.leader(own)
	n := len(ranks)
	v := (t.place[s.Rank] - t.place[leader] + n) % n // place, counted from the leader
	at := func(v int) int { return ranks[(v+t.place[leader])%n] }
	bit := 1
	for ; bit < n && v&bit == 0; bit *= 2 {
	}
	switch {
	case v > 0:
		if err := s.Recv(s.RecvBuf, at(v-bit)); err != nil {
			return err
		}
	case s.Rank == s.Root:
		for site := range t.Ranks {
			if site == own {
				continue
			}
			if err := s.startSendFar(s.RecvBuf, s.leader(site)); err != nil {
				return err
			}
		}
	default:
		if err := s.startRecvFar(s.RecvBuf, s.Root); err != nil {
			return err
		}
		if err := s.Wait(); err != nil {
			return err
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if v+bit < n {
			if err := s.StartSend(s.RecvBuf, at(v+bit)); err != nil {
				return err
			}
		}
	}
	return s.Wait()
}

// bcastSitesSplit cuts the buffer into a part for each rank of a site, which the ranks of the root's
// site send to the other sites at the same time; then the ranks of each site pass the parts round a
// ring.
func bcastSitesSplit(s *Schedule) error {
	t := s.Sites
	in := s.atSite()
	own, first, total := t.Of[s.Rank], t.Of[s.Root], len(s.RecvBuf)
	mine := s.part(s.RecvBuf, in.Rank, in.Size)
	switch {
	case s.Rank == s.Root:
		for place, r := range t.Ranks[own] {
			if r == s.Rank {
				continue
			}
			if err := s.StartSend(s.part(s.RecvBuf, place, in.Size), r); err != nil {
				return err
			}
		}
	case own == first:
		if err := s.Recv(mine, s.Root); err != nil {
			return err
		}
	default:
		if err := s.startParts((*Schedule).startRecvFar, mine, total, first); err != nil {
			return err
		}
	}
	for site := range t.Ranks {
		if own != first || site == own {
			continue
		}
		if err := s.startParts((*Schedule).startSendFar, mine, total, site); err != nil {
			return err
		}
	}
	if err := s.Wait(); err != nil {
		return err
	}
	return in.gatherParts(s.RecvBuf)
}
