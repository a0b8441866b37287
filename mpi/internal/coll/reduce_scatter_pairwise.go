package coll

// reduceScatterPairwise exchanges blocks with one rank at a time and combines
// what comes at once, so it needs scratch for two blocks only. Operands come
// in another order at each rank: for commutative operators.
func reduceScatterPairwise(s *Schedule) error {
	acc, mine := s.RecvBuf, s.SendBlock(s.Rank)
	if Overlap(s.SendBuf, s.RecvBuf) { // blocks there are still to be sent
		acc = s.Scratch(len(s.RecvBuf))
	}
	for i := 1; i < s.Size; i++ {
		to, from := (s.Rank+i)%s.Size, (s.Rank-i+s.Size)%s.Size
		if err := s.sendrecvReduce(s.SendBlock(to), to, acc, mine, from, true); err != nil {
			return err
		}
		mine = acc
	}
	if !Same(s.RecvBuf, mine) {
		s.Copy(s.RecvBuf, mine)
	}
	return nil
}
