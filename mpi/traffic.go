package mpi

// Traffic is a number of messages and of the bytes in them, without headers
// (MPI-4.1, Section 15.3.7).
type Traffic struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// add returns the sum.
func (t Traffic) add(u Traffic) Traffic {
	return Traffic{t.Messages + u.Messages, t.Bytes + u.Bytes}
}
