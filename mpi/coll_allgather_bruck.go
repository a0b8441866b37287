package mpi

// allgatherBruck works for any number of ranks in ceil(log2 p) steps: at
// distance d a rank sends all it holds, in order from its own block on, to the
// one d below. What it holds starts with its own block, so it is turned into
// place at the end. (Bruck and others, 1997.)
func allgatherBruck(k *call) error {
	buf := k.scratch(k.size * k.n)
	copy(buf, k.send)
	for d := 1; d < k.size; d *= 2 {
		blocks := min(d, k.size-d)
		to, from := (k.rank-d+k.size)%k.size, (k.rank+d)%k.size
		if err := k.swap(buf[:blocks*k.n], to, buf[d*k.n:(d+blocks)*k.n], from); err != nil {
			return err
		}
	}
	turn := (k.size - k.rank) * k.n
	copy(k.recv[k.rank*k.n:], buf[:turn])
	copy(k.recv, buf[turn:])
	return nil
}
