package rma

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// service performs the active messages of one origin on the window, in order, so an answer to a
// flush says that the earlier ones are performed. It has a goroutine of its own: the program of the
// target takes no part (MPI-4.1, Section 12.7.3), and an origin that is slow, or stops in the
// middle of a message, delays no other one. While a goroutine of the program polls, its progress
// hook performs the requests that take no time: waking the goroutine of the service would take
// longer and occupy another processor.
type service struct {
	w      *Window
	origin int
	wake   chan struct{} // wakes the goroutine of the service
	ready  atomic.Bool   // a request has arrived since the last look

	mu     sync.Mutex // held while requests are performed; guards what follows
	in     Inbox
	buf    []byte       // receive buffer of the next request
	posted bool         // the receive of the next request is posted
	left   bool         // the next request is left to the goroutine of the service
	over   bool         // set when the service has ended
	code   uint8        // first error since the last flush
	out    []sentAnswer // being sent
	held   int          // sum of their costs
}

// sentAnswer is an answer that is being sent, with its pooled memory.
type sentAnswer struct {
	r    Request
	s    *bufpool.Buffer
	cost int // that it counts for in service.held; 0: it does not count
}

const (
	// maxAnswers bounds the memory of answers that are being sent to one origin, in bytes: an origin asks for MaxChunk
	// of them with a short message, as often as it likes, and may be slow to receive them, or stop.
	maxAnswers = 8 << 20
	// answerCost is what an answer counts for besides its data. It takes less, but reap looks at each.
	answerCost = 4 << 10
)

// serveAtOnce is how many requests in a row a polling goroutine performs before it checks the
// condition that it waits for.
const serveAtOnce = 16

// serve performs the requests of an origin until ctx ends or the origin has failed.
func (w *Window) serve(ctx context.Context, origin int) {
	mem := bufpool.Get(amHeaderLen + MaxInline)
	defer mem.Put()
	s := &service{w: w, origin: origin, buf: mem.Bytes(amHeaderLen + MaxInline), wake: make(chan struct{}, 1)}
	s.in = w.c.Inbox(origin, tagRequest, s.found)
	for s.run(ctx, true) {
		select {
		case <-s.wake:
		case <-ctx.Done(): // run looks at ctx
		}
	}
}

// Serve implements Service.
func (s *service) Serve() { s.run(context.Background(), false) }

