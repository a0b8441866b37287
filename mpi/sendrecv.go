package mpi

import "context"

// Isendrecv starts Sendrecv. Both messages are matched in the order of the calls.
func Isendrecv[S, R Element](c *Comm, send []S, dst, stag int, recv []R, src, rtag int) (*Request, error) {
	sb, err := bytesOf(send)
	if err != nil {
		return nil, c.raise(err)
	}
	rb, err := bytesOf(recv)
	if err != nil {
		return nil, c.raise(err)
	}
	r, err := c.isendrecv("Isendrecv", sb, dst, stag, rb, src, rtag, nil)
	return r, c.raise(err)
}

// IsendrecvReplace starts SendrecvReplace.
func IsendrecvReplace[T Element](c *Comm, buf []T, dst, stag, src, rtag int) (*Request, error) {
	b, mem, err := copied(c, buf, stag, src, rtag)
	if err != nil {
		return nil, c.raise(err)
	}
	r, err := c.isendrecv("IsendrecvReplace", b, dst, stag, viewBytes(buf), src, rtag, mem)
	return r, c.raise(err)
}

// isendrecv starts a receive and a send; it gives mem back when that is done.
func (c *Comm) isendrecv(name string, sb []byte, dst, stag int, rb []byte, src, rtag int, mem *scratch) (*Request, error) {
	if err := checkTag(stag); err != nil {
		return nil, err
	}
	if err := c.checkRecv(src, rtag); err != nil {
		return nil, err
	}
	t := c.enter()
	r, err := c.both(sb, dst, stag, rb, src, rtag, mem)
	if err != nil {
		return nil, err
	}
	r.comm = c
	c.leave(t, name, dst, stag, len(sb), nil)
	return r, nil
}

// copied returns a copy of buf in scratch memory, after checking the tags.
func copied[T Element](c *Comm, buf []T, stag, src, rtag int) ([]byte, *scratch, error) {
	own, err := bytesOf(buf)
	if err != nil {
		return nil, nil, err
	}
	if err := checkTag(stag); err != nil {
		return nil, nil, err
	}
	if err := c.checkRecv(src, rtag); err != nil {
		return nil, nil, err
	}
	s := getScratch(len(own))
	b := s.bytes(len(own))
	copy(b, own)
	return b, s, nil
}

// both starts the send and the receive of isendrecv: first the send, since that may
// fail, and a receive that has matched cannot be undone.
func (c *Comm) both(sb []byte, dst, stag int, rb []byte, src, rtag int, mem *scratch) (*Request, error) {
	if src != ProcNull {
		if err := c.checkSource(src); err != nil {
			mem.put()
			return nil, err
		}
	}
	s, err := c.isend(slotUser, sendStandard, sb, dst, stag)
	if err != nil {
		mem.put()
		return nil, err
	}
	r, err := c.irecv(slotUser, rb, src, rtag) // its arguments have been checked
	return goRequest(c.w, func() (Status, error) {
		_, serr := s.wait(context.Background())
		mem.put()
		if err != nil {
			return Status{}, err
		}
		st, rerr := r.wait(context.Background())
		if rerr == nil {
			rerr = serr
		}
		return st, rerr
	}), nil
}
