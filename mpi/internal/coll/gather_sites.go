package coll

// gatherSites gathers the blocks of each site at one rank, which sends them to the root in one
// message: for short blocks. It serves Gather.
func gatherSites(s *Schedule) error {
	t := s.Sites
	own, leader := t.Of[s.Rank], s.leader(t.Of[s.Rank])
	in := s.atSite()
	in.Root, in.Block, in.SendBuf = t.place[leader], s.Block, s.SendBuf
	var far []byte // the blocks of the sites, one site after the other
	if s.Rank == s.Root {
		far = s.Scratch(s.Size * s.Block)
		in.RecvBuf = s.ofSite(far, own)
	} else if s.Rank == leader {
		in.RecvBuf = s.Scratch(in.Size * s.Block)
	}
	if err := gatherBinomial(&in.Schedule); err != nil || s.Rank != leader {
		return err
	}
	if s.Rank != s.Root {
		if err := s.startSendFar(in.RecvBuf, s.Root); err != nil {
			return err
		}
		return s.Wait()
	}
	for site := range t.Ranks {
		if site == own {
			continue
		}
		if err := s.startRecvFar(s.ofSite(far, site), s.leader(site)); err != nil {
			return err
		}
	}
	if err := s.Wait(); err != nil {
		return err
	}
	s.unpackSites(far)
	return nil
}

// ofSite returns the blocks of a site in b, which has those of all sites, one site after the other.
func (s *Schedule) ofSite(b []byte, site int) []byte {
	before := 0
	for _, ranks := range s.Sites.Ranks[:site] {
		before += len(ranks)
	}
	return b[before*s.Block : (before+len(s.Sites.Ranks[site]))*s.Block]
}

// unpackSites copies the blocks in b, which lie one site after the other, to RecvBuf, where they lie in
// the order of the ranks.
func (s *Schedule) unpackSites(b []byte) {
	for _, ranks := range s.Sites.Ranks {
		for _, r := range ranks {
			s.Copy(s.RecvBlock(r), b[:s.Block])
			b = b[s.Block:]
		}
	}
}

// scatterSites is the reverse of gatherSites. It serves Scatter.
func scatterSites(s *Schedule) error {
	t := s.Sites
	own, leader := t.Of[s.Rank], s.leader(t.Of[s.Rank])
	in := s.atSite()
	in.Root, in.Block, in.RecvBuf = t.place[leader], s.Block, s.RecvBuf
	switch s.Rank {
	case s.Root:
		far := s.Scratch(s.Size * s.Block)
		for site, ranks := range t.Ranks {
			blocks := s.ofSite(far, site)
			for i, r := range ranks {
				s.Copy(BlockOf(blocks, nil, s.Block, i), s.SendBlock(r))
			}
			if site == own {
				in.SendBuf = blocks
			} else if err := s.startSendFar(blocks, s.leader(site)); err != nil {
				return err
			}
		}
		if err := s.Wait(); err != nil {
			return err
		}
	case leader:
		in.SendBuf = s.Scratch(in.Size * s.Block)
		if err := s.startRecvFar(in.SendBuf, s.Root); err != nil {
			return err
		}
		if err := s.Wait(); err != nil {
			return err
		}
	}
	return scatterBinomial(&in.Schedule)
}
