package coll

// scanDoubling exchanges the results of runs of ranks between ranks at
// distances 1, 2, 4, …: log2 p steps, operands in rank order.
func scanDoubling(s *Schedule) error { return doublingScan(s, false) }

// exscanDoubling is scanDoubling for Exscan.
func exscanDoubling(s *Schedule) error { return doublingScan(s, true) }

func doublingScan(s *Schedule, exclusive bool) error {
	n := len(s.SendBuf)
	run, in := s.Scratch(n), s.Scratch(n) // result of the run of ranks around the caller
	before := s.Scratch(n)                // result of the lower ranks, if any
	s.Copy(run, s.SendBuf)
	lower := false
	for bit := 1; bit < s.Size; bit *= 2 {
		peer := s.Rank ^ bit
		if peer >= s.Size {
			continue
		}
		if err := s.Sendrecv(run, peer, in, peer); err != nil {
			return err
		}
		s.combineFrom(run, in, peer)
		if peer > s.Rank {
			continue
		}
		if lower {
			s.Combine(before, in, before)
		} else {
			s.Copy(before, in)
			lower = true
		}
	}
	switch {
	case exclusive && lower:
		s.Copy(s.RecvBuf, before)
	case exclusive:
	case lower:
		s.Combine(s.RecvBuf, before, s.SendBuf)
	default:
		s.Copy(s.RecvBuf, s.SendBuf)
	}
	return nil
}

// combineFrom combines in, which came from the given rank or from ranks on the same
// side of the caller, into acc.
func (s *Schedule) combineFrom(acc, in []byte, from int) {
	if from < s.Rank {
		s.Combine(acc, in, acc)
	} else {
		s.Combine(acc, acc, in)
	}
}
