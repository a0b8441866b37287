package rdmap

// String tells what it is only: the rest is guarded by a lock.
func (s *Stream) String() string { return "rdmap.Stream" }
