package coll

// allreduceSites combines the operands of each site at one rank; these exchange the results, and send
// what they combine to down a tree.
func allreduceSites(s *Schedule) error {
	t := s.Sites
	own, n := t.Of[s.Rank], len(s.SendBuf)
	in := s.atSite()
	in.SendBuf = s.SendBuf
	if in.Rank == 0 {
		all := s.Scratch(len(t.Ranks) * n)
		of := func(site int) []byte { return all[site*n : (site+1)*n] }
		in.RecvBuf = of(own)
		if err := reduceBinomial(&in.Schedule); err != nil {
			return err
		}
		if err := s.exchangeLeaders(in.RecvBuf, of); err != nil {
			return err
		}
		s.foldSites(s.RecvBuf, of)
	} else if err := reduceBinomial(&in.Schedule); err != nil {
		return err
	}
	in.RecvBuf = s.RecvBuf
	return bcastBinomial(&in.Schedule)
}

// allreduceSitesSplit scatters the result of each site over its ranks, which exchange their parts
// with the other sites at the same time, and pass what they combine to round a ring.
func allreduceSitesSplit(s *Schedule) error {
	t := s.Sites
	part, err := s.reducePart()
	if err != nil {
		return err
	}
	for site := range t.Ranks {
		if site == t.Of[s.Rank] {
			continue
		}
		if err := s.startParts((*Schedule).startSendFar, part, len(s.SendBuf), site); err != nil {
			return err
		}
	}
	if err := s.combineSites(part); err != nil {
		return err
	}
	s.Copy(s.part(s.RecvBuf, s.inner.Rank, s.inner.Size), part)
	return s.inner.gatherParts(s.RecvBuf)
}
