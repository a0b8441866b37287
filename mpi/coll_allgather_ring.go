package mpi

// allgatherRing passes the blocks round a ring: p-1 steps, every rank always
// sending and receiving one block. It serves Allgather and Allgatherv.
func allgatherRing(k *call) error {
	copy(k.rblock(k.rank), k.send)
	prev, next := (k.rank-1+k.size)%k.size, (k.rank+1)%k.size
	for i := range k.size - 1 {
		out, in := (k.rank-i+k.size)%k.size, (k.rank-i-1+k.size)%k.size
		if err := k.swap(k.rblock(out), next, k.rblock(in), prev); err != nil {
			return err
		}
	}
	return nil
}
