package coll

// reduceScatterOrdered sends every rank its block of all operands at once; each
// combines them strictly from left to right. It serves ReduceScatter and
// ReduceScatterBlock, for any operator.
func reduceScatterOrdered(s *Schedule) error {
	n := len(s.RecvBuf)
	all := s.Scratch(n * s.Size)
	for i := 1; i < s.Size; i++ {
		from := (s.Rank - i + s.Size) % s.Size
		if err := s.StartRecv(all[from*n:(from+1)*n], from); err != nil {
			return err
		}
	}
	for i := 1; i < s.Size; i++ {
		to := (s.Rank + i) % s.Size
		if err := s.StartSend(s.SendBlock(to), to); err != nil {
			return err
		}
	}
	s.Copy(all[s.Rank*n:(s.Rank+1)*n], s.SendBlock(s.Rank))
	if err := s.Wait(); err != nil {
		return err
	}
	s.combineBlocks(s.RecvBuf, all)
	return nil
}
