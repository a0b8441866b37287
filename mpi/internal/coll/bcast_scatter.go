package coll

// bcastScatterRing is the broadcast of van de Geijn: the root scatters the
// buffer in p pieces down a binomial tree, then the ranks pass the pieces round
// a ring. Each rank sends and receives the buffer about twice, whatever p is.
func bcastScatterRing(s *Schedule) error {
	if err := s.scatterPieces(); err != nil {
		return err
	}
	v := (s.Rank - s.Root + s.Size) % s.Size
	prev, next := (s.Rank-1+s.Size)%s.Size, (s.Rank+1)%s.Size
	for i := range s.Size - 1 {
		out := s.part(s.RecvBuf, (v-i+s.Size)%s.Size, s.Size)
		in := s.part(s.RecvBuf, (v-i-1+s.Size)%s.Size, s.Size)
		if err := s.Sendrecv(out, next, in, prev); err != nil {
			return err
		}
	}
	return nil
}

// bcastScatterDoubling is bcastScatterRing with the second half by recursive
// doubling, which needs fewer steps and a power of two ranks.
func bcastScatterDoubling(s *Schedule) error {
	if err := s.scatterPieces(); err != nil {
		return err
	}
	v := (s.Rank - s.Root + s.Size) % s.Size
	total := len(s.RecvBuf)
	for bit := 1; bit < s.Size; bit *= 2 {
		peer := v ^ bit
		mine, theirs := v&^(bit-1), peer&^(bit-1)
		out := s.RecvBuf[s.cut(total, mine, s.Size):s.cut(total, mine+bit, s.Size)]
		in := s.RecvBuf[s.cut(total, theirs, s.Size):s.cut(total, theirs+bit, s.Size)]
		if err := s.Sendrecv(out, (peer+s.Root)%s.Size, in, (peer+s.Root)%s.Size); err != nil {
			return err
		}
	}
	return nil
}

// scatterPieces cuts RecvBuf at the root into one piece per rank, counted from
// the root, and sends each rank its piece down a binomial tree. The pieces a
// rank holds on the way are those of its subtree.
func (s *Schedule) scatterPieces() error {
	v := (s.Rank - s.Root + s.Size) % s.Size
	total := len(s.RecvBuf)
	pieces := func(from, to int) []byte {
		return s.RecvBuf[s.cut(total, from, s.Size):s.cut(total, min(to, s.Size), s.Size)]
	}
	bit := 1
	for ; bit < s.Size && v&bit == 0; bit *= 2 {
	}
	if v > 0 {
		if err := s.Recv(pieces(v, v+bit), (v-bit+s.Root)%s.Size); err != nil {
			return err
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if v+bit < s.Size {
			if err := s.Send(pieces(v+bit, v+2*bit), (v+bit+s.Root)%s.Size); err != nil {
				return err
			}
		}
	}
	return nil
}
