package mpi

// reduceBinomial combines up a binomial tree: log2 p steps, the whole buffer
// in each. A rank's subtree are the ranks right above it, so operands meet in
// rank order; for an operator that is not commutative the tree is rooted at
// rank 0, which then sends the result to the root.
func reduceBinomial(k *call) error {
	top := k.root
	if !k.red.Commutative() {
		top = 0
	}
	v := (k.rank - top + k.size) % k.size
	acc := k.send // what is combined so far
	var out []byte
	for bit := 1; bit < k.size; bit *= 2 {
		if v&bit != 0 {
			return k.finishReduce(acc, (v-bit+top)%k.size, top)
		}
		if v+bit >= k.size {
			continue
		}
		if out == nil {
			if out = k.recv; k.rank != k.root {
				out = k.scratch(len(k.send))
			}
		}
		if err := k.fromMerge(out, acc, (v+bit+top)%k.size, false); err != nil {
			return err
		}
		acc = out
	}
	return k.finishReduce(acc, ProcNull, top)
}

// finishReduce sends acc to parent, and brings the result from the top of the
// tree to the root.
func (k *call) finishReduce(acc []byte, parent, top int) error {
	if err := k.to(acc, parent); err != nil {
		return err
	}
	switch {
	case k.rank == top && top != k.root:
		return k.to(acc, k.root)
	case k.rank == top && !same(k.recv, acc):
		copy(k.recv, acc)
	case k.rank == top:
	case k.rank == k.root && top != k.root:
		return k.from(k.recv, top)
	}
	return nil
}
