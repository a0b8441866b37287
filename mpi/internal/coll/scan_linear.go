package coll

// scanLinear passes the result so far along the chain of ranks: strictly from
// left to right, in p-1 steps.
func scanLinear(s *Schedule) error { return linearScan(s, false) }

// exscanLinear is scanLinear for Exscan.
func exscanLinear(s *Schedule) error { return linearScan(s, true) }

func linearScan(s *Schedule, exclusive bool) error {
	prev, next := s.Rank-1, s.Rank+1
	if s.Rank == 0 {
		prev = ProcNull
	}
	if next == s.Size {
		next = ProcNull
	}
	before, upto := s.Scratch(len(s.SendBuf)), s.Scratch(len(s.SendBuf))
	if err := s.Recv(before, prev); err != nil {
		return err
	}
	if s.Rank == 0 {
		s.Copy(upto, s.SendBuf)
	} else {
		s.Combine(upto, before, s.SendBuf)
	}
	switch {
	case !exclusive:
		s.Copy(s.RecvBuf, upto)
	case s.Rank > 0:
		s.Copy(s.RecvBuf, before)
	}
	return s.Send(upto, next)
}
