package rma

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/verbs"
)

// State is what a window knows of a target, for tests.
type State struct {
	Mapped    bool // its memory is mapped here
	Copies    bool // the system copies to and from its memory
	Process   int  // the process that has the memory
	Puts      int  // aggregated Puts
	First     int  // place of the first of them
	Updates   uint64
	Connected bool // there were operations on a queue pair
	Answers   int  // that are outstanding
}

// Inspect returns what the window knows of a target.
func (w *Window) Inspect(target int) (s State) {
	t := &w.to[target]
	if w.direct != nil {
		d := &w.direct[target]
		s.Copies, s.Process = d.open.Load(), d.pid
		if m := d.mapped; m != nil && m.enter() {
			s.Mapped = true
			m.leave()
		}
	}
	_ = t.aggregated.mu.Lock(context.Background())
	if p := t.aggregated.puts; p != nil {
		s.Puts, s.First = p.count, p.pieces[0].Off
	}
	t.aggregated.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Updates, s.Connected, s.Answers = t.updates, t.conn != nil, len(t.results)
	return s
}

// SetProcess changes the process that the system is asked to copy the memory of a target from and to.
func (w *Window) SetProcess(target, pid int) {
	w.direct[target].pid = pid
	w.direct[target].open.Store(true)
}

// Direct reports whether memory of targets may be copied directly.
func (w *Window) Direct() bool { return w.direct != nil }

// Device returns the RDMA device, or nil.
func (w *Window) Device() *rdmadev.Device { return w.dev }

// Connect connects the queue pair to a target.
func (w *Window) Connect(ctx context.Context, target int) error {
	_, _, err := w.connTo(ctx, target)
	return err
}

// Remote returns what the caller believes about the part of a rank.
func (w *Window) Remote(rank int) *Part { return &w.remote[rank] }

// Announce announces n bytes to a target and does not send them.
func (w *Window) Announce(ctx context.Context, target, n int) error {
	return w.send(ctx, target, amHeader{kind: amPut, bulk: true, num: w.number(), n: uint64(n)}, nil)
}

// AbandonStart leaves the window as a Start does that has received the Post of one target and has failed then.
func (w *Window) AbandonStart(target int) {
	w.mu.Lock()
	w.started = nil
	w.mu.Unlock()
	w.to[target].keepPost()
}

// Region returns the registration of the caller's memory, nil without an RDMA device.
func (w *Window) Region() *verbs.MR { return w.mr }
