package coll

import "math/bits"

// allreduceDoubling exchanges whole buffers between ranks at distances 1, 2,
// 4, …: log2 p steps, the best for short buffers.
func allreduceDoubling(s *Schedule) error {
	g := s.pof2Group(-1)
	newrank, cur, err := s.reduceRemainder(g, s.RecvBuf, s.SendBuf)
	if err != nil {
		return err
	}
	if g.pof2 == 1 {
		s.Copy(s.RecvBuf, cur)
	}
	// A step combines into other memory than it sends, the last one to RecvBuf.
	var other []byte
	if g.pof2 > 2 || Same(cur, s.RecvBuf) {
		other = s.Scratch(len(s.RecvBuf))
	}
	for bit := 1; bit < g.pof2 && newrank >= 0; bit *= 2 {
		acc := s.RecvBuf
		if steps := bits.Len(uint(g.pof2/bit)) - 1; steps%2 == 0 {
			acc = other
		}
		if Same(acc, cur) {
			cur = other
			s.Copy(cur, acc)
		}
		peer := g.rank(newrank ^ bit)
		if err := s.sendrecvReduce(cur, peer, acc, cur, peer, peer < s.Rank); err != nil {
			return err
		}
		cur = acc
	}
	return s.informRemainder(g, s.RecvBuf)
}
