package rma

import (
	"context"
	"sync"
)

// testComm is a communicator with one rank under test. The test plays the other ranks: it decides what they send and
// receive, and when.
type testComm struct {
	Comm   // what is not defined here is not called
	size   int
	failed map[int]error // by rank: why it has failed
	refuse map[int]error // by rank: why nothing can be sent to it, which is noticed by sending only

	mu    sync.Mutex // guards what follows
	recvs []*testRequest
	sends []*testRequest
	early []testRequest // sent to the caller before it was received
	inbox testInbox
	polls bool      // goroutines of the program perform requests
	calls []Service // that are left to them
}

// testRequest is a message.
type testRequest struct {
	rank, tag int
	b         []byte
	n         int
	err       error
	once      sync.Once
	done      chan struct{}
}

// testInbox has the requests to the service of one origin.
type testInbox struct {
	c        *testComm
	found    func()
	requests [][]byte
	b        []byte // of the posted receive; nil: none is posted
	n        int    // bytes that have arrived in it; 0: none yet
}

func newTestWindow(c *testComm, mem []byte) *Window {
	w := &Window{c: c, mem: mem, unit: 1, access: AccessRead | AccessWrite | AccessUpdate, to: make([]targetState, c.size)}
	w.locks.init(c.size)
	return w
}

// tell sends a message without data to the caller.
func (c *testComm) tell(rank, tag int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.recvs {
		if r.rank == rank && r.tag == tag && !r.Done() {
			r.end(nil)
			return
		}
	}
	c.early = append(c.early, testRequest{rank: rank, tag: tag})
}

// lose fails the receives from a rank.
func (c *testComm) lose(rank int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.recvs {
		if r.rank == rank {
			r.end(err)
		}
	}
}

// sent returns the messages to a rank.
func (c *testComm) sent(rank, tag int) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.sends {
		if r.rank == rank && r.tag == tag {
			n++
		}
	}
	return n
}

func (c *testComm) Rank() int { return 0 }

func (c *testComm) Usable() error { return nil }

func (c *testComm) Failure(rank int) error { return c.failed[rank] }

func (c *testComm) FlushSends() {}

func (c *testComm) Isend(b []byte, to, tag int, _ bool) (Request, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refuse[to]; err != nil {
		return nil, err
	}
	r := &testRequest{rank: to, tag: tag, b: b, done: make(chan struct{})}
	c.sends = append(c.sends, r)
	return r, nil
}

func (c *testComm) Irecv(b []byte, from, tag int) (Request, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &testRequest{rank: from, tag: tag, b: b, done: make(chan struct{})}
	for i := range c.early {
		if m := &c.early[i]; m.rank == from && m.tag == tag {
			m.rank = ProcNull
			r.end(nil)
			break
		}
	}
	c.recvs = append(c.recvs, r)
	return r, nil
}

func (r *testRequest) end(err error) {
	r.once.Do(func() {
		r.err = err
		close(r.done)
	})
}

func (r *testRequest) Done() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *testRequest) Wait(ctx context.Context) (int, error) {
	if r.Done() {
		return r.n, r.err
	}
	select {
	case <-r.done:
		return r.n, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (r *testRequest) Finish(ctx context.Context) error {
	_, err := r.Wait(ctx)
	return err
}

func (r *testRequest) Await() { <-r.done }

func (r *testRequest) Test() (bool, error) {
	if !r.Done() {
		return false, nil
	}
	return true, r.err
}

func (r *testRequest) Cancel() { r.end(context.Canceled) }

func (r *testRequest) Free() {}

// request sends a request to the service.
func (c *testComm) request(h amHeader) {
	msg := make([]byte, amHeaderLen)
	h.put(msg)
	c.mu.Lock()
	x := &c.inbox
	x.requests = append(x.requests, msg)
	found := x.arrive()
	c.mu.Unlock()
	if found {
		x.found()
	}
}

// serve has goroutines of the program perform requests.
func (c *testComm) serve() {
	c.mu.Lock()
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	for _, s := range calls {
		s.Serve()
	}
}

// pending returns the messages to a rank that are being sent, oldest first, and their bytes.
func (c *testComm) pending(rank int) (rs []*testRequest, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.sends {
		if r.rank == rank && !r.Done() {
			rs = append(rs, r)
			bytes += len(r.b)
		}
	}
	return rs, bytes
}

func (c *testComm) Inbox(_, _ int, found func()) Inbox {
	c.inbox.c, c.inbox.found = c, found
	return &c.inbox
}

func (c *testComm) Attend(s Service) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.polls {
		c.calls = append(c.calls, s)
	}
	return c.polls
}

// arrive receives the next request, if there is one and its receive is posted. The mutex of the communicator is held.
func (x *testInbox) arrive() bool {
	if x.b == nil || x.n > 0 || len(x.requests) == 0 {
		return false
	}
	x.n = copy(x.b, x.requests[0])
	x.requests = x.requests[1:]
	return true
}

func (x *testInbox) Post(b []byte) bool {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	x.b, x.n = b, 0
	return !x.arrive()
}

func (x *testInbox) Arrived() bool {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	return x.n > 0
}

func (x *testInbox) Result() (int, error) { return x.n, nil }

func (x *testInbox) Next() { x.Close(nil) }

func (x *testInbox) Close(error) {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	x.b, x.n = nil, 0
}
