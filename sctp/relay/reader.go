package relay

import "context"

// Info describes what a receive returned.
type Info struct {
	PPID      uint32
	Unordered bool
	// EOR tells that the receive reached the end of the message; otherwise the next receive
	// continues it.
	EOR bool
	// Aborted tells that the rest of a message will never come. EOR is set then.
	Aborted bool
}

// Recv reads into buf until it is full or the message ends, and waits for as much as that takes. A message that is
// longer than buf is continued by the next Recv (Info.EOR). If ctx ends after a part of a message was read, Recv returns
// that part. If the flow ends in a message, that is Info.Aborted; when all is read Recv returns the error. Errors: that of ctx,
// ErrRestarted, ErrLost, ErrClosed.
func (r *Receiver) Recv(ctx context.Context, buf []byte) (n int, info Info, err error) {
	select {
	case r.turn <- struct{}{}:
	default:
		select {
		case r.turn <- struct{}{}:
		case <-ctx.Done():
			return 0, info, ctx.Err()
		}
	}
	defer func() { <-r.turn }()
	for {
		got, over, err := r.read(buf[n:], &info)
		n += got
		switch {
		case over:
			return n, info, nil
		case err != nil && n > 0:
			return n, info, nil
		case err != nil:
			return 0, info, err
		}
		select {
		case <-r.signal:
		case <-ctx.Done():
			if n > 0 {
				return n, info, nil
			}
			return 0, info, ctx.Err()
		}
	}
}

// TryRecv is Recv that never waits: it reads what is there, and returns ErrWouldBlock if that is nothing.
func (r *Receiver) TryRecv(buf []byte) (n int, info Info, err error) {
	select {
	case r.turn <- struct{}{}:
	default:
		return 0, info, ErrWouldBlock
	}
	defer func() { <-r.turn }()
	n, over, err := r.read(buf, &info)
	if n == 0 && !over && err == nil {
		err = ErrWouldBlock
	}
	return n, info, err
}

// read copies what is there of one message. over tells that buf is full, or the message has ended.
func (r *Receiver) read(buf []byte, info *Info) (n int, over bool, err error) {
	r.n.mu.Lock()
	for !over {
		q := &r.data
		if !r.open && r.single.Len() > 0 {
			q = &r.single
		}
		if q.Len() == 0 {
			if r.open && r.err != nil && r.err != ErrClosed { // the rest of the message never comes
				r.open = false
				*info = r.reading
				info.EOR, info.Aborted, over = true, true, true
				break
			}
			err = r.err
			break
		}
		u := q.At(0)
		t := &u.fragment
		info.PPID, info.Unordered = t.PPID, t.Unordered
		r.reading = *info
		k := copy(buf[n:], u.p.bytes()[u.from:])
		n += k
		u.from += k
		if u.from < u.p.n {
			r.open = true
			over = true
			break
		}
		if r.open = !t.End; t.End {
			info.EOR, info.Aborted, over = true, t.Aborted, true
		}
		p := q.Pop().p
		r.free(p)
		p.release()
		over = over || n == len(buf)
	}
	r.grow()
	if !r.listed && r.data.Len()+r.single.Len() > 0 {
		r.notify()
	}
	r.n.mu.Unlock()
	r.n.pump()
	return n, over, err
}
