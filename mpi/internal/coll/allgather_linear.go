package coll

// allgatherLinear sends the block of every rank straight to all others, all at
// the same time. It serves Allgather and Allgatherv.
func allgatherLinear(s *Schedule) error {
	mine := s.RecvBlock(s.Rank)
	s.Copy(mine, s.SendBuf)
	for i := 1; i < s.Size; i++ {
		from := (s.Rank - i + s.Size) % s.Size
		if err := s.StartRecv(s.RecvBlock(from), from); err != nil {
			return err
		}
	}
	for i := 1; i < s.Size; i++ {
		if err := s.StartSend(mine, (s.Rank+i)%s.Size); err != nil {
			return err
		}
	}
	return s.Wait()
}
