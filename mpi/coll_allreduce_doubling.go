package mpi

// allreduceDoubling exchanges whole buffers between ranks at distances 1, 2,
// 4, …: log2 p steps, the best for short buffers.
func allreduceDoubling(k *call) error {
	copy(k.recv, k.send)
	f := k.fold(-1)
	in := k.scratch(len(k.recv))
	place, err := k.foldIn(f, k.recv, in)
	if err != nil {
		return err
	}
	for bit := 1; bit < f.p && place >= 0; bit *= 2 {
		peer := f.rank(place ^ bit)
		if err := k.swap(k.recv, peer, in, peer); err != nil {
			return err
		}
		k.merge(k.recv, in, peer)
	}
	return k.foldOut(f, k.recv)
}
