package verbs

import "sync"

// refs counts the users of an object that cannot be closed while it has any.
type refs struct {
	mu     sync.Mutex
	n      int  // guarded by mu
	closed bool // guarded by mu
}

// enter counts a user. Of a closed object it returns ErrClosed.
func (r *refs) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.n++
	return nil
}

// leave takes one enter back.
func (r *refs) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
}

// close makes enter fail from now on. It returns ErrBusy, and does nothing,
// while there are users. what and users name the object and them.
func (r *refs) close(what, users string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return ErrClosed
	case r.n > 0:
		return explain(ErrBusy, "%s in use by %d %s", what, r.n, users)
	}
	r.closed = true
	return nil
}
