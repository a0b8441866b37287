package rma

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// amHeader begins an active message: a request of an origin to the service of the target, where
// RDMA is not available. Data of up to MaxInline bytes follows the header. Longer data is a message
// of its own, sent from the origin's buffer and, for Put, placed directly in the window. The number
// in the header gives that message, and the answer, tags of their own. All integers are big endian.
//
// An update names its operator and the type of its elements with their size; length is a whole number of them. Type
// and size are 0 in other requests.
//
//	 0      1    2      3       4        8         16       20
//	+------+----+------+-------+--------+---------+--------+------+------
//	| kind | op | type | flags | number | offset  | length | size | data …
//	+------+----+------+-------+--------+---------+--------+------+------
type amHeader struct {
	kind   amKind
	op     uint8    // operator, or lock mode
	elem   elemCode // type of the elements of an update
	bulk   bool     // the data is in a message of its own
	answer bool     // the origin waits for an answer
	num    uint32   // number of the request; 0 without bulk and answer
	off    uint64   // of the memory of the target, in bytes; in a dynamic window, its address
	n      uint64   // bytes of data
	size   uint32   // bytes of an element
}

// update returns whether the request updates elements.
func (h *amHeader) update() bool { return h.kind == amUpdate || h.kind == amSwap }

// Flags of a header.
const (
	amBulk = 1 << iota
	amAnswer
)

type amKind uint8

const (
	amPut    amKind = iota + 1 // data → memory
	amGet                      // memory → answer
	amUpdate                   // data op memory; the old memory → answer, if one is wanted
	amSwap                     // data holds compare and swap; old memory → answer
	amFlush                    // answer of one byte after all earlier requests are performed
	amLock                     // answer when granted
	amUnlock                   // no answer
	amLimit
)

const (
	amHeaderLen = 24
	// MaxInline bounds the data behind a header, in bytes.
	MaxInline = 8 << 10
	// MaxChunk bounds the data of one request, in bytes, so that requests of several origins take
	// turns.
	MaxChunk = 1 << 20
)

// Tags of the messages of a window.
const (
	tagRequest  = iota // to the service
	tagPost            // Post
	tagComplete        // Complete
	tagNumbered        // the first tag for data and answers
)

// Result codes: answers of one byte.
const (
	amOK uint8 = iota
	amRange
	amAccess
	amProtocol
	amType  // the window has no elements of that type
	amAlign // there is no element of that type at the place
)

// amError returns the error of a result code.
func amError(code uint8) error {
	switch code {
	case amOK:
		return nil
	case amRange:
		return mpierr.ErrRange
	case amAccess:
		return mpierr.ErrAccess
	case amType:
		return fmt.Errorf("%w: an update of elements that the window does not have", mpierr.ErrTypeMismatch)
	case amAlign:
		return fmt.Errorf("%w: an update at an address that is not aligned for its elements", mpierr.ErrDatatype)
	}
	return fmt.Errorf("%w: answer %d", mpierr.ErrProtocol, code)
}

func (h *amHeader) put(b []byte) {
	b[0], b[1], b[2], b[3] = byte(h.kind), h.op, byte(h.elem), 0
	if h.bulk {
		b[3] |= amBulk
	}
	if h.answer {
		b[3] |= amAnswer
	}
	binary.BigEndian.PutUint32(b[4:], h.num)
	binary.BigEndian.PutUint64(b[8:], h.off)
	binary.BigEndian.PutUint32(b[16:], uint32(h.n))
	binary.BigEndian.PutUint32(b[20:], h.size)
}

