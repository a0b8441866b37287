package coll

// alltoallBruck sends each block along the binary digits of its distance: in
// the step of digit d all blocks whose distance has that digit move d ranks up
// together. That is ceil(log2 p) messages per rank instead of p-1, each block
// moving several times: for very short blocks. (Bruck and others, 1997.)
func alltoallBruck(s *Schedule) error {
	// held[i] is the block that has still to go, or has come, i ranks.
	held := s.Scratch(s.Size * s.Block)
	turn := (s.Size - s.Rank) * s.Block
	s.Copy(held, s.SendBuf[s.Rank*s.Block:])
	s.Copy(held[turn:], s.SendBuf[:s.Rank*s.Block])
	half := (s.Size + 1) / 2 * s.Block
	out, in := s.Scratch(half), s.Scratch(half)
	for d := 1; d < s.Size; d *= 2 {
		m := 0
		for i := d; i < s.Size; i++ {
			if i&d != 0 {
				s.Copy(out[m:m+s.Block], held[i*s.Block:(i+1)*s.Block])
				m += s.Block
			}
		}
		if err := s.Sendrecv(out[:m], (s.Rank+d)%s.Size, in[:m], (s.Rank-d+s.Size)%s.Size); err != nil {
			return err
		}
		m = 0
		for i := d; i < s.Size; i++ {
			if i&d != 0 {
				s.Copy(held[i*s.Block:(i+1)*s.Block], in[m:])
				m += s.Block
			}
		}
	}
	for i := range s.Size {
		s.Copy(s.RecvBlock((s.Rank-i+s.Size)%s.Size), held[i*s.Block:(i+1)*s.Block])
	}
	return nil
}
