package mpi

// allreduceRing cuts the buffer into p parts, combines each part along the
// ring, then passes the results round it: 2(p-1) steps in which every link
// carries one part. The operands of a part begin at another rank each, so the
// operator must be commutative.
func allreduceRing(k *call) error {
	copy(k.recv, k.send)
	if k.size == 1 {
		return nil
	}
	prev, next := (k.rank-1+k.size)%k.size, (k.rank+1)%k.size
	in := k.scratch(len(k.part(k.recv, 0, k.size)))
	for i := range k.size - 1 {
		out := k.part(k.recv, (k.rank-i+k.size)%k.size, k.size)
		acc := k.part(k.recv, (k.rank-i-1+k.size)%k.size, k.size)
		if err := k.swap(out, next, in[:len(acc)], prev); err != nil {
			return err
		}
		k.red.combine(acc, in[:len(acc)], acc)
	}
	for i := range k.size - 1 {
		out := k.part(k.recv, (k.rank+1-i+k.size)%k.size, k.size)
		into := k.part(k.recv, (k.rank-i+k.size)%k.size, k.size)
		if err := k.swap(out, next, into, prev); err != nil {
			return err
		}
	}
	return nil
}
