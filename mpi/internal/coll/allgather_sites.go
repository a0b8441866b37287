package coll

// allgatherSites gathers the blocks of each site at one rank; these exchange them, each pair of sites
// in one message each way, and send all blocks down a tree: for short blocks. It serves Allgather.
func allgatherSites(s *Schedule) error {
	t := s.Sites
	own := t.Of[s.Rank]
	all := s.RecvBuf // the blocks of the sites, one site after the other
	if !t.Runs {
		all = s.Scratch(s.Size * s.Block)
	}
	in := s.atSite()
	in.Block, in.SendBuf = s.Block, s.SendBuf
	if in.Rank == 0 {
		in.RecvBuf = s.ofSite(all, own)
	}
	if err := gatherBinomial(&in.Schedule); err != nil {
		return err
	}
	if in.Rank == 0 {
		if err := s.exchangeLeaders(in.RecvBuf, func(site int) []byte { return s.ofSite(all, site) }); err != nil {
			return err
		}
	}
	in.RecvBuf = all
	if err := bcastBinomial(&in.Schedule); err != nil {
		return err
	}
	if !t.Runs {
		s.unpackSites(all)
	}
	return nil
}

// allgatherSitesSplit lets each rank send its block to one rank of each other site; then the ranks of
// each site pass the blocks that they have round a ring. It serves Allgather and Allgatherv.
func allgatherSitesSplit(s *Schedule) error {
	t := s.Sites
	in := s.atSite()
	own := t.Of[s.Rank]
	for site, ranks := range t.Ranks {
		if site == own {
			continue
		}
		for i := in.Rank; i < len(ranks); i += in.Size {
			if err := s.startRecvFar(s.RecvBlock(ranks[i]), ranks[i]); err != nil {
				return err
			}
		}
	}
	for site, ranks := range t.Ranks {
		if site == own {
			continue
		}
		if err := s.startSendFar(s.SendBuf, ranks[in.Rank%len(ranks)]); err != nil {
			return err
		}
	}
	s.Copy(s.RecvBlock(s.Rank), s.SendBuf)
	if err := s.Wait(); err != nil {
		return err
	}
	prev, next := in.rank((in.Rank-1+in.Size)%in.Size), in.rank((in.Rank+1)%in.Size)
	for i := range in.Size - 1 {
		if err := s.startHeld(s.StartRecv, (in.Rank-i-1+in.Size)%in.Size, prev); err != nil {
			return err
		}
		if err := s.startHeld(s.StartSend, (in.Rank-i+in.Size)%in.Size, next); err != nil {
			return err
		}
		if err := s.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// startHeld starts messages with the blocks that the rank at a place of the caller's site has after
// those of other sites have come: its own, and of each other site those of the ranks that send to it.
func (s *Schedule) startHeld(start func(b []byte, peer int) error, place, peer int) error {
	t := s.Sites
	own := t.Of[s.Rank]
	n := len(t.Ranks[own])
	for site, ranks := range t.Ranks {
		for i := place; i < len(ranks); i += n {
			if err := start(s.RecvBlock(ranks[i]), peer); err != nil {
				return err
			}
			if site == own {
				break
			}
		}
	}
	return nil
}
