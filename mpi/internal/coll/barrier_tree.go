package coll

// barrierTree gathers the ranks up a binomial tree to rank 0 and releases them
// down the same tree: 2(p-1) messages in all, the fewest possible, in 2 log2 p
// steps.
func barrierTree(s *Schedule) error {
	if err := barrierUp(s); err != nil {
		return err
	}
	return barrierDown(s)
}

// barrierUp returns at rank 0 when all ranks have called it.
func barrierUp(s *Schedule) error {
	bit := 1
	for ; bit < s.Size && s.Rank&bit == 0; bit *= 2 {
		if child := s.Rank + bit; child < s.Size {
			if err := s.Recv(nil, child); err != nil {
				return err
			}
		}
	}
	if s.Rank == 0 {
		return nil
	}
	return s.Send(nil, s.Rank-bit)
}

// barrierDown returns when rank 0 has called it.
func barrierDown(s *Schedule) error {
	bit := 1
	for ; bit < s.Size && s.Rank&bit == 0; bit *= 2 {
	}
	if s.Rank > 0 {
		if err := s.Recv(nil, s.Rank-bit); err != nil {
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
