package mpi

import (
	"context"
	"errors"
	"slices"
)

// winService performs the requests of one origin on the window, on a goroutine
// of its own: the program of the target takes no part (MPI-4.1, Section
// 12.7.3), and origins that are slow, or stop in the middle, hold up nobody
// else. Requests are performed in order, so an answer to a flush says that those
// before it are done.
type winService struct {
	w      *window
	origin int
	code   uint8 // first error since the last flush
	out    []winAnswer
}

// winAnswer is an answer being sent, with its memory if that is scratch.
type winAnswer struct {
	r *Request
	s *scratch
}

// serve performs requests of an origin until ctx ends or the origin is gone.
func (w *window) serve(ctx context.Context, origin int) {
	s := &winService{w: w, origin: origin}
	mem := getScratch(amHeaderLen + amInline)
	defer mem.put()
	buf := mem.bytes(amHeaderLen + amInline)
	for {
		st, err := w.c.recv(ctx, slotWin, buf, origin, winTagRequest)
		switch {
		case err == nil:
			s.request(ctx, buf[:st.Bytes])
		case errors.Is(err, ErrTruncate) && ctx.Err() == nil:
			s.fail(amProtocol)
		default:
			// Locks of the dead are free again.
			s.grant(w.locks.release(origin))
			s.finish()
			return
		}
		s.reap()
	}
}

func (s *winService) fail(code uint8) {
	if s.code == amOK {
		s.code = code
	}
}

// request performs one request.
func (s *winService) request(ctx context.Context, msg []byte) {
	var h amHeader
	data, ok := h.get(msg)
	if !ok {
		s.fail(amProtocol)
		return
	}
	switch h.kind {
	case amFlush:
		if h.answer {
			s.answerByte(s.origin, h.num, s.code)
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
func (s *winService) access(ctx context.Context, h amHeader, data []byte) {
	w := s.w
	need := AccessUpdate
	switch h.kind {
	case amPut:
		need = AccessWrite
	case amGet:
		need = AccessRead
	}
	code := amOK
	mem, within := w.at(h.off, h.n)
	switch {
	case w.access&need == 0:
		code = amAccess
	case !within:
		code = amRange
	case h.kind == amUpdate && (int(h.op) >= len(w.ops) || w.ops[h.op] == nil),
		need == AccessUpdate && (h.off%uint64(w.elem) != 0 || h.n%uint64(w.elem) != 0),
		h.kind == amSwap && h.n != uint64(w.elem):
		code = amProtocol
	}
	var held *scratch
	if h.bulk {
		into := mem
		if code != amOK || h.kind != amPut {
			held = getScratch(int(h.n))
			into = held.bytes(int(h.n))
		}
		st, err := w.c.recv(ctx, slotWin, into, s.origin, bulkTag(h.num))
		if data = into; err != nil || st.Bytes != len(into) {
			code = amProtocol
		}
	}
	if code != amOK {
		s.fail(code)
		if h.answer {
			s.answer(s.origin, h.num, nil, nil) // shorter than what is expected
		}
		held.put()
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
		if h.answer { // from a copy: the memory may change before it is sent
			old := getScratch(int(h.n))
			b := old.bytes(int(h.n))
			w.hold()
			copy(b, mem)
			w.release()
			s.answer(s.origin, h.num, b, old)
		}
	case amUpdate, amSwap:
		var old *scratch
		var b []byte
		if h.answer {
			old = getScratch(int(h.n))
			b = old.bytes(int(h.n))
		}
		if h.kind == amSwap {
			w.applySwap(mem, data, b)
		} else {
			w.apply(mem, data, b, w.ops[h.op])
		}
		if h.answer {
			s.answer(s.origin, h.num, b, old)
		}
	}
	held.put()
}

// answer sends b without waiting: the origin has made room for it.
func (s *winService) answer(origin int, num uint32, b []byte, mem *scratch) {
	r, err := s.w.c.isend(slotWin, sendStandard, b, origin, answerTag(num))
	if err != nil {
		mem.put() // the origin is gone
		return
	}
	s.out = append(s.out, winAnswer{r, mem})
}

func (s *winService) answerByte(origin int, num uint32, code uint8) {
	mem := getScratch(1)
	b := mem.bytes(1)
	b[0] = code
	s.answer(origin, num, b, mem)
}

// reap frees the answers that are sent.
func (s *winService) reap() {
	s.out = slices.DeleteFunc(s.out, func(a winAnswer) bool {
		if !a.r.done.Load() {
			return false
		}
		a.s.put()
		a.r.Free()
		return true
	})
}

// finish waits for the answers on their way, so that the memory of the window
// is the program's again.
func (s *winService) finish() {
	for _, a := range s.out {
		_, _ = a.r.wait(context.Background()) // fails if the link does
	}
	s.reap()
}

func (s *winService) lock(h amHeader) {
	mode := LockMode(h.op)
	if !h.answer || mode != LockShared && mode != LockExclusive {
		s.fail(amProtocol)
		return
	}
	granted, ok := s.w.locks.acquire(s.origin, mode, h.num)
	if !ok {
		s.answerByte(s.origin, h.num, amProtocol)
		return
	}
	s.grant(granted)
}

// grant tells origins that they hold the lock.
func (s *winService) grant(granted []lockRequest) {
	for _, g := range granted {
		s.answerByte(g.origin, g.num, amOK)
	}
}
