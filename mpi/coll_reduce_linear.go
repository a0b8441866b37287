package mpi

// reduceLinear lets the root receive all buffers and combine them strictly
// from left to right.
func reduceLinear(k *call) error {
	if k.rank != k.root {
		return k.to(k.send, k.root)
	}
	acc := k.recv
	if k.root > 0 && overlap(k.send, k.recv) {
		acc = k.scratch(len(k.send)) // the root's operand is still needed
	}
	var in []byte
	for r := range k.size {
		x := k.send
		if r != k.root {
			if in == nil {
				in = k.scratch(len(k.send))
			}
			if x = in; r == 0 {
				x = acc
			}
			if err := k.from(x, r); err != nil {
				return err
			}
		}
		if r == 0 {
			copy(acc, x)
		} else {
			k.red.combine(acc, acc, x)
		}
	}
	copy(k.recv, acc)
	return nil
}
