package p2p

import (
	"context"
	"testing"
)

// atWithdrawal is an exposure that something happens to while it ends.
type atWithdrawal func()

func (f atWithdrawal) Withdraw() { f() }

// A receive that is given up while the rest of its message comes has failed: what was
// not placed any more is not taken for received, and what was written for unasked.
func TestRequestFailsWhileMessageComes(t *testing.T) {
	c, p := newTestEngine(t)
	e := c.Engine
	p.Link = NoLink{}
	for name, comes := range map[string]func(r *Request, id uint64){
		"body": func(r *Request, _ uint64) {
			r.Put(0, make([]byte, 8))
			r.received()
		},
		"written": func(_ *Request, id uint64) { e.Written(p, id) },
	} {
		r := GetRequest(e)
		r.Context, r.Buf, r.Length, r.Status.Bytes = NewContext(7), make([]byte, 8), 8, 8
		id := e.IDs.Add(r, p)
		came := false
		r.Exposed = atWithdrawal(func() {
			came = true
			comes(r, id)
		})
		r.Fail(context.DeadlineExceeded)
		if !came || !r.Finished.Load() || r.Err != context.DeadlineExceeded {
			t.Errorf("%s: done %v with %v, want %v", name, r.Finished.Load(), r.Err, context.DeadlineExceeded)
		}
	}
}
