package mpi

// alltoallLinear sends and receives all blocks at the same time. It serves
// Alltoall and Alltoallv.
func alltoallLinear(k *call) error {
	for i := 1; i < k.size; i++ {
		from := (k.rank - i + k.size) % k.size
		if err := k.startFrom(k.rblock(from), from); err != nil {
			return err
		}
	}
	for i := 1; i < k.size; i++ {
		to := (k.rank + i) % k.size
		if err := k.startTo(k.sblock(to), to); err != nil {
			return err
		}
	}
	copy(k.rblock(k.rank), k.sblock(k.rank))
	return k.wait()
}
