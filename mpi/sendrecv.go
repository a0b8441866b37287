package mpi

import "context"

// Isendrecv starts Sendrecv. Both messages are matched in the order of the calls.
func Isendrecv[S, R Element](c *Comm, send []S, dst, stag int, recv []R, src, rtag int) (*Request, error) {
	r, err := Irecv(c, recv, src, rtag)
	if err != nil {
		return nil, err
	}
	s, err := Isend(c, send, dst, stag)
	return c.both(s, r, nil, err)
}

// IsendrecvReplace starts SendrecvReplace.
func IsendrecvReplace[T Element](c *Comm, buf []T, dst, stag, src, rtag int) (*Request, error) {
	b, mem, err := copied(buf, stag, rtag)
	if err != nil {
		return nil, err
	}
	r, err := Irecv(c, buf, src, rtag)
	if err != nil {
		mem.put()
		return nil, err
	}
	s, err := c.isend(slotUser, sendStandard, b, dst, stag)
	return c.both(s, r, mem, err)
}

// copied returns a copy of buf in scratch memory, after checking the tags.
func copied[T Element](buf []T, stag, rtag int) ([]byte, *scratch, error) {
	src, err := bytesOf(buf)
	if err != nil {
		return nil, nil, err
	}
	if err := checkTag(stag); err != nil {
		return nil, nil, err
	}
	if err := checkRecvTag(rtag); err != nil {
		return nil, nil, err
	}
	s := getScratch(len(src))
	b := s.bytes(len(src))
	copy(b, src)
	return b, s, nil
}

// both returns a request for send and receive s and r. It gives mem back when
// the send is done. If there is no s, because of err, r is withdrawn.
func (c *Comm) both(s, r *Request, mem *scratch, err error) (*Request, error) {
	if err != nil {
		r.Cancel()
		return nil, err
	}
	return goRequest(c.w, func() (Status, error) {
		_, serr := s.Wait(context.Background())
		mem.put()
		st, rerr := r.Wait(context.Background())
		if rerr == nil {
			rerr = serr
		}
		return st, rerr
	}), nil
}
