package mpi

import (
	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Bsend copies buf and returns at once, whether or not a receive is posted (MPI-4.1, Section 3.6).
// There is no buffer to attach: the memory comes from pools, and the program must not send without
// bound what is never received. It does not block. A later failure of the peer is not reported.
func Bsend[T Element](c *Comm, buf []T, dst, tag int) error {
	t := c.enter()
	_, err := ibsend(c, buf, dst, tag)
	c.leave(t, "Bsend", dst, tag, len(buf)*datatype.SizeOf[T](), err)
	return c.raise(err)
}

// Ibsend is [Bsend] with a request, which is done when the message has been sent (MPI_Ibsend). buf
// may be changed at once.
func Ibsend[T Element](c *Comm, buf []T, dst, tag int) (*Request, error) {
	t := c.enter()
	r, err := ibsend(c, buf, dst, tag)
	c.leave(t, "Ibsend", dst, tag, len(buf)*datatype.SizeOf[T](), err)
	return r, c.raise(err)
}

func ibsend[T Element](c *Comm, buf []T, dst, tag int) (*Request, error) {
	b, s, err := typedBytes(buf)
	if err != nil {
		return nil, err
	}
	if err := checkTag(tag); err != nil {
		return nil, err
	}
	m := bufpool.Get(len(b))
	r, err := c.isend(s, p2p.SendStandard, copyOf(m, b), dst, tag)
	if err != nil {
		m.Put()
		return nil, err
	}
	if r.request.Finished.Load() && r.request.Err == nil {
		m.Put() // else the collector takes it
	}
	return r, nil
}

// copyOf returns a copy of b in m.
func copyOf(m *bufpool.Buffer, b []byte) []byte {
	own := m.Bytes(len(b))
	copy(own, b)
	return own
}
