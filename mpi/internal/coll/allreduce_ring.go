package coll

// allreduceRing cuts the buffer into p parts, combines each part along the
// ring, then passes the results round it: 2(p-1) steps in which every link
// carries one part. The operands of a part begin at another rank each, so the
// operator must be commutative.
func allreduceRing(s *Schedule) error {
	if s.Size == 1 {
		s.Copy(s.RecvBuf, s.SendBuf)
		return nil
	}
	prev, next := (s.Rank-1+s.Size)%s.Size, (s.Rank+1)%s.Size
	from := s.SendBuf
	for i := range s.Size - 1 {
		out := s.part(from, (s.Rank-i+s.Size)%s.Size, s.Size)
		at := (s.Rank - i - 1 + s.Size) % s.Size
		acc, mine := s.part(s.RecvBuf, at, s.Size), s.part(s.SendBuf, at, s.Size)
		if err := s.sendrecvReduce(out, next, acc, mine, prev, true); err != nil {
			return err
		}
		from = s.RecvBuf
	}
	for i := range s.Size - 1 {
		out := s.part(s.RecvBuf, (s.Rank+1-i+s.Size)%s.Size, s.Size)
		into := s.part(s.RecvBuf, (s.Rank-i+s.Size)%s.Size, s.Size)
		if err := s.Sendrecv(out, next, into, prev); err != nil {
			return err
		}
	}
	return nil
}
