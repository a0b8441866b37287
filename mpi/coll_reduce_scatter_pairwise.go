package mpi

// reduceScatterPairwise exchanges blocks with one rank at a time and combines
// what comes at once, so it needs scratch for two blocks only. Operands come
// in another order at each rank: for commutative operators.
func reduceScatterPairwise(k *call) error {
	acc, mine := k.recv, k.sblock(k.rank)
	if overlap(k.send, k.recv) { // blocks there are still to be sent
		acc = k.scratch(len(k.recv))
	}
	for i := 1; i < k.size; i++ {
		to, from := (k.rank+i)%k.size, (k.rank-i+k.size)%k.size
		if err := k.swapMerge(k.sblock(to), to, acc, mine, from, true); err != nil {
			return err
		}
		mine = acc
	}
	if !same(k.recv, mine) {
		copy(k.recv, mine)
	}
	return nil
}
