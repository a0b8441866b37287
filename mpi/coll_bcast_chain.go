package mpi

// chainSegment is the length of the pieces that bcastChain passes on.
const chainSegment = 64 << 10

// bcastChain passes the buffer along a chain of the ranks in pieces: while a
// rank receives one piece it sends the one before. With many pieces, every
// link carries the buffer once, at the same time as the others.
func bcastChain(k *call) error {
	v := (k.rank - k.root + k.size) % k.size
	prev, next := (k.rank-1+k.size)%k.size, (k.rank+1)%k.size
	if v == 0 {
		prev = ProcNull
	}
	if v == k.size-1 {
		next = ProcNull
	}
	piece := func(i int) []byte {
		return k.recv[min(i*chainSegment, len(k.recv)):min((i+1)*chainSegment, len(k.recv))]
	}
	pieces := max(1, (len(k.recv)+chainSegment-1)/chainSegment)
	if err := k.from(piece(0), prev); err != nil {
		return err
	}
	for i := 1; i < pieces; i++ {
		if err := k.swap(piece(i-1), next, piece(i), prev); err != nil {
			return err
		}
	}
	return k.to(piece(pieces-1), next)
}