// get decodes h and reports whether the message is well-formed.
func (h *amHeader) get(b []byte) (data []byte, ok bool) {
	if len(b) < amHeaderLen || b[3] > amBulk|amAnswer {
		return nil, false
	}
	*h = amHeader{kind: amKind(b[0]), op: b[1], elem: elemCode(b[2]), bulk: b[3]&amBulk != 0, answer: b[3]&amAnswer != 0,
		num: binary.BigEndian.Uint32(b[4:]), off: binary.BigEndian.Uint64(b[8:]),
		n: uint64(binary.BigEndian.Uint32(b[16:])), size: binary.BigEndian.Uint32(b[20:])}
	data = b[amHeaderLen:]
	if h.kind == 0 || h.kind >= amLimit || h.n > MaxChunk || h.num > amNumbers {
		return nil, false
	}
	if (h.bulk || h.answer) != (h.num > 0) {
		return nil, false
	}
	if h.update() != (h.size > 0) || !h.update() && h.elem != 0 {
		return nil, false
	}
	want := uint64(0)
	switch {
	case h.bulk && h.kind != amPut && h.kind != amUpdate:
		return nil, false
	case h.bulk:
	case h.kind == amPut, h.kind == amUpdate:
		want = h.n
	case h.kind == amSwap:
		want = 2 * h.n
	}
	return data, uint64(len(data)) == want
}

// amNumbers is the largest number of a request. A number is reused only after all others: by then
// its request is no longer in flight.
const amNumbers = (math.MaxInt32 - tagNumbered - 1) / 2

// number returns a number for a request.
func (w *Window) number() uint32 { return 1 + w.requests.Add(1)%amNumbers }

// bulkTag and answerTag return the tags of the messages that belong to request num.
func bulkTag(num uint32) int   { return tagNumbered + 2*int(num) - 2 }
func answerTag(num uint32) int { return tagNumbered + 2*int(num) - 1 }

// tellFor is tell for a request with an answer, which is received into dst.
func (w *Window) tellFor(ctx context.Context, dst []byte, target int, h amHeader, data []byte) error {
	h.num, h.answer = w.number(), true
	r, err := w.c.Irecv(dst, target, answerTag(h.num))
	if err != nil {
		return err
	}
	t := &w.to[target]
	t.mu.Lock()
	t.results = append(t.results, result{r: r, want: len(dst), to: dst})
	t.mu.Unlock()
	if err = w.tell(ctx, target, h, data); err != nil { // the request is not sent, so it has no answer
		t.mu.Lock()
		if slices.ContainsFunc(t.results, func(x result) bool { return x.r == r }) { // else completeOps has taken it
			r.Cancel()
		}
		t.mu.Unlock()
	}
	return err
}

// tell sends a request without waiting for it; a later flush confirms that it is performed.
func (w *Window) tell(ctx context.Context, target int, h amHeader, data []byte) error {
	t := &w.to[target]
	if h.bulk = len(data) > MaxInline; h.bulk && !h.answer {
		h.num = w.number()
	}
	if err := w.send(ctx, target, h, data); err != nil {
		t.note(err)
		return err
	}
	var r Request
	if h.bulk {
		var err error
		if r, err = w.c.Isend(data, target, bulkTag(h.num), false); err != nil {
			t.note(err)
			return err
		}
	}
	t.mu.Lock()
	if h.kind == amUnlock { // completes nothing
		t.released = true
	} else {
		t.unsure = true
	}
	if h.update() {
		t.updates++
	}
	if r != nil {
		t.sends = append(t.sends, r)
	}
	t.mu.Unlock()
	return nil
}

// send sends one request.
func (w *Window) send(ctx context.Context, target int, h amHeader, data []byte) error {
	if h.bulk {
		data = nil
	}
	s := bufpool.Get(amHeaderLen + len(data))
	defer s.Put()
	b := s.Bytes(amHeaderLen + len(data))
	h.put(b)
	copy(b[amHeaderLen:], data)
	held := h.kind == amFlush || h.kind == amLock // the caller waits next, which transmits them
	return w.c.Send(ctx, b, target, tagRequest, held)
}

// ask sends a request and waits for its answer of one byte.
func (w *Window) ask(ctx context.Context, target int, h amHeader) error {
	num := w.number()
	var code [1]byte
	r, err := w.c.Irecv(code[:], target, answerTag(num))
	if err != nil {
		return err
	}
	h.num, h.answer = num, true
	err = w.send(ctx, target, h, nil)
	if err != nil {
		r.Cancel()
		return err
	}
	if err := r.Finish(ctx); err != nil {
		return err
	}
	return amError(code[0])
}
