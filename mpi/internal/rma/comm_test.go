package rma

import (
	"context"
	"sync"
)

// testComm is a communicator whose other ranks are the test: it says what they send and receive, and when.
type testComm struct {
	Comm   // what is not defined here is not called
	size   int
	failed map[int]error // by rank: why it has failed
	refuse map[int]error // by rank: why nothing can be sent to it, which is noticed by sending only

	mu    sync.Mutex // guards what follows
	recvs []*testRequest
	sends []*testRequest
	early []testRequest // sent to the caller before it was received
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
