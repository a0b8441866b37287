package mpi

// bcastBinomial sends the buffer (recv) down a binomial tree: log2 p steps, the
// whole buffer in each. The best for short buffers.
func bcastBinomial(k *call) error {
	v := (k.rank - k.root + k.size) % k.size
	bit := 1
	for ; bit < k.size && v&bit == 0; bit *= 2 {
	}
	if v > 0 {
		if err := k.from(k.recv, (v-bit+k.root)%k.size); err != nil {
			return err
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if v+bit < k.size {
			if err := k.to(k.recv, (v+bit+k.root)%k.size); err != nil {
				return err
			}
		}
	}
	return nil
}
