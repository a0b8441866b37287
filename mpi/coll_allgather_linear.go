package mpi

// allgatherLinear sends the block of every rank straight to all others, all at
// the same time. It serves Allgather and Allgatherv.
func allgatherLinear(k *call) error {
	mine := k.rblock(k.rank)
	copy(mine, k.send)
	for i := 1; i < k.size; i++ {
		from := (k.rank - i + k.size) % k.size
		if err := k.startFrom(k.rblock(from), from); err != nil {
			return err
		}
	}
	for i := 1; i < k.size; i++ {
		if err := k.startTo(mine, (k.rank+i)%k.size); err != nil {
			return err
		}
	}
	return k.wait()
}
