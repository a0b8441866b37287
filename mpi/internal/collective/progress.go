package collective

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/op"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// A nonblocking collective is recorded when it starts, and taken step by step. The first steps are taken by the
// call that starts it. It stops where a message has still to come, and goes on when it has: on a goroutine of
// the program that waits for something or tests, because that reads the messages (the progress hook), or if there
// is none on a goroutine of its own. A goroutine for each collective would be woken for each message, which
// costs ten times as much as the step.

// progress is what a collective in progress has.
type progress struct {
	record  coll.Recording
	next    int          // the step to take
	waits   int          // messages from here on are waited for; -1: none
	waiter  p2p.Waiter   // of the one message that has still to come
	request *p2p.Request // of the program, to be completed
}

// Recordable reports whether Start may be called: not if an operator of the program may panic, or not return.
func (k *Call) Recordable() bool {
	if k.run != nil && !k.plain {
		return false
	}
	if k.Op == nil || k.Op.Code() != op.CodeUser {
		return true
	}
	u, ok := k.Op.(*op.UserItems)
	return ok && u.Returns
}

// Start starts the collective, which completes r. k must not be used afterwards.
func (k *Call) Start(r *p2p.Request) {
	p := &k.progress
	if p.waiter.Found == nil { // a method value is made once
		p.waiter.Found = k.arrived
	}
	p.request, p.waits = r, -1
	p.record.Tag = k.comm.tag
	k.Comm = &p.record
	if err := k.algorithm(); err != nil {
		k.finish(err)
		return
	}
	e := k.comm.c.P2P.Engine
	e.Progress.Hook.Used.Store(true)
	k.advance()
}

// Serve takes the steps that can be taken. It implements p2p.Service.
func (k *Call) Serve() { k.advance() }

// Wake has a goroutine take the steps. It implements p2p.Service.
func (k *Call) Wake() { go k.advance() }

// arrived is called when the message has come that the collective waits for.
func (k *Call) arrived() {
	if !k.comm.c.P2P.Engine.Progress.Hook.Add(k) {
		k.Wake()
	}
}

// advance takes steps until one has to wait for a message: then arrived is called when that has come, perhaps
// before advance returns. It is not called by two goroutines at once.
func (k *Call) advance() {
	p, m := &k.progress, &k.comm
	for {
		if p.waits >= 0 {
			pending, err := k.endMessages()
			if err != nil {
				go func() { k.finish(m.abandon(err)) }() // it may wait for answers
				return
			}
			if pending {
				return
			}
		}
		if p.next == len(p.record.Steps) {
			k.finish(nil)
			return
		}
		s := &p.record.Steps[p.next]
		p.next++
		if err := k.take(s); err != nil {
			go func() { k.finish(m.abandon(err)) }()
			return
		}
	}
}

// take takes a step; progress.waits says then which messages are to be waited for.
func (k *Call) take(s *coll.Step) error {
	p, m := &k.progress, &k.comm
	switch s.Kind {
	case coll.StepCopy:
		copy(s.In, s.Out)
		return nil
	case coll.StepCombine:
		m.red.Combine(s.In, s.Mine, s.Out)
		return nil
	case coll.StepWait:
		p.waits = 0
		return nil
	case coll.StepExchange, coll.StepReduce:
		p.waits = len(m.reqs)
	}
	m.tag = s.Tag
	if s.Src != coll.ProcNull {
		if err := m.c.P2P.CheckSource(m.slot, s.Src); err != nil {
			return err
		}
		r := p2p.GetRequest(m.c.P2P.Engine)
		if s.Kind == coll.StepReduce {
			r.Reduce = p2p.ReceiveReduce{Reducer: m.red, Mine: s.Mine, Lower: s.Lower, Elem: m.elem}
		}
		m.c.P2P.StartRecv(r, m.slot, s.In, s.Src, s.Tag)
		m.reqs = append(m.reqs, startedMessage{r, s.Src, len(s.In)})
	}
	if s.Dst == coll.ProcNull {
		return nil
	}
	start := m.c.P2P.Isend
	if s.Awaited {
		start = m.c.P2P.IsendAwaited
	}
	r, err := start(m.slot, p2p.SendStandard, s.Out, s.Dst, s.Tag)
	if err == nil {
		m.reqs = append(m.reqs, startedMessage{r, s.Dst, -1})
	}
	return err
}

// endMessages ends the messages that are waited for, and reports true if one has still to come: then k belongs to
// the goroutine that arrived lets go on.
func (k *Call) endMessages() (pending bool, err error) {
	p, m := &k.progress, &k.comm
	for len(m.reqs) > p.waits {
		s := m.reqs[len(m.reqs)-1]
		if !s.r.Finished.Load() {
			m.c.P2P.Engine.Coalescer.FlushBeforeWait()
			if s.r.AddWaiter(&p.waiter) {
				return true, nil
			}
		}
		m.reqs = m.reqs[:len(m.reqs)-1]
		if err := m.finish(m.ctx, s); err != nil {
			return false, err
		}
	}
	p.waits = -1
	return false, nil
}

// finish ends the collective, which has failed if err is not nil, and completes the request.
func (k *Call) finish(err error) {
	r := k.progress.request
	if err == nil {
		err = k.comm.mismatch
	}
	if err == nil {
		k.store()
	} else {
		err = fmt.Errorf("%w (in %v)", err, k.Kind)
	}
	k.release()
	r.Complete(err)
}
