package coll

// barrierDissemination: in round i every rank tells the rank 2^i above it that
// it came, and hears from the one 2^i below. After ceil(log2 p) rounds each has
// heard, directly or not, of all. (Hensgen, Finkel, Manber 1988.)
func barrierDissemination(s *Schedule) error {
	for d := 1; d < s.Size; d *= 2 {
		if err := s.Sendrecv(nil, (s.Rank+d)%s.Size, nil, (s.Rank-d+s.Size)%s.Size); err != nil {
			return err
		}
	}
	return nil
}
