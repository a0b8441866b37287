package mpi

import "github.com/weftstack/weft/mpi/internal/rdmadev"

// Traffic is a number of messages and of the bytes in them, without headers
// (MPI-4.1, Section 15.3.7).
type Traffic struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

func (t *Traffic) count(n int) {
	t.Messages++
	t.Bytes += uint64(n)
}

// add returns the sum.
func (t Traffic) add(u Traffic) Traffic {
	return Traffic{t.Messages + u.Messages, t.Bytes + u.Bytes}
}

// trafficOf returns what c counts.
func trafficOf(c *rdmadev.Counter) (t Traffic) {
	t.Messages, t.Bytes = c.Load()
	return t
}
