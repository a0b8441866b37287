package mpi

// gatherLinear lets every rank send its block to the root, which receives all
// at the same time, in place. It serves Gather and Gatherv.
func gatherLinear(k *call) error {
	if k.rank != k.root {
		return k.to(k.send, k.root)
	}
	for i := 1; i < k.size; i++ {
		r := (k.root + i) % k.size
		if err := k.startFrom(k.rblock(r), r); err != nil {
			return err
		}
	}
	copy(k.rblock(k.root), k.send)
	return k.wait()
}

// scatterLinear is the reverse of gatherLinear.
func scatterLinear(k *call) error {
	if k.rank != k.root {
		return k.from(k.recv, k.root)
	}
	for i := 1; i < k.size; i++ {
		r := (k.root + i) % k.size
		if err := k.startTo(k.sblock(r), r); err != nil {
			return err
		}
	}
	copy(k.recv, k.sblock(k.root))
	return k.wait()
}
