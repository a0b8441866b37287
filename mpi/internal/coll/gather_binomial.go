package coll

// gatherBinomial gathers up a binomial tree: log2 p steps, for short blocks.
// Counted from the root, the subtree of a rank are the ranks right above it,
// so a rank holds consecutive blocks.
func gatherBinomial(s *Schedule) error {
	v := (s.Rank - s.Root + s.Size) % s.Size
	span := subtree(v, s.Size)
	buf := s.SendBuf
	switch {
	case v == 0 && s.Root == 0:
		buf = s.RecvBuf
		s.Copy(s.RecvBlock(0), s.SendBuf)
	case span > 1:
		buf = s.Scratch(span * s.Block)
		s.Copy(buf, s.SendBuf)
	}
	for bit := 1; bit < span; bit *= 2 {
		child := v + bit
		in := buf[bit*s.Block : min(2*bit, span)*s.Block]
		if err := s.Recv(in, (child+s.Root)%s.Size); err != nil {
			return err
		}
	}
	if v > 0 {
		return s.Send(buf, (v-v&-v+s.Root)%s.Size)
	}
	if s.Root > 0 {
		turn := (s.Size - s.Root) * s.Block
		s.Copy(s.RecvBuf[s.Root*s.Block:], buf[:turn])
		s.Copy(s.RecvBuf, buf[turn:])
	}
	return nil
}

// scatterBinomial is the reverse of gatherBinomial.
func scatterBinomial(s *Schedule) error {
	v := (s.Rank - s.Root + s.Size) % s.Size
	span := subtree(v, s.Size)
	buf := s.RecvBuf
	switch {
	case v == 0 && s.Root == 0:
		buf = s.SendBuf
	case span > 1:
		buf = s.Scratch(span * s.Block)
	}
	if v > 0 {
		if err := s.Recv(buf, (v-v&-v+s.Root)%s.Size); err != nil {
			return err
		}
	} else if s.Root > 0 {
		turn := (s.Size - s.Root) * s.Block
		s.Copy(buf, s.SendBuf[s.Root*s.Block:])
		s.Copy(buf[turn:], s.SendBuf)
	}
	top := 1
	for top*2 < span {
		top *= 2
	}
	for bit := top; bit > 0 && span > 1; bit /= 2 {
		if err := s.Send(buf[bit*s.Block:min(2*bit, span)*s.Block], (v+bit+s.Root)%s.Size); err != nil {
			return err
		}
	}
	s.Copy(s.RecvBuf, buf[:s.Block])
	return nil
}

// subtree returns the number of ranks in the subtree of v in a binomial tree of
// p ranks.
func subtree(v, p int) int {
	if v == 0 {
		return p
	}
	return min(v&-v, p-v)
}
