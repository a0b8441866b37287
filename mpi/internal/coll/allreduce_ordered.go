package coll

// allreduceOrdered cuts the buffer into p parts; rank i gets part i of all
// ranks, combines them strictly from left to right, and gives the result to
// all. It moves as much as allreduceRing, for any operator, at the price of
// scratch memory as large as the buffer and p messages in flight.
func allreduceOrdered(s *Schedule) error {
	mine := s.cut(len(s.RecvBuf), s.Rank+1, s.Size) - s.cut(len(s.RecvBuf), s.Rank, s.Size)
	all := s.Scratch(mine * s.Size)
	for i := range s.Size {
		peer := (s.Rank + i) % s.Size
		if peer == s.Rank {
			s.Copy(all[peer*mine:(peer+1)*mine], s.part(s.SendBuf, s.Rank, s.Size))
			continue
		}
		if err := s.StartRecv(all[peer*mine:(peer+1)*mine], peer); err != nil {
			return err
		}
	}
	for i := 1; i < s.Size; i++ {
		peer := (s.Rank + i) % s.Size
		if err := s.StartSend(s.part(s.SendBuf, peer, s.Size), peer); err != nil {
			return err
		}
	}
	if err := s.Wait(); err != nil {
		return err
	}
	acc := s.part(s.RecvBuf, s.Rank, s.Size)
	s.combineBlocks(acc, all)
	for i := 1; i < s.Size; i++ {
		peer := (s.Rank + i) % s.Size
		if err := s.StartRecv(s.part(s.RecvBuf, peer, s.Size), peer); err != nil {
			return err
		}
		if err := s.StartSend(acc, peer); err != nil {
			return err
		}
	}
	return s.Wait()
}

// combineBlocks combines the blocks in all, one per rank, from left to right.
func (s *Schedule) combineBlocks(acc, all []byte) {
	n := len(acc)
	s.Copy(acc, all[:n])
	for r := 1; r < s.Size; r++ {
		s.Combine(acc, acc, all[r*n:(r+1)*n])
	}
}
