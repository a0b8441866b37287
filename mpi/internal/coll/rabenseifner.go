package coll

// The reduction of Rabenseifner in two halves: a reduce-scatter by recursive
// halving, then an allgather by recursive doubling (Allreduce) or a gather
// (Reduce). Every rank sends and receives the buffer about twice, in 2 log2 p
// steps. Partners at distance 1 exchange first, so what a rank holds is always
// the result of a run of neighbours and operands keep their rank order.

// halves walks the steps of the recursive halving: at each, the range [lo, hi)
// of parts of the buffer that the rank works on is cut in two.
func halves(newrank, bit, lo, hi int) (keepLo, keepHi, giveLo, giveHi int) {
	mid := (lo + hi) / 2
	if newrank&bit == 0 {
		return lo, mid, mid, hi
	}
	return mid, hi, lo, mid
}

// reduceHalving leaves in acc of each rank that takes part the result of one part of the buffer,
// [lo, hi). cur, which may be acc, is the operand of the caller.
func (s *Schedule) reduceHalving(g pof2Group, newrank int, acc, cur []byte) (lo, hi int, err error) {
	lo, hi = 0, g.pof2
	for bit := 1; bit < g.pof2; bit *= 2 {
		var glo, ghi int
		lo, hi, glo, ghi = halves(newrank, bit, lo, hi)
		peer := g.rank(newrank ^ bit)
		from, to := s.cut(len(acc), lo, g.pof2), s.cut(len(acc), hi, g.pof2)
		give := cur[s.cut(len(acc), glo, g.pof2):s.cut(len(acc), ghi, g.pof2)]
		if err := s.sendrecvReduce(give, peer, acc[from:to], cur[from:to], peer, peer < s.Rank); err != nil {
			return lo, hi, err
		}
		cur = acc
	}
	if g.pof2 == 1 {
		s.Copy(acc, cur)
	}
	return lo, hi, nil
}

// allreduceRabenseifner is of use from one element per rank on.
func allreduceRabenseifner(s *Schedule) error {
	g := s.pof2Group(-1)
	newrank, cur, err := s.reduceRemainder(g, s.RecvBuf, s.SendBuf)
	if err != nil {
		return err
	}
	if newrank >= 0 {
		if _, _, err = s.reduceHalving(g, newrank, s.RecvBuf, cur); err != nil {
			return err
		}
		for bit := g.pof2 / 2; bit > 0; bit /= 2 {
			lo, hi := 0, g.pof2
			for b := 1; b < bit; b *= 2 {
				lo, hi, _, _ = halves(newrank, b, lo, hi)
			}
			mlo, mhi, tlo, thi := halves(newrank, bit, lo, hi)
			mine := s.RecvBuf[s.cut(len(s.RecvBuf), mlo, g.pof2):s.cut(len(s.RecvBuf), mhi, g.pof2)]
			theirs := s.RecvBuf[s.cut(len(s.RecvBuf), tlo, g.pof2):s.cut(len(s.RecvBuf), thi, g.pof2)]
			peer := g.rank(newrank ^ bit)
			if err := s.Sendrecv(mine, peer, theirs, peer); err != nil {
				return err
			}
		}
	}
	return s.informRemainder(g, s.RecvBuf)
}

// reduceRabenseifner gathers the parts to the root, which takes part in the
// butterfly: at each step the rank whose newrank shares the root's bit receives.
func reduceRabenseifner(s *Schedule) error {
	acc := s.RecvBuf
	if s.Rank != s.Root {
		acc = s.Scratch(len(s.SendBuf))
	}
	g := s.pof2Group(s.Root)
	newrank, cur, err := s.reduceRemainder(g, acc, s.SendBuf)
	if err != nil || newrank < 0 {
		return err
	}
	if _, _, err = s.reduceHalving(g, newrank, acc, cur); err != nil {
		return err
	}
	rootNewrank, _ := g.newrank(s.Root)
	for bit := g.pof2 / 2; bit > 0; bit /= 2 {
		lo, hi := 0, g.pof2
		for b := 1; b < bit; b *= 2 {
			lo, hi, _, _ = halves(newrank, b, lo, hi)
		}
		mlo, mhi, tlo, thi := halves(newrank, bit, lo, hi)
		peer := g.rank(newrank ^ bit)
		if (newrank^rootNewrank)&bit != 0 {
			return s.Send(acc[s.cut(len(acc), mlo, g.pof2):s.cut(len(acc), mhi, g.pof2)], peer)
		}
		if err := s.Recv(acc[s.cut(len(acc), tlo, g.pof2):s.cut(len(acc), thi, g.pof2)], peer); err != nil {
			return err
		}
	}
	return nil
}
