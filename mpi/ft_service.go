package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/ft"
)

// ftService is the failure service of a World: it handles the messages of agreements and
// revocations on a goroutine of its own, independent of the program. They are messages of a context
// that belongs to no communicator.
type ftService struct {
	*ft.Service
	w     *World
	x     *matchContext
	limit int // bound on the members of a communicator
}

const (
	// ftID is the id of the context of the service, in slotColl.
	ftID = 3 << 8
	// ftRoom is how many more members than the world a communicator with agreements may have.
	ftRoom = 4096
)

func newFTService(w *World) *ftService {
	f := &ftService{w: w, limit: w.Size() + ftRoom}
	f.Service = ft.NewService(f, f.limit)
	f.x = newContext(ftID | uint64(slotColl))
	f.x.internal = true
	w.eng.contexts[f.x.id] = f.x
	return f
}

// run receives messages until the World ends.
func (f *ftService) run() {
	e := f.w.eng
	buf := make([]byte, ft.MessageLen(f.limit))
	w := e.internalWaiters.get()
	defer w.recycle()
	for {
		r := getRequest(e)
		r.ctx, r.src, r.tag, r.buf = f.x, AnySource, AnyTag, buf
		e.mu.Lock()
		if e.err != nil {
			e.mu.Unlock()
			return
		}
		f.x.post(r)
		ms := f.x.taken()
		e.mu.Unlock()
		e.handAll(ms)
		if r.addWaiter(w) {
			for !r.done.Load() {
				_ = w.wait(context.Background())
			}
		}
		if r.err != nil {
			continue // the sender died, or the World has ended
		}
		if m, ok := ft.Parse(buf[:r.status.Bytes]); ok {
			f.Take(m, r.peer.handle)
		}
		r.recycle()
	}
}

// Comm implements ft.Host.
func (f *ftService) Comm(id uint64) ft.Comm {
	e := f.w.eng
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.contexts[id]; x != nil && x.comm != nil {
		return ftComm{x.comm.owner.(*Comm)}
	}
	return nil
}

// Failed implements ft.Host.
func (f *ftService) Failed(handle int32) bool { return f.w.eng.peer(handle).failure() != nil }

// Send implements ft.Host.
func (f *ftService) Send(handle int32, b []byte) {
	c := &Comm{comm: comm{eng: f.w.eng, peers: []*peer{f.w.eng.peer(handle)}, seq: make([]uint32, 1)}, w: f.w, group: []int32{0}}
	c.ctx[slotColl] = f.x
	c.hints.Store(f.w.self.hints.Load())
	_, _ = c.comm.isend(slotColl, sendStandard, b, 0, 0)
}

// Over implements ft.Host.
func (f *ftService) Over() <-chan struct{} { return f.w.eng.over }

// Ended implements ft.Host.
func (f *ftService) Ended() error { return f.w.usable() }

// ftComm is a communicator as the failure service uses it.
type ftComm struct{ c *Comm }

// ID implements ft.Comm.
func (x ftComm) ID() uint64 { return x.c.id }

// Members implements ft.Comm.
func (x ftComm) Members() ([]int32, int) {
	members, me := x.c.members()
	handles := make([]int32, len(members))
	for i, p := range members {
		handles[i] = p.handle
	}
	return handles, me
}

// Revoked implements ft.Comm.
func (x ftComm) Revoked(by int32) {
	rank := Undefined
	if by != ft.NoMember {
		rank = x.c.w.eng.peer(by).rank
	}
	x.c.revoked(rank)
}
