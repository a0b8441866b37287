package coll

// gatherLinear lets every rank send its block to the root, which receives all
// at the same time, in place. It serves Gather and Gatherv.
func gatherLinear(s *Schedule) error {
	if s.Rank != s.Root {
		return s.Send(s.SendBuf, s.Root)
	}
	for i := 1; i < s.Size; i++ {
		r := (s.Root + i) % s.Size
		if err := s.StartRecv(s.RecvBlock(r), r); err != nil {
			return err
		}
	}
	s.Copy(s.RecvBlock(s.Root), s.SendBuf)
	return s.Wait()
}

// scatterLinear is the reverse of gatherLinear.
func scatterLinear(s *Schedule) error {
	if s.Rank != s.Root {
		return s.Recv(s.RecvBuf, s.Root)
	}
	for i := 1; i < s.Size; i++ {
		r := (s.Root + i) % s.Size
		if err := s.StartSend(s.SendBlock(r), r); err != nil {
			return err
		}
	}
	s.Copy(s.RecvBuf, s.SendBlock(s.Root))
	return s.Wait()
}
