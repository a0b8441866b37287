package mpi

// scanDoubling exchanges the results of runs of ranks between ranks at
// distances 1, 2, 4, …: log2 p steps, operands in rank order. It serves Scan
// and Exscan.
func scanDoubling(k *call) error {
	n := len(k.send)
	run, in := k.scratch(n), k.scratch(n) // result of the run of ranks around the caller
	before := k.scratch(n)                // result of the lower ranks, if any
	copy(run, k.send)
	lower := false
	for bit := 1; bit < k.size; bit *= 2 {
		peer := k.rank ^ bit
		if peer >= k.size {
			continue
		}
		if err := k.swap(run, peer, in, peer); err != nil {
			return err
		}
		k.merge(run, in, peer)
		if peer > k.rank {
			continue
		}
		if lower {
			k.red.combine(before, in, before)
		} else {
			copy(before, in)
			lower = true
		}
	}
	switch {
	case k.coll == CollExscan && lower:
		copy(k.recv, before)
	case k.coll == CollExscan:
	case lower:
		k.red.combine(k.recv, before, k.send)
	default:
		copy(k.recv, k.send)
	}
	return nil
}
