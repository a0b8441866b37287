package coll

// bcastBinomial sends the buffer (RecvBuf) down a binomial tree: log2 p steps, the
// whole buffer in each. The best for short buffers.
func bcastBinomial(s *Schedule) error {
	v := (s.Rank - s.Root + s.Size) % s.Size
	bit := 1
	for ; bit < s.Size && v&bit == 0; bit *= 2 {
	}
	if v > 0 {
		if err := s.Recv(s.RecvBuf, (v-bit+s.Root)%s.Size); err != nil {
			return err
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if v+bit < s.Size {
			if err := s.Send(s.RecvBuf, (v+bit+s.Root)%s.Size); err != nil {
				return err
			}
		}
	}
	return nil
}
