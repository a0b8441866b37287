package coll

import "math/bits"

// allreduceDoubling exchanges whole buffers between ranks at distances 1, 2,
// 4, …: log2 p steps, the best for short buffers.
func allreduceDoubling(s *Schedule) error {
	f := s.fold(-1)
	place, cur, err := s.foldIn(f, s.RecvBuf, s.SendBuf)
	if err != nil {
		return err
	}
	if f.p == 1 {
		copy(s.RecvBuf, cur)
	}
	// A step combines into other memory than it sends, the last one to recv.
	var other []byte
	if f.p > 2 || Same(cur, s.RecvBuf) {
		other = s.Scratch(len(s.RecvBuf))
	}
	for bit := 1; bit < f.p && place >= 0; bit *= 2 {
		acc := s.RecvBuf
		if steps := bits.Len(uint(f.p/bit)) - 1; steps%2 == 0 {
			acc = other
		}
		if Same(acc, cur) {
			cur = other
			copy(cur, acc)
		}
		peer := f.rank(place ^ bit)
		if err := s.sendrecvReduce(cur, peer, acc, cur, peer, peer < s.Rank); err != nil {
			return err
		}
		cur = acc
	}
	return s.foldOut(f, s.RecvBuf)
}
