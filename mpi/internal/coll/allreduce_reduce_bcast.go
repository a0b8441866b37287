package coll

// allreduceReduceBcast reduces to rank 0 and broadcasts the result, both on
// binomial trees: the fewest messages in all.
func allreduceReduceBcast(s *Schedule) error {
	s.Root = 0
	if err := reduceBinomial(s); err != nil {
		return err
	}
	return bcastBinomial(s)
}

// allreduceLinear is allreduceReduceBcast that combines strictly from left to
// right.
func allreduceLinear(s *Schedule) error {
	s.Root = 0
	if err := reduceLinear(s); err != nil {
		return err
	}
	return bcastBinomial(s)
}
