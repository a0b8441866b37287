package mpi

// barrierDissemination: in round i every rank tells the rank 2^i above it that
// it came, and hears from the one 2^i below. After ceil(log2 p) rounds each has
// heard, directly or not, of all. (Hensgen, Finkel, Manber 1988.)
func barrierDissemination(k *call) error {
	for d := 1; d < k.size; d *= 2 {
		if err := k.swap(nil, (k.rank+d)%k.size, nil, (k.rank-d+k.size)%k.size); err != nil {
			return err
		}
	}
	return nil
}
