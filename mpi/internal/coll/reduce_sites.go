package coll

// reduceSites combines the operands of each site at one rank, which sends the result to the root.
func reduceSites(s *Schedule) error {
	t := s.Sites
	own, leader := t.Of[s.Rank], s.leader(t.Of[s.Rank])
	in := s.atSite()
	in.Root, in.SendBuf = t.place[leader], s.SendBuf
	switch s.Rank {
	case s.Root:
		in.RecvBuf = s.RecvBuf
	case leader:
		in.RecvBuf = s.Scratch(len(s.SendBuf))
	}
	if err := reduceBinomial(&in.Schedule); err != nil || s.Rank != leader {
		return err
	}
	if s.Rank != s.Root {
		if err := s.startSendFar(in.RecvBuf, s.Root); err != nil {
			return err
		}
		return s.Wait()
	}
	n := len(s.RecvBuf)
	far := s.Scratch(len(t.Ranks) * n)
	for site := range t.Ranks {
		if site != own {
			if err := s.startRecvFar(far[site*n:(site+1)*n], s.leader(site)); err != nil {
				return err
			}
		}
	}
	if err := s.Wait(); err != nil {
		return err
	}
	for site := own - 1; site >= 0; site-- {
		s.Combine(s.RecvBuf, far[site*n:(site+1)*n], s.RecvBuf)
	}
	for site := own + 1; site < len(t.Ranks); site++ {
		s.Combine(s.RecvBuf, s.RecvBuf, far[site*n:(site+1)*n])
	}
	return nil
}

// reduceSitesSplit scatters the result of each site over its ranks, which send their parts to the
// root's site at the same time; the root gathers the parts of what these combine to.
func reduceSitesSplit(s *Schedule) error {
	t := s.Sites
	own, last := t.Of[s.Rank], t.Of[s.Root]
	part, err := s.reducePart()
	if err != nil {
		return err
	}
	if own != last {
		if err := s.startParts((*Schedule).startSendFar, part, len(s.SendBuf), last); err != nil {
			return err
		}
		return s.Wait()
	}
	if err := s.combineSites(part); err != nil {
		return err
	}
	if s.Rank != s.Root {
		return s.Send(part, s.Root)
	}
	ranks := t.Ranks[own]
	for place, r := range ranks {
		if r == s.Rank {
			continue
		}
		if err := s.StartRecv(s.part(s.RecvBuf, place, len(ranks)), r); err != nil {
			return err
		}
	}
	s.Copy(s.part(s.RecvBuf, t.place[s.Rank], len(ranks)), part)
	return s.Wait()
}

// reducePart combines the operands of the caller's site, and returns the caller's part of the result.
func (s *Schedule) reducePart() (part []byte, err error) {
	in := s.atSite()
	l := in.parts(len(s.SendBuf))
	part = s.Scratch(l.Counts[in.Rank])
	in.SendBuf, in.RecvBuf, in.SendLayout = s.SendBuf, part, l
	return part, reduceScatterPairwise(&in.Schedule)
}

// combineSites receives the results of the other sites for the caller's part, and combines it with
// them in the order of the sites.
func (s *Schedule) combineSites(part []byte) error {
	t, n := s.Sites, len(part)
	own := t.Of[s.Rank]
	far := s.Scratch(len(t.Ranks) * n)
	of := func(site int) []byte { return far[site*n : (site+1)*n] }
	for site := range t.Ranks {
		if site == own {
			continue
		}
		if err := s.startParts((*Schedule).startRecvFar, of(site), len(s.SendBuf), site); err != nil {
			return err
		}
	}
	if err := s.Wait(); err != nil {
		return err
	}
	s.Copy(of(own), part)
	s.foldSites(part, of)
	return nil
}

// foldSites stores to acc, which is none of them, what the operands of all sites combine to, from left
// to right, so that all ranks that do so have the same result, bit by bit.
func (s *Schedule) foldSites(acc []byte, of func(site int) []byte) {
	s.Copy(acc, of(0))
	for site := 1; site < len(s.Sites.Ranks); site++ {
		s.Combine(acc, acc, of(site))
	}
}
