package coll

// allgatherRing passes the blocks round a ring: p-1 steps, every rank always
// sending and receiving one block. It serves Allgather and Allgatherv.
func allgatherRing(s *Schedule) error {
	s.Copy(s.RecvBlock(s.Rank), s.SendBuf)
	prev, next := (s.Rank-1+s.Size)%s.Size, (s.Rank+1)%s.Size
	for i := range s.Size - 1 {
		out, in := (s.Rank-i+s.Size)%s.Size, (s.Rank-i-1+s.Size)%s.Size
		if err := s.Sendrecv(s.RecvBlock(out), next, s.RecvBlock(in), prev); err != nil {
			return err
		}
	}
	return nil
}
