package mpi

// barrierTree gathers the ranks up a binomial tree to rank 0 and releases them
// down the same tree: 2(p-1) messages in all, the fewest possible, in 2 log2 p
// steps.
func barrierTree(k *call) error {
	bit := 1
	for ; bit < k.size && k.rank&bit == 0; bit *= 2 {
		if child := k.rank + bit; child < k.size {
			if err := k.from(nil, child); err != nil {
				return err
			}
		}
	}
	if k.rank > 0 {
		parent := k.rank - bit
		if err := k.to(nil, parent); err != nil {
			return err
		}
		if err := k.from(nil, parent); err != nil {
			return err
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if child := k.rank + bit; child < k.size {
			if err := k.to(nil, child); err != nil {
				return err
			}
		}
	}
	return nil
}
