package coll

// alltoallSites combines what the ranks of a site send to those of another: one rank of the site
// collects it and sends one message, and one at the other site deals it out. Which ranks do so depends
// on the other site, so the work is shared. It copies all data three times: for short blocks. It serves
// Alltoall.
func alltoallSites(s *Schedule) error {
	t := s.Sites
	own := t.Of[s.Rank]
	ranks := t.Ranks[own]
	me, n := t.place[s.Rank], len(ranks)
	out, in := s.Scratch(s.Size*s.Block*n), s.Scratch(s.Size*s.Block*n)
	// The blocks to, or from, site begin at b[before*n*s.Block], those of a rank of the own site after those of another.
	blocks := func(b []byte, before, there int) []byte { return b[before*n*s.Block:][:n*there*s.Block] }
	of := func(b []byte, place, there int) []byte { return b[place*there*s.Block:][:there*s.Block] }
	before := 0
	for site, there := range t.Ranks {
		if site == own {
			continue
		}
		b, collector := blocks(out, before, len(there)), ranks[site%n]
		mine := of(b, me, len(there))
		for i, r := range there {
			s.Copy(BlockOf(mine, nil, s.Block, i), s.SendBlock(r))
		}
		if s.Rank != collector {
			if err := s.StartSend(mine, collector); err != nil {
				return err
			}
		} else {
			for i, r := range ranks {
				if r == s.Rank {
					continue
				}
				if err := s.StartRecv(of(b, i, len(there)), r); err != nil {
					return err
				}
			}
		}
		before += len(there)
	}
	if err := s.Wait(); err != nil {
		return err
	}
	before = 0
	for site, there := range t.Ranks {
		if site == own {
			continue
		}
		if s.Rank == ranks[site%n] {
			peer := there[own%len(there)]
			if err := s.startRecvFar(blocks(in, before, len(there)), peer); err != nil {
				return err
			}
			if err := s.startSendFar(blocks(out, before, len(there)), peer); err != nil {
				return err
			}
		}
		before += len(there)
	}
	for i := 1; i < n; i++ {
		from, to := ranks[(me-i+n)%n], ranks[(me+i)%n]
		if err := s.StartRecv(s.RecvBlock(from), from); err != nil {
			return err
		}
		if err := s.StartSend(s.SendBlock(to), to); err != nil {
			return err
		}
	}
	s.Copy(s.RecvBlock(s.Rank), s.SendBlock(s.Rank))
	if err := s.Wait(); err != nil {
		return err
	}
	return s.dealSites(in, out)
}

// dealSites ends alltoallSites: the ranks that have received from other sites deal out what is in in.
// There the blocks of each rank of the other site, for all ranks of the own, follow one another. mem is
// memory as long as in.
func (s *Schedule) dealSites(in, mem []byte) error {
	t := s.Sites
	own := t.Of[s.Rank]
	ranks := t.Ranks[own]
	me, n := t.place[s.Rank], len(ranks)
	before := 0
	for site, there := range t.Ranks {
		if site == own {
			continue
		}
		at := before * n * s.Block
		before += len(there)
		length := len(there) * s.Block // of what one rank gets
		if dealer := ranks[site%n]; s.Rank != dealer {
			if err := s.StartRecv(in[at+me*length:][:length], dealer); err != nil {
				return err
			}
			continue
		}
		for i, r := range ranks {
			b := mem[at+i*length:][:length]
			for j := range there {
				s.Copy(BlockOf(b, nil, s.Block, j), in[at+(j*n+i)*s.Block:][:s.Block])
			}
			if r == s.Rank {
				continue
			}
			if err := s.StartSend(b, r); err != nil {
				return err
			}
		}
	}
	if err := s.Wait(); err != nil {
		return err
	}
	before = 0
	for site, there := range t.Ranks {
		if site == own {
			continue
		}
		b := in
		if s.Rank == ranks[site%n] {
			b = mem
		}
		b = b[before*n*s.Block+me*len(there)*s.Block:]
		for j, r := range there {
			s.Copy(s.RecvBlock(r), BlockOf(b, nil, s.Block, j))
		}
		before += len(there)
	}
	return nil
}

// alltoallWindow is how many ranks each rank exchanges blocks with at a time in alltoallSitesDirect: it
// bounds what is in flight, and lets the blocks for other sites follow one another without a pause.
const alltoallWindow = 32

// alltoallSitesDirect exchanges blocks with many ranks at a time, in place, so that no rank copies what
// is not its own and the way between the sites is never idle. It serves Alltoall and Alltoallv.
func alltoallSitesDirect(s *Schedule) error {
	t := s.Sites
	start := func(far, near func(b []byte, peer int) error, b []byte, peer int) error {
		if t.Of[peer] != t.Of[s.Rank] {
			return far(b, peer)
		}
		return near(b, peer)
	}
	s.Copy(s.RecvBlock(s.Rank), s.SendBlock(s.Rank))
	for first := 1; first < s.Size; first += alltoallWindow {
		last := min(first+alltoallWindow, s.Size)
		for i := first; i < last; i++ {
			from := (s.Rank - i + s.Size) % s.Size
			if err := start(s.startRecvFar, s.StartRecv, s.RecvBlock(from), from); err != nil {
				return err
			}
		}
		for i := first; i < last; i++ {
			to := (s.Rank + i) % s.Size
			if err := start(s.startSendFar, s.StartSend, s.SendBlock(to), to); err != nil {
				return err
			}
		}
		if err := s.Wait(); err != nil {
			return err
		}
	}
	return nil
}