// Wake implements Service.
func (s *service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// found is called when a request has arrived, or none can arrive any more. The caller may hold
// locks.
func (s *service) found() {
	s.ready.Store(true)
	if !s.w.c.Attend(s) {
		s.Wake()
	}
}

// run performs the requests that have arrived and reports whether there may be more later. own says
// that the goroutine of the service calls it; otherwise run leaves requests that may take long to
// that goroutine.
func (s *service) run(ctx context.Context, own bool) bool {
	defer s.w.c.FlushSends() // for answers
	for again := true; again; again = s.ready.Load() {
		if own {
			s.mu.Lock()
		} else if !s.mu.TryLock() {
			return true // the holder of mu checks ready again
		}
		s.ready.Store(false)
		s.advance(ctx, own)
		over := s.over
		s.mu.Unlock()
		if over {
			return false
		}
	}
	return true
}

// advance is run with s.mu held.
func (s *service) advance(ctx context.Context, own bool) {
	for done := 0; !s.over && (own || !s.left); done++ {
		if own && ctx.Err() != nil {
			s.end(ctx.Err())
			return
		}
		if !s.posted {
			s.posted = true
			if s.in.Post(s.buf) {
				return
			}
		} else if !s.in.Arrived() {
			return
		}
		if !own && (done == serveAtOnce || s.full() || s.takesLong()) {
			s.left = true
			s.Wake()
			return
		}
		s.makeRoom() // waits only if own is set
		s.left = false
		s.posted = false
		n, err := s.in.Result()
		s.in.Next()
		switch {
		case err == nil:
			s.request(ctx, s.buf[:n])
		case errors.Is(err, mpierr.ErrTruncate):
			s.fail(amProtocol)
		default:
			s.end(nil)
			return
		}
		s.reap()
	}
}

// takesLong reports whether the next request may block: its data is a message of its own.
func (s *service) takesLong() bool {
	var h amHeader
	n, err := s.in.Result()
	if err != nil {
		return true
	}
	_, ok := h.get(s.buf[:n])
	return ok && h.bulk
}

// end ends the service: ctx has ended, with the error err, or the origin has failed. The goroutine
// of the service calls it.
func (s *service) end(err error) {
	s.over = true
	if s.posted {
		s.posted = false
		s.in.Close(err)
	}
	s.grant(s.w.locks.release(s.origin)) // releases the lock of a failed origin
	s.finish()
}

// fail records the first error since the last flush, which the answer to the next flush reports.
func (s *service) fail(code uint8) {
	if s.code == amOK {
		s.code = code
	}
}

// request performs one request.
func (s *service) request(ctx context.Context, msg []byte) {
	var h amHeader
	data, ok := h.get(msg)
	if !ok {
		s.fail(amProtocol)
		return
	}
	switch h.kind {
	case amFlush:
		if h.answer {
			s.answerByte(h.num, s.code)
			s.code = amOK
		}
	case amLock:
		s.lock(h)
	case amUnlock:
		s.grant(s.w.locks.release(s.origin))
	default:
		s.access(ctx, h, data)
	}
}

// access performs a request that touches memory.
func (s *service) access(ctx context.Context, h amHeader, data []byte) {
	w := s.w
	need := AccessUpdate
	switch h.kind {
	case amPut:
		need = AccessWrite
	case amGet:
		need = AccessRead
	}
	code := amOK
	var e *Elem
	n := h.n
	if h.update() {
		if e, code = w.checkUpdate(&h); e != nil {
			n = uint64(e.span(int(n)))
		}
	}
	mem, within := w.at(h.off, n)
	switch {
	case w.access&need == 0:
		code = amAccess
	case !within:
		code = amRange
	case e != nil && len(mem) > 0 && !e.fits(mem):
		code = amAlign
	}
	var held *bufpool.Buffer
	if h.bulk {
		into := mem
		if code != amOK || h.kind != amPut {
			held = bufpool.Get(int(h.n))
			into = held.Bytes(int(h.n))
		}
		n, err := w.c.Receive(ctx, into, s.origin, bulkTag(h.num))
		if data = into; err != nil || n != len(into) {
			code = amProtocol
		}
	}
	if code != amOK {
		s.fail(code)
		if h.answer {
			s.refuse(&h, code)
		}
		held.Put()
		return
	}
	switch h.kind {
	case amPut:
		w.hold()
		if !h.bulk {
			copy(mem, data)
		}
		w.release()
	case amGet:
		if h.answer { // a copy, because the memory may change before it is sent
			old := bufpool.Get(int(h.n))
			b := old.Bytes(int(h.n))
			w.hold()
			copy(b, mem)
			w.release()
			s.answer(h.num, b, old)
		}
	case amUpdate, amSwap:
		var old *bufpool.Buffer
		var b []byte
		if h.answer {
			old = bufpool.Get(int(h.n))
			b = old.Bytes(int(h.n))
		}
		if h.kind == amSwap {
			w.applySwap(mem, data, b, e)
		} else {
			w.apply(mem, data, b, e, e.ops[h.op])
		}
		if h.answer {
			s.answer(h.num, b, old)
		}
	}
	held.Put()
}

// checkUpdate returns the type of the elements of an update, or why it is refused.
func (w *Window) checkUpdate(h *amHeader) (*Elem, uint8) {
	e := elemIn(h)
	switch {
	case e == nil, w.elem != nil && (h.elem != w.elem.code || int(h.size) != w.elem.size):
		return nil, amType
	case h.n%uint64(h.size) != 0,
		h.kind == amUpdate && (int(h.op) >= len(e.ops) || e.ops[h.op] == nil),
		h.kind == amSwap && (h.n != uint64(h.size) || e.gap != nil),
		e.gap != nil && h.n != uint64(h.size):
		return nil, amProtocol
	}
	return e, amOK
}

// answer sends b without waiting. The origin has posted the receive.
func (s *service) answer(num uint32, b []byte, mem *bufpool.Buffer) {
	cost := answerCost
	if mem != nil {
		cost += mem.Size()
	}
	s.send(s.origin, num, b, mem, cost)
}

func (s *service) answerByte(num uint32, code uint8) {
	b, mem := codeMessage(code)
	s.answer(num, b, mem)
}

// codeMessage returns an answer of one byte and its memory.
func codeMessage(code uint8) ([]byte, *bufpool.Buffer) {
	mem := bufpool.Get(1)
	b := mem.Bytes(1)
	b[0] = code
	return b, mem
}

// send sends an answer that counts for cost.
func (s *service) send(origin int, num uint32, b []byte, mem *bufpool.Buffer, cost int) {
	r, err := s.w.c.Isend(b, origin, answerTag(num), true)
	if err != nil {
		mem.Put() // the origin is gone
		return
	}
	s.out = append(s.out, sentAnswer{r, mem, cost})
	s.held += cost
}

// full reports whether the answer to the next request might not find room.
func (s *service) full() bool {
	if s.held <= maxAnswers-MaxChunk-answerCost {
		return false
	}
	s.reap()
	return s.held > maxAnswers-MaxChunk-answerCost
}

// makeRoom waits until the answer to the next request finds room. Meanwhile requests use up the credit of the origin.
// The engine of the origin ends the wait, whatever its program does: the receive of an answer is posted before its
// request is sent, and stays. Only an origin that gives up waiting for a lock withdraws it, so grants do not count.
func (s *service) makeRoom() {
	for s.full() {
		oldest := slices.IndexFunc(s.out, func(a sentAnswer) bool { return a.cost > 0 })
		s.out[oldest].r.Await() // fails if the link does
	}
}

// refuse answers an access with the reason why it is refused: a byte, or nothing if the origin expects a single one.
// Other lengths than the expected one are refusals.
func (s *service) refuse(h *amHeader, code uint8) {
	if h.n == 1 {
		s.answer(h.num, nil, nil)
		return
	}
	s.answerByte(h.num, code)
}

// reap frees the answers that have been sent.
func (s *service) reap() {
	s.out = slices.DeleteFunc(s.out, func(a sentAnswer) bool {
		if !a.r.Done() {
			return false
		}
		s.held -= a.cost
		a.s.Put()
		a.r.Free()
		return true
	})
}

// finish waits until all answers have been sent, so that no send uses memory of the service any
// more.
func (s *service) finish() {
	for _, a := range s.out {
		a.r.Await() // fails if the link does
	}
	s.reap()
}

// lock performs a lock request.
func (s *service) lock(h amHeader) {
	mode := LockMode(h.op)
	if !h.answer || mode != LockShared && mode != LockExclusive {
		s.fail(amProtocol)
		return
	}
	granted, ok := s.w.locks.acquire(s.origin, mode, h.num)
	if !ok {
		s.answerByte(h.num, amProtocol)
		return
	}
	s.grant(granted)
}

// grant notifies origins that they hold the lock.
func (s *service) grant(granted []lockRequest) {
	for _, g := range granted {
		b, mem := codeMessage(amOK)
		s.send(g.origin, g.num, b, mem, 0)
	}
}
