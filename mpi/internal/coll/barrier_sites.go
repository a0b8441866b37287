package coll

// barrierSites lets the ranks of a site meet, then one rank of each site tell one of each other, and
// then the ranks of the site go: a message each way between two sites, all at the same time.
func barrierSites(s *Schedule) error {
	in := s.atSite()
	if err := barrierUp(&in.Schedule); err != nil {
		return err
	}
	if in.Rank == 0 {
		if err := s.exchangeLeaders(nil, func(int) []byte { return nil }); err != nil {
			return err
		}
	}
	return barrierDown(&in.Schedule)
}

// exchangeLeaders sends b to the lowest rank of each other site and receives from it what of returns
// for the site. The lowest rank of each site calls it.
func (s *Schedule) exchangeLeaders(b []byte, of func(site int) []byte) error {
	t := s.Sites
	own := t.Of[s.Rank]
	for site, ranks := range t.Ranks {
		if site != own {
			if err := s.startRecvFar(of(site), ranks[0]); err != nil {
				return err
			}
		}
	}
	for site, ranks := range t.Ranks {
		if site != own {
			if err := s.startSendFar(b, ranks[0]); err != nil {
				return err
			}
		}
	}
	return s.Wait()
}
