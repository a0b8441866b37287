package coll

// The reduction of Rabenseifner in two halves: a reduce-scatter by recursive
// halving, then an allgather by recursive doubling (Allreduce) or a gather
// (Reduce). Every rank sends and receives the buffer about twice, in 2 log2 p
// steps. Partners at distance 1 exchange first, so what a rank holds is always
// the result of a run of neighbours and operands keep their rank order.

// halves walks the steps of the recursive halving: at each, the range [lo, hi)
// of parts of the buffer that the place works on is cut in two.
func halves(place, bit, lo, hi int) (keepLo, keepHi, giveLo, giveHi int) {
	mid := (lo + hi) / 2
	if place&bit == 0 {
		return lo, mid, mid, hi
	}
	return mid, hi, lo, mid
}

// reduceHalving leaves at each place the result of one p-th in acc, and returns which.
// cur, which may be acc, is the operand of the caller.
func (s *Schedule) reduceHalving(f fold, place int, acc, cur []byte) (lo, hi int, err error) {
	lo, hi = 0, f.p
	for bit := 1; bit < f.p; bit *= 2 {
		var glo, ghi int
		lo, hi, glo, ghi = halves(place, bit, lo, hi)
		peer := f.rank(place ^ bit)
		from, to := s.cut(len(acc), lo, f.p), s.cut(len(acc), hi, f.p)
		give := cur[s.cut(len(acc), glo, f.p):s.cut(len(acc), ghi, f.p)]
		if err := s.sendrecvReduce(give, peer, acc[from:to], cur[from:to], peer, peer < s.Rank); err != nil {
			return lo, hi, err
		}
		cur = acc
	}
	if f.p == 1 {
		copy(acc, cur)
	}
	return lo, hi, nil
}

// allreduceRabenseifner needs at least one element per rank to be of use.
func allreduceRabenseifner(s *Schedule) error {
	f := s.fold(-1)
	place, cur, err := s.foldIn(f, s.RecvBuf, s.SendBuf)
	if err != nil {
		return err
	}
	if place >= 0 {
		if _, _, err = s.reduceHalving(f, place, s.RecvBuf, cur); err != nil {
			return err
		}
		for bit := f.p / 2; bit > 0; bit /= 2 {
			lo, hi := 0, f.p
			for b := 1; b < bit; b *= 2 {
				lo, hi, _, _ = halves(place, b, lo, hi)
			}
			mlo, mhi, tlo, thi := halves(place, bit, lo, hi)
			mine := s.RecvBuf[s.cut(len(s.RecvBuf), mlo, f.p):s.cut(len(s.RecvBuf), mhi, f.p)]
			theirs := s.RecvBuf[s.cut(len(s.RecvBuf), tlo, f.p):s.cut(len(s.RecvBuf), thi, f.p)]
			peer := f.rank(place ^ bit)
			if err := s.Sendrecv(mine, peer, theirs, peer); err != nil {
				return err
			}
		}
	}
	return s.foldOut(f, s.RecvBuf)
}

// reduceRabenseifner gathers the parts to the root, which takes part in the
// butterfly: at each step the place that shares the root's bit receives.
func reduceRabenseifner(s *Schedule) error {
	acc := s.RecvBuf
	if s.Rank != s.Root {
		acc = s.Scratch(len(s.SendBuf))
	}
	f := s.fold(s.Root)
	place, cur, err := s.foldIn(f, acc, s.SendBuf)
	if err != nil || place < 0 {
		return err
	}
	if _, _, err = s.reduceHalving(f, place, acc, cur); err != nil {
		return err
	}
	rootPlace, _ := f.place(s.Root)
	for bit := f.p / 2; bit > 0; bit /= 2 {
		lo, hi := 0, f.p
		for b := 1; b < bit; b *= 2 {
			lo, hi, _, _ = halves(place, b, lo, hi)
		}
		mlo, mhi, tlo, thi := halves(place, bit, lo, hi)
		peer := f.rank(place ^ bit)
		if (place^rootPlace)&bit != 0 {
			return s.Send(acc[s.cut(len(acc), mlo, f.p):s.cut(len(acc), mhi, f.p)], peer)
		}
		if err := s.Recv(acc[s.cut(len(acc), tlo, f.p):s.cut(len(acc), thi, f.p)], peer); err != nil {
			return err
		}
	}
	return nil
}
