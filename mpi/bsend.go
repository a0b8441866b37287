package mpi

import "github.com/weftstack/weft/mpi/internal/p2p"

// Bsend copies buf and returns at once, whether or not a receive is posted (MPI-4.1, Section 3.6).
// There is no buffer to attach: the memory comes from pools, and the program must not send without
// bound what is never received. It does not block. A later failure of the peer is not reported.
func Bsend[T Element](c *Comm, buf []T, dst, tag int) error {
	return c.Bsend(Elements(buf), dst, tag)
}

// Bsend is the function [Bsend] of what b describes (MPI_Bsend).
func (c *Comm) Bsend(b Buffer, dst, tag int) error {
	r, err := c.isend("Bsend", p2p.SendStandard, true, &b, dst, tag)
	if err == nil {
		r.Free()
	}
	return err
}

// Ibsend is [Bsend] with a request, which is done when the message has been sent (MPI_Ibsend). buf
// may be changed at once.
func Ibsend[T Element](c *Comm, buf []T, dst, tag int) (*Request, error) {
	return c.Ibsend(Elements(buf), dst, tag)
}

// Ibsend is the function [Ibsend] of what b describes (MPI_Ibsend).
func (c *Comm) Ibsend(b Buffer, dst, tag int) (*Request, error) {
	return c.isend("Ibsend", p2p.SendStandard, true, &b, dst, tag)
}
