package coll

// barrierTree gathers the ranks up a binomial tree to rank 0 and releases them
// down the same tree: 2(p-1) messages in all, the fewest possible, in 2 log2 p
// steps.
func barrierTree(s *Schedule) error {
	bit := 1
	for ; bit < s.Size && s.Rank&bit == 0; bit *= 2 {
		if child := s.Rank + bit; child < s.Size {
			if err := s.Recv(nil, child); err != nil {
				return err
			}
		}
	}
	if s.Rank > 0 {
		parent := s.Rank - bit
		if err := s.Send(nil, parent); err != nil {
			return err
		}
		if err := s.Recv(nil, parent); err != nil {
			return err
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if child := s.Rank + bit; child < s.Size {
			if err := s.Send(nil, child); err != nil {
				return err
			}
		}
	}
	return nil
}
