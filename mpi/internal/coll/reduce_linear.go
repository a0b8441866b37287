package coll

// reduceLinear lets the root receive all buffers and combine them strictly
// from left to right.
func reduceLinear(s *Schedule) error {
	if s.Rank != s.Root {
		return s.Send(s.SendBuf, s.Root)
	}
	acc := s.RecvBuf
	if s.Root > 0 && Overlap(s.SendBuf, s.RecvBuf) {
		acc = s.Scratch(len(s.SendBuf)) // the root's operand is still needed
	}
	var in []byte
	for r := range s.Size {
		x := s.SendBuf
		if r != s.Root {
			if in == nil {
				in = s.Scratch(len(s.SendBuf))
			}
			if x = in; r == 0 {
				x = acc
			}
			if err := s.Recv(x, r); err != nil {
				return err
			}
		}
		if r == 0 {
			s.Copy(acc, x)
		} else {
			s.Combine(acc, acc, x)
		}
	}
	s.Copy(s.RecvBuf, acc)
	return nil
}
