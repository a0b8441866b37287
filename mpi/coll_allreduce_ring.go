package mpi

// allreduceRing cuts the buffer into p parts, combines each part along the
// ring, then passes the results round it: 2(p-1) steps in which every link
// carries one part. The operands of a part begin at another rank each, so the
// operator must be commutative.
func allreduceRing(k *call) error {
	if k.size == 1 {
		copy(k.recv, k.send)
		return nil
	}
	prev, next := (k.rank-1+k.size)%k.size, (k.rank+1)%k.size
	from := k.send
	for i := range k.size - 1 {
		out := k.part(from, (k.rank-i+k.size)%k.size, k.size)
		at := (k.rank - i - 1 + k.size) % k.size
		if err := k.swapMerge(out, next, k.part(k.recv, at, k.size), k.part(k.send, at, k.size), prev, true); err != nil {
			return err
		}
		from = k.recv
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
