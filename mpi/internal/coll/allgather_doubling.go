package coll

// allgatherDoubling exchanges all that is held between ranks at distances 1, 2,
// 4, …: log2 p steps. It needs a power of two ranks.
func allgatherDoubling(s *Schedule) error {
	s.Copy(s.RecvBlock(s.Rank), s.SendBuf)
	for bit := 1; bit < s.Size; bit *= 2 {
		peer := s.Rank ^ bit
		mine, theirs := s.Rank&^(bit-1)*s.Block, peer&^(bit-1)*s.Block
		if err := s.Sendrecv(s.RecvBuf[mine:mine+bit*s.Block], peer, s.RecvBuf[theirs:theirs+bit*s.Block], peer); err != nil {
			return err
		}
	}
	return nil
}
