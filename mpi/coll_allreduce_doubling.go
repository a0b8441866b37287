package mpi

import "math/bits"

// allreduceDoubling exchanges whole buffers between ranks at distances 1, 2,
// 4, …: log2 p steps, the best for short buffers.
func allreduceDoubling(k *call) error {
	f := k.fold(-1)
	place, cur, err := k.foldIn(f, k.recv, k.send)
	if err != nil {
		return err
	}
	if f.p == 1 {
		copy(k.recv, cur)
	}
	// A step combines into other memory than it sends, the last one to recv.
	var other []byte
	if f.p > 2 || same(cur, k.recv) {
		other = k.scratch(len(k.recv))
	}
	for bit := 1; bit < f.p && place >= 0; bit *= 2 {
		acc := k.recv
		if steps := bits.Len(uint(f.p/bit)) - 1; steps%2 == 0 {
			acc = other
		}
		if same(acc, cur) {
			cur = other
			copy(cur, acc)
		}
		peer := f.rank(place ^ bit)
		if err := k.swapMerge(cur, peer, acc, cur, peer, peer < k.rank); err != nil {
			return err
		}
		cur = acc
	}
	return k.foldOut(f, k.recv)
}
