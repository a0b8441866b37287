package mpi

// reduceScatterOrdered sends every rank its block of all operands at once; each
// combines them strictly from left to right. It serves ReduceScatter and
// ReduceScatterBlock, for any operator.
func reduceScatterOrdered(k *call) error {
	n := len(k.recv)
	all := k.scratch(n * k.size)
	for i := 1; i < k.size; i++ {
		from := (k.rank - i + k.size) % k.size
		if err := k.startFrom(all[from*n:(from+1)*n], from); err != nil {
			return err
		}
	}
	for i := 1; i < k.size; i++ {
		to := (k.rank + i) % k.size
		if err := k.startTo(k.sblock(to), to); err != nil {
			return err
		}
	}
	copy(all[k.rank*n:(k.rank+1)*n], k.sblock(k.rank))
	if err := k.wait(); err != nil {
		return err
	}
	k.foldBlocks(k.recv, all)
	return nil
}
