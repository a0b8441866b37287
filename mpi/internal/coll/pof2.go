package coll

// pof2Group is the ranks that take part in a butterfly, whose number must be a power of two. The
// other ranks are the remainder: of the first rem pairs of ranks (0,1), (2,3), … one gives its
// operand to the other and waits for the result. The ranks of a pair are neighbours, so operands
// keep their rank order. The ranks that take part are numbered anew from 0 (newrank).
type pof2Group struct {
	pof2 int // ranks that take part: the largest power of two that is not above the size
	rem  int // pairs in which one rank does not take part
	must int // rank that must take part, or -1
}

func (s *Schedule) pof2Group(must int) pof2Group {
	n := 1
	for n*2 <= s.Size {
		n *= 2
	}
	return pof2Group{n, s.Size - n, must}
}

// newrank returns the number of a rank among those that take part, or -1 if it does not take part,
// and the other rank of its pair, or -1 if it is not of a pair.
func (g pof2Group) newrank(rank int) (newrank, partner int) {
	if rank >= 2*g.rem {
		return rank - g.rem, -1
	}
	if g.rank(rank/2) != rank {
		return -1, rank ^ 1
	}
	return rank / 2, rank ^ 1
}

// rank is the inverse of newrank.
func (g pof2Group) rank(newrank int) int {
	if newrank >= g.rem {
		return newrank + g.rem
	}
	if g.must/2 == newrank && g.must >= 0 {
		return g.must
	}
	return 2*newrank + 1
}

// reduceRemainder starts a butterfly: a rank that does not take part sends mine, its operand, to its
// partner, which combines it with its own to acc, which may be mine. It returns the newrank of the
// caller and what is combined so far.
func (s *Schedule) reduceRemainder(g pof2Group, acc, mine []byte) (newrank int, cur []byte, err error) {
	newrank, partner := g.newrank(s.Rank)
	if partner < 0 {
		return newrank, mine, nil
	}
	if newrank < 0 {
		return newrank, mine, s.Send(mine, partner)
	}
	return newrank, acc, s.recvReduce(acc, mine, partner, partner < s.Rank)
}

// informRemainder ends a butterfly: the ranks that did not take part receive the result.
func (s *Schedule) informRemainder(g pof2Group, result []byte) error {
	newrank, partner := g.newrank(s.Rank)
	if partner < 0 {
		return nil
	}
	if newrank < 0 {
		return s.Recv(result, partner)
	}
	return s.Send(result, partner)
}
