package coll

// scanSites scans within each site; the last rank of each site sends its result to those of the sites
// with higher ranks, all at the same time, and these tell their site what the lower ones combine to.
func scanSites(s *Schedule) error { return sitesScan(s, false) }

// exscanSites is scanSites for Exscan.
func exscanSites(s *Schedule) error { return sitesScan(s, true) }

func sitesScan(s *Schedule, exclusive bool) error {
	t, n := s.Sites, len(s.SendBuf)
	own := t.Of[s.Rank]
	in := s.atSite()
	in.SendBuf, in.RecvBuf = s.SendBuf, s.Scratch(n)
	if err := doublingScan(&in.Schedule, exclusive); err != nil {
		return err
	}
	result := in.RecvBuf // undefined at the first rank if exclusive
	before := s.Scratch(n)
	if in.Rank == in.Size-1 {
		total := result
		switch {
		case exclusive && in.Rank == 0:
			total = s.SendBuf
		case exclusive:
			total = s.Scratch(n)
			s.Combine(total, result, s.SendBuf)
		}
		if err := s.passTotals(before, total); err != nil {
			return err
		}
	}
	if own > 0 {
		in.Root, in.RecvBuf = in.Size-1, before
		if err := bcastBinomial(&in.Schedule); err != nil {
			return err
		}
	}
	switch first := exclusive && in.Rank == 0; {
	case own == 0 && first: // rank 0: not changed
	case own == 0:
		s.Copy(s.RecvBuf, result)
	case first:
		s.Copy(s.RecvBuf, before)
	default:
		s.Combine(s.RecvBuf, before, result)
	}
	return nil
}

// passTotals sends total, the result of the caller's site, to the sites with higher ranks, and stores to
// before what the results of those with lower ranks combine to, if there are any.
func (s *Schedule) passTotals(before, total []byte) error {
	t, n := s.Sites, len(total)
	own := t.Of[s.Rank]
	far := s.Scratch(own * n)
	for site := range own {
		last := t.Ranks[site][len(t.Ranks[site])-1]
		if err := s.startRecvFar(far[site*n:(site+1)*n], last); err != nil {
			return err
		}
	}
	for _, ranks := range t.Ranks[own+1:] {
		if err := s.startSendFar(total, ranks[len(ranks)-1]); err != nil {
			return err
		}
	}
	if err := s.Wait(); err != nil || own == 0 {
		return err
	}
	s.Copy(before, far[:n])
	for site := 1; site < own; site++ {
		s.Combine(before, before, far[site*n:(site+1)*n])
	}
	return nil
}
