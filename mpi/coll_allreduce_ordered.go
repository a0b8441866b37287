package mpi

// allreduceOrdered cuts the buffer into p parts; rank i gets part i of all
// ranks, combines them strictly from left to right, and gives the result to
// all. It moves as much as allreduceRing, for any operator, at the price of
// scratch memory as large as the buffer and p messages in flight.
func allreduceOrdered(k *call) error {
	mine := k.cut(len(k.recv), k.rank+1, k.size) - k.cut(len(k.recv), k.rank, k.size)
	all := k.scratch(mine * k.size)
	for i := range k.size {
		peer := (k.rank + i) % k.size
		if peer == k.rank {
			copy(all[peer*mine:(peer+1)*mine], k.part(k.send, k.rank, k.size))
			continue
		}
		if err := k.startFrom(all[peer*mine:(peer+1)*mine], peer); err != nil {
			return err
		}
	}
	for i := 1; i < k.size; i++ {
		peer := (k.rank + i) % k.size
		if err := k.startTo(k.part(k.send, peer, k.size), peer); err != nil {
			return err
		}
	}
	if err := k.wait(); err != nil {
		return err
	}
	acc := k.part(k.recv, k.rank, k.size)
	k.foldBlocks(acc, all)
	for i := 1; i < k.size; i++ {
		peer := (k.rank + i) % k.size
		if err := k.startFrom(k.part(k.recv, peer, k.size), peer); err != nil {
			return err
		}
		if err := k.startTo(acc, peer); err != nil {
			return err
		}
	}
	return k.wait()
}

// foldBlocks combines the blocks in all, one per rank, from left to right.
func (k *call) foldBlocks(acc, all []byte) {
	n := len(acc)
	copy(acc, all[:n])
	for r := 1; r < k.size; r++ {
		k.red.combine(acc, acc, all[r*n:(r+1)*n])
	}
}
