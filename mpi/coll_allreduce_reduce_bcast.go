package mpi

// allreduceReduceBcast reduces to rank 0 and broadcasts the result, both on
// binomial trees: the fewest messages in all.
func allreduceReduceBcast(k *call) error {
	k.root = 0
	if err := reduceBinomial(k); err != nil {
		return err
	}
	return bcastBinomial(k)
}

// allreduceLinear is allreduceReduceBcast that combines strictly from left to
// right.
func allreduceLinear(k *call) error {
	k.root = 0
	if err := reduceLinear(k); err != nil {
		return err
	}
	return bcastBinomial(k)
}
