package coll

// chainSegment is the length of the pieces that bcastChain passes on.
const chainSegment = 64 << 10

// bcastChain passes the buffer along a chain of the ranks in pieces: while a
// rank receives one piece it sends the one before. With many pieces, every
// link carries the buffer once, at the same time as the others.
func bcastChain(s *Schedule) error {
	v := (s.Rank - s.Root + s.Size) % s.Size
	prev, next := (s.Rank-1+s.Size)%s.Size, (s.Rank+1)%s.Size
	if v == 0 {
		prev = ProcNull
	}
	if v == s.Size-1 {
		next = ProcNull
	}
	piece := func(i int) []byte {
		return s.RecvBuf[min(i*chainSegment, len(s.RecvBuf)):min((i+1)*chainSegment, len(s.RecvBuf))]
	}
	pieces := max(1, (len(s.RecvBuf)+chainSegment-1)/chainSegment)
	if err := s.Recv(piece(0), prev); err != nil {
		return err
	}
	for i := 1; i < pieces; i++ {
		if err := s.Sendrecv(piece(i-1), next, piece(i), prev); err != nil {
			return err
		}
	}
	return s.Send(piece(pieces-1), next)
}
