package mpi

// alltoallPairwise exchanges blocks with one rank at a time: in step i, to the
// rank i above and from the one i below. It serves Alltoall and Alltoallv.
func alltoallPairwise(k *call) error {
	copy(k.rblock(k.rank), k.sblock(k.rank))
	for i := 1; i < k.size; i++ {
		to, from := (k.rank+i)%k.size, (k.rank-i+k.size)%k.size
		if err := k.swap(k.sblock(to), to, k.rblock(from), from); err != nil {
			return err
		}
	}
	return nil
}
