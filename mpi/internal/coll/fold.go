package coll

// A fold makes the number of ranks that take part in a butterfly a power of
// two: of the first pairs of ranks (0,1), (2,3), … one gives its operand to the
// other and waits for the result. Pairs are neighbours, so operands keep their
// rank order.
type fold struct {
	p     int // ranks taking part, a power of two
	pairs int // pairs of which one takes part
	keep  int // rank that must take part, or -1
}

func (s *Schedule) fold(keep int) fold {
	p := 1
	for p*2 <= s.Size {
		p *= 2
	}
	return fold{p, s.Size - p, keep}
}

// place returns the caller's place among the ranks taking part, and its
// partner if it is of a pair, else -1. A place of -1 says it does not take
// part.
func (f fold) place(rank int) (place, partner int) {
	if rank >= 2*f.pairs {
		return rank - f.pairs, -1
	}
	if f.rank(rank/2) != rank {
		return -1, rank ^ 1
	}
	return rank / 2, rank ^ 1
}

// rank returns the rank at a place.
func (f fold) rank(place int) int {
	if place >= f.pairs {
		return place + f.pairs
	}
	if f.keep/2 == place && f.keep >= 0 {
		return f.keep
	}
	return 2*place + 1
}

// foldIn starts a butterfly: it combines mine, the caller's operand, with that of
// its partner, to acc, which may be mine, if it has one. It returns the caller's place
// and what is combined so far.
func (s *Schedule) foldIn(f fold, acc, mine []byte) (place int, cur []byte, err error) {
	place, partner := f.place(s.Rank)
	if partner < 0 {
		return place, mine, nil
	}
	if place < 0 {
		return place, mine, s.Send(mine, partner)
	}
	return place, acc, s.recvReduce(acc, mine, partner, partner < s.Rank)
}

// combineFrom combines in, which came from the given rank or from ranks on the same
// side of the caller, into acc.
func (s *Schedule) combineFrom(acc, in []byte, from int) {
	if from < s.Rank {
		s.Op.Combine(acc, in, acc)
	} else {
		s.Op.Combine(acc, acc, in)
	}
}

// foldOut ends a butterfly: the ranks that did not take part get the result.
func (s *Schedule) foldOut(f fold, result []byte) error {
	place, partner := f.place(s.Rank)
	if partner < 0 {
		return nil
	}
	if place < 0 {
		return s.Recv(result, partner)
	}
	return s.Send(result, partner)
}
