package coll

// alltoallLinear sends and receives all blocks at the same time. It serves
// Alltoall and Alltoallv.
func alltoallLinear(s *Schedule) error {
	for i := 1; i < s.Size; i++ {
		from := (s.Rank - i + s.Size) % s.Size
		if err := s.StartRecv(s.RecvBlock(from), from); err != nil {
			return err
		}
	}
	for i := 1; i < s.Size; i++ {
		to := (s.Rank + i) % s.Size
		if err := s.StartSend(s.SendBlock(to), to); err != nil {
			return err
		}
	}
	s.Copy(s.RecvBlock(s.Rank), s.SendBlock(s.Rank))
	return s.Wait()
}
