package coll

// reduceScatterHalving halves the range of blocks a rank works on in each of
// log2 p steps, partners far apart first so that every rank ends with its own
// block. That order needs a commutative operator. It serves ReduceScatter and
// ReduceScatterBlock.
func reduceScatterHalving(s *Schedule) error {
	g := s.pof2Group(-1)
	var acc []byte
	if g.pof2 != 2 || g.rem > 0 || Overlap(s.SendBuf, s.RecvBuf) { // else one step combines to RecvBuf
		acc = s.Scratch(len(s.SendBuf))
	}
	newrank, cur, err := s.reduceRemainder(g, acc, s.SendBuf)
	if err != nil {
		return err
	}
	_, partner := g.newrank(s.Rank)
	if newrank < 0 {
		return s.Recv(s.RecvBuf, partner)
	}
	// A rank that takes part reduces the blocks of its pair, or its own.
	first := func(newrank int) int {
		if newrank < g.rem {
			return 2 * newrank
		}
		return newrank + g.rem
	}
	span := func(b []byte, lo, hi int) []byte { return b[s.blockAt(first(lo)):s.blockAt(first(hi))] }
	lo, hi := 0, g.pof2
	for bit := g.pof2 / 2; bit > 0; bit /= 2 {
		mid := (lo + hi) / 2
		glo, ghi := mid, hi
		if newrank&bit != 0 {
			glo, ghi, lo = lo, mid, mid
		} else {
			hi = mid
		}
		peer := g.rank(newrank ^ bit)
		into := s.RecvBuf
		if acc != nil {
			into = span(acc, lo, hi)
		}
		if err := s.sendrecvReduce(span(cur, glo, ghi), peer, into, span(cur, lo, hi), peer, false); err != nil {
			return err
		}
		cur = acc
	}
	if acc != nil {
		s.Copy(s.RecvBuf, cur[s.blockAt(s.Rank):s.blockAt(s.Rank+1)])
	}
	if partner < 0 {
		return nil
	}
	return s.Send(cur[s.blockAt(partner):s.blockAt(partner+1)], partner)
}

// blockAt returns where the block of rank i begins in the send buffer of a
// reduce-scatter; blockAt(size) is its end.
func (s *Schedule) blockAt(i int) int {
	if s.SendLayout == nil {
		return i * s.Block
	}
	if i == s.Size {
		return len(s.SendBuf)
	}
	return s.SendLayout.Displs[i]
}
