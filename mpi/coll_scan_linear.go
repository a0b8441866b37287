package mpi

// scanLinear passes the result so far along the chain of ranks: strictly from
// left to right, in p-1 steps. It serves Scan and Exscan.
func scanLinear(k *call) error {
	prev, next := k.rank-1, k.rank+1
	if k.rank == 0 {
		prev = ProcNull
	}
	if next == k.size {
		next = ProcNull
	}
	before, upto := k.scratch(len(k.send)), k.scratch(len(k.send))
	if err := k.from(before, prev); err != nil {
		return err
	}
	if k.rank == 0 {
		copy(upto, k.send)
	} else {
		k.red.combine(upto, before, k.send)
	}
	switch {
	case k.coll == CollScan:
		copy(k.recv, upto)
	case k.rank > 0:
		copy(k.recv, before)
	}
	return k.to(upto, next)
}
