package mpi

// gatherBinomial gathers up a binomial tree: log2 p steps, for short blocks.
// Counted from the root, the subtree of a rank are the ranks right above it,
// so a rank holds consecutive blocks.
func gatherBinomial(k *call) error {
	v := (k.rank - k.root + k.size) % k.size
	span := subtree(v, k.size)
	buf := k.send
	switch {
	case v == 0 && k.root == 0:
		buf = k.recv
		copy(k.rblock(0), k.send)
	case span > 1:
		buf = k.scratch(span * k.n)
		copy(buf, k.send)
	}
	for bit := 1; bit < span; bit *= 2 {
		child := v + bit
		in := buf[bit*k.n : min(2*bit, span)*k.n]
		if err := k.from(in, (child+k.root)%k.size); err != nil {
			return err
		}
	}
	if v > 0 {
		return k.to(buf, (v-v&-v+k.root)%k.size)
	}
	if k.root > 0 {
		turn := (k.size - k.root) * k.n
		copy(k.recv[k.root*k.n:], buf[:turn])
		copy(k.recv, buf[turn:])
	}
	return nil
}

// scatterBinomial is the reverse of gatherBinomial.
func scatterBinomial(k *call) error {
	v := (k.rank - k.root + k.size) % k.size
	span := subtree(v, k.size)
	buf := k.recv
	switch {
	case v == 0 && k.root == 0:
		buf = k.send
	case span > 1:
		buf = k.scratch(span * k.n)
	}
	if v > 0 {
		if err := k.from(buf, (v-v&-v+k.root)%k.size); err != nil {
			return err
		}
	} else if k.root > 0 {
		turn := (k.size - k.root) * k.n
		copy(buf, k.send[k.root*k.n:])
		copy(buf[turn:], k.send)
	}
	top := 1
	for top*2 < span {
		top *= 2
	}
	for bit := top; bit > 0 && span > 1; bit /= 2 {
		if err := k.to(buf[bit*k.n:min(2*bit, span)*k.n], (v+bit+k.root)%k.size); err != nil {
			return err
		}
	}
	copy(k.recv, buf[:k.n])
	return nil
}

// subtree returns the number of ranks in the subtree of v in a binomial tree of
// p ranks.
func subtree(v, p int) int {
	if v == 0 {
		return p
	}
	return min(v&-v, p-v)
}
