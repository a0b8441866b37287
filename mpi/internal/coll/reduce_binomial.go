package coll

// reduceBinomial combines up a binomial tree: log2 p steps, the whole buffer
// in each. A rank's subtree are the ranks right above it, so operands meet in
// rank order; for an operator that is not commutative the tree is rooted at
// rank 0, which then sends the result to the root.
func reduceBinomial(s *Schedule) error {
	top := s.Root
	if !s.Op.Commutative() {
		top = 0
	}
	v := (s.Rank - top + s.Size) % s.Size
	acc := s.SendBuf // what is combined so far
	var out []byte
	for bit := 1; bit < s.Size; bit *= 2 {
		if v&bit != 0 {
			return s.finishReduce(acc, (v-bit+top)%s.Size, top)
		}
		if v+bit >= s.Size {
			continue
		}
		if out == nil {
			if out = s.RecvBuf; s.Rank != s.Root {
				out = s.Scratch(len(s.SendBuf))
			}
		}
		if err := s.recvReduce(out, acc, (v+bit+top)%s.Size, false); err != nil {
			return err
		}
		acc = out
	}
	return s.finishReduce(acc, ProcNull, top)
}

// finishReduce sends acc to parent, and brings the result from the top of the
// tree to the root.
func (s *Schedule) finishReduce(acc []byte, parent, top int) error {
	if err := s.Send(acc, parent); err != nil {
		return err
	}
	switch {
	case s.Rank == top && top != s.Root:
		return s.Send(acc, s.Root)
	case s.Rank == top && !Same(s.RecvBuf, acc):
		s.Copy(s.RecvBuf, acc)
	case s.Rank == top:
	case s.Rank == s.Root && top != s.Root:
		return s.Recv(s.RecvBuf, top)
	}
	return nil
}
