package mpi

// bcastLinear lets the root send to all others at the same time.
func bcastLinear(k *call) error {
	if k.rank != k.root {
		return k.from(k.recv, k.root)
	}
	for i := 1; i < k.size; i++ {
		if err := k.startTo(k.recv, (k.root+i)%k.size); err != nil {
			return err
		}
	}
	return k.wait()
}
