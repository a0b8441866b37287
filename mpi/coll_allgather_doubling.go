package mpi

// allgatherDoubling exchanges all that is held between ranks at distances 1, 2,
// 4, …: log2 p steps. It needs a power of two ranks.
func allgatherDoubling(k *call) error {
	copy(k.rblock(k.rank), k.send)
	for bit := 1; bit < k.size; bit *= 2 {
		peer := k.rank ^ bit
		mine, theirs := k.rank&^(bit-1)*k.n, peer&^(bit-1)*k.n
		if err := k.swap(k.recv[mine:mine+bit*k.n], peer, k.recv[theirs:theirs+bit*k.n], peer); err != nil {
			return err
		}
	}
	return nil
}
