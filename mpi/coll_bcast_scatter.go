package mpi

// bcastScatterRing is the broadcast of van de Geijn: the root scatters the
// buffer in p pieces down a binomial tree, then the ranks pass the pieces round
// a ring. Each rank sends and receives the buffer about twice, whatever p is.
func bcastScatterRing(k *call) error {
	if err := k.scatterPieces(); err != nil {
		return err
	}
	v := (k.rank - k.root + k.size) % k.size
	prev, next := (k.rank-1+k.size)%k.size, (k.rank+1)%k.size
	for i := range k.size - 1 {
		out := k.part(k.recv, (v-i+k.size)%k.size, k.size)
		in := k.part(k.recv, (v-i-1+k.size)%k.size, k.size)
		if err := k.swap(out, next, in, prev); err != nil {
			return err
		}
	}
	return nil
}

// bcastScatterDoubling is bcastScatterRing with the second half by recursive
// doubling, which needs fewer steps and a power of two ranks.
func bcastScatterDoubling(k *call) error {
	if err := k.scatterPieces(); err != nil {
		return err
	}
	v := (k.rank - k.root + k.size) % k.size
	total := len(k.recv)
	for bit := 1; bit < k.size; bit *= 2 {
		peer := v ^ bit
		mine, theirs := v&^(bit-1), peer&^(bit-1)
		out := k.recv[k.cut(total, mine, k.size):k.cut(total, mine+bit, k.size)]
		in := k.recv[k.cut(total, theirs, k.size):k.cut(total, theirs+bit, k.size)]
		if err := k.swap(out, (peer+k.root)%k.size, in, (peer+k.root)%k.size); err != nil {
			return err
		}
	}
	return nil
}

// scatterPieces cuts recv at the root into one piece per rank, counted from
// the root, and sends each rank its piece down a binomial tree. The pieces a
// rank holds on the way are those of its subtree.
func (k *call) scatterPieces() error {
	v := (k.rank - k.root + k.size) % k.size
	total := len(k.recv)
	pieces := func(from, to int) []byte {
		return k.recv[k.cut(total, from, k.size):k.cut(total, min(to, k.size), k.size)]
	}
	bit := 1
	for ; bit < k.size && v&bit == 0; bit *= 2 {
	}
	if v > 0 {
		if err := k.from(pieces(v, v+bit), (v-bit+k.root)%k.size); err != nil {
			return err
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if v+bit < k.size {
			if err := k.to(pieces(v+bit, v+2*bit), (v+bit+k.root)%k.size); err != nil {
				return err
			}
		}
	}
	return nil
}
