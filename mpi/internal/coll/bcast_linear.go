package coll

// bcastLinear lets the root send to all others at the same time.
func bcastLinear(s *Schedule) error {
	if s.Rank != s.Root {
		return s.Recv(s.RecvBuf, s.Root)
	}
	for i := 1; i < s.Size; i++ {
		if err := s.StartSend(s.RecvBuf, (s.Root+i)%s.Size); err != nil {
			return err
		}
	}
	return s.Wait()
}
