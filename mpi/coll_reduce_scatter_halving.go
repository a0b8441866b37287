package mpi

// reduceScatterHalving halves the range of blocks a rank works on in each of
// log2 p steps, partners far apart first so that every rank ends with its own
// block. That order needs a commutative operator. It serves ReduceScatter and
// ReduceScatterBlock.
func reduceScatterHalving(k *call) error {
	f := k.fold(-1)
	var acc []byte
	if f.p != 2 || f.pairs > 0 || overlap(k.send, k.recv) { // else one step combines to recv
		acc = k.scratch(len(k.send))
	}
	place, cur, err := k.foldIn(f, acc, k.send)
	if err != nil {
		return err
	}
	_, partner := f.place(k.rank)
	if place < 0 {
		return k.from(k.recv, partner)
	}
	// The blocks of place i are those of its pair, or of its rank.
	first := func(place int) int {
		if place < f.pairs {
			return 2 * place
		}
		return place + f.pairs
	}
	span := func(b []byte, lo, hi int) []byte { return b[k.blockAt(first(lo)):k.blockAt(first(hi))] }
	lo, hi := 0, f.p
	for bit := f.p / 2; bit > 0; bit /= 2 {
		mid := (lo + hi) / 2
		glo, ghi := mid, hi
		if place&bit != 0 {
			glo, ghi, lo = lo, mid, mid
		} else {
			hi = mid
		}
		peer := f.rank(place ^ bit)
		into := k.recv
		if acc != nil {
			into = span(acc, lo, hi)
		}
		if err := k.swapMerge(span(cur, glo, ghi), peer, into, span(cur, lo, hi), peer, false); err != nil {
			return err
		}
		cur = acc
	}
	if acc != nil {
		copy(k.recv, cur[k.blockAt(k.rank):k.blockAt(k.rank+1)])
	}
	if partner < 0 {
		return nil
	}
	return k.to(cur[k.blockAt(partner):k.blockAt(partner+1)], partner)
}

// blockAt returns where the block of rank i begins in the send buffer of a
// reduce-scatter; blockAt(size) is its end.
func (k *call) blockAt(i int) int {
	if k.sv == nil {
		return i * k.n
	}
	if i == k.size {
		return len(k.send)
	}
	return k.sv.at[i]
}
