package mpi

// reduceScatterPairwise exchanges blocks with one rank at a time and combines
// what comes at once, so it needs scratch for two blocks only. Operands come
// in another order at each rank: for commutative operators.
func reduceScatterPairwise(k *call) error {
	n := len(k.recv)
	acc, in := k.scratch(n), k.scratch(n)
	copy(acc, k.sblock(k.rank))
	for i := 1; i < k.size; i++ {
		to, from := (k.rank+i)%k.size, (k.rank-i+k.size)%k.size
		if err := k.swap(k.sblock(to), to, in, from); err != nil {
			return err
		}
		k.red.combine(acc, in, acc)
	}
	copy(k.recv, acc)
	return nil
}
