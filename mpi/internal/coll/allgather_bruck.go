package coll

// allgatherBruck works for any number of ranks in ceil(log2 p) steps: at
// distance d a rank sends all it holds, in order from its own block on, to the
// one d below. What it holds starts with its own block, so it is turned into
// place at the end. (Bruck and others, 1997.)
func allgatherBruck(s *Schedule) error {
	buf := s.Scratch(s.Size * s.Block)
	s.Copy(buf, s.SendBuf)
	for d := 1; d < s.Size; d *= 2 {
		blocks := min(d, s.Size-d)
		to, from := (s.Rank-d+s.Size)%s.Size, (s.Rank+d)%s.Size
		if err := s.Sendrecv(buf[:blocks*s.Block], to, buf[d*s.Block:(d+blocks)*s.Block], from); err != nil {
			return err
		}
	}
	turn := (s.Size - s.Rank) * s.Block
	s.Copy(s.RecvBuf[s.Rank*s.Block:], buf[:turn])
	s.Copy(s.RecvBuf, buf[turn:])
	return nil
}
