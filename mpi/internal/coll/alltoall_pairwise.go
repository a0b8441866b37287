package coll

// AlltoallPairwise exchanges blocks with one rank at a time: in step i, to the
// rank i above and from the one i below. It serves Alltoall and Alltoallv.
func AlltoallPairwise(s *Schedule) error {
	s.Copy(s.RecvBlock(s.Rank), s.SendBlock(s.Rank))
	for i := 1; i < s.Size; i++ {
		to, from := (s.Rank+i)%s.Size, (s.Rank-i+s.Size)%s.Size
		if err := s.Sendrecv(s.SendBlock(to), to, s.RecvBlock(from), from); err != nil {
			return err
		}
	}
	return nil
}
