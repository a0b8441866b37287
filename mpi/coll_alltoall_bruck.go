package mpi

// alltoallBruck sends each block along the binary digits of its distance: in
// the step of digit d all blocks whose distance has that digit move d ranks up
// together. That is ceil(log2 p) messages per rank instead of p-1, each block
// moving several times: for very short blocks. (Bruck and others, 1997.)
func alltoallBruck(k *call) error {
	// held[i] is the block that has still to go, or has come, i ranks.
	held := k.scratch(k.size * k.n)
	turn := (k.size - k.rank) * k.n
	copy(held, k.send[k.rank*k.n:])
	copy(held[turn:], k.send[:k.rank*k.n])
	half := (k.size + 1) / 2 * k.n
	out, in := k.scratch(half), k.scratch(half)
	for d := 1; d < k.size; d *= 2 {
		m := 0
		for i := d; i < k.size; i++ {
			if i&d != 0 {
				m += copy(out[m:], held[i*k.n:(i+1)*k.n])
			}
		}
		if err := k.swap(out[:m], (k.rank+d)%k.size, in[:m], (k.rank-d+k.size)%k.size); err != nil {
			return err
		}
		m = 0
		for i := d; i < k.size; i++ {
			if i&d != 0 {
				m += copy(held[i*k.n:(i+1)*k.n], in[m:])
			}
		}
	}
	for i := range k.size {
		copy(k.rblock((k.rank-i+k.size)%k.size), held[i*k.n:(i+1)*k.n])
	}
	return nil
}
