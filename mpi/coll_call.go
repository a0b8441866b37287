package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/weftstack/weft/internal/bufpool"
)

// A call is one collective operation on one rank: what an algorithm works on.
// Buffers are bytes here; the generic functions have checked them. An
// algorithm sends and receives with the methods of its call, all messages of
// which carry the same tag, so messages between two ranks match in the order
// they are sent.
type call struct {
	ctx  context.Context
	c    *Comm
	coll Coll
	rank int // of the caller
	size int // of the communicator; of the remote group, if there is one
	root int
	tag  int

	send, recv []byte
	n          int     // bytes of one rank's block, for collectives of equal blocks
	sv, rv     *layout // where blocks lie, for those of unequal blocks, or nil
	bytes      int     // what the tuning table goes by, the same on all ranks

	slot   slot // of the messages: with the type of the elements, if all of them have it
	red    reducer
	elem   int  // bytes of an element, for reductions
	strict bool // combine strictly from left to right

	alone func(k *call) error // what to do, for collectives with one algorithm only

	wrong error // first disagreement about lengths
	held  []*bufpool.Buffer
	came  []byte // scratch of swapMerge
	reqs  []pending

	svMem, rvMem layout // memory for sv and rv
}

// layout says where the blocks of the ranks lie in a buffer, in bytes.
type layout struct{ count, at []int }

var callPool = sync.Pool{New: func() any { return new(call) }}

// begin starts a collective: it takes the next tag of the communicator, so
// ranks must call it in the same order.
func (c *Comm) begin(ctx context.Context, coll Coll) (*call, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	if err := c.brokenBy(); err != nil {
		return nil, err
	}
	if !c.hold() {
		return nil, ErrFreed
	}
	k := callPool.Get().(*call)
	k.ctx, k.c, k.coll, k.rank, k.size, k.slot = ctx, c, coll, c.rank, len(c.peers), slotColl
	k.tag = c.coll.nextTag()
	return k, nil
}

// end runs the call with the algorithm of the tuning table and gives back what
// the call holds.
func (k *call) end() error {
	err := k.run()
	k.release()
	return err
}

func (k *call) run() error {
	var err error
	run := k.alone
	if run == nil {
		var alg *algorithm
		if alg, err = k.c.coll.tuning(k.c).pick(k); err == nil {
			run = alg.run
		}
	}
	if err == nil {
		err = run(k)
	}
	if err == nil {
		err = k.wrong
	}
	if err != nil {
		return fmt.Errorf("%w (in %v)", err, k.coll)
	}
	return nil
}

// release returns k and its scratch to their pools.
func (k *call) release() {
	k.c.drop()
	for i, s := range k.held {
		s.Put()
		k.held[i] = nil
	}
	clear(k.reqs)
	*k = call{held: k.held[:0], reqs: k.reqs[:0], svMem: k.svMem, rvMem: k.rvMem}
	callPool.Put(k)
}

// tolerate turns an error about the length or the type of a message into one that is
// reported at the end: the collective goes on, so that the other ranks are not
// left waiting because of this one. After a wrong type what this rank sends matches no
// type, as it may depend on data that has not been received.
func (k *call) tolerate(err error) error {
	if err != nil && errors.Is(err, ErrTypeMismatch) {
		k.slot = slotColl.of(sigFailed)
	}
	if err != nil && (errors.Is(err, ErrTruncate) || errors.Is(err, ErrCount) || errors.Is(err, ErrTypeMismatch)) {
		if k.wrong == nil {
			k.wrong = err
		}
		return nil
	}
	return err
}

func (k *call) expect(st Status, err error, src, want int) error {
	if err == nil && st.Bytes != want && src != ProcNull {
		err = fmt.Errorf("%w: rank %d sent %d bytes, not %d", ErrCount, src, st.Bytes, want)
	}
	return k.tolerate(err)
}

// to sends b to rank dst.
func (k *call) to(b []byte, dst int) error {
	return k.c.send(k.ctx, k.slot, sendStandard, b, dst, k.tag)
}

// from receives exactly len(b) bytes from rank src.
func (k *call) from(b []byte, src int) error {
	st, err := k.c.recv(k.ctx, k.slot, b, src, k.tag)
	return k.expect(st, err, src, len(b))
}

// swap sends sb to dst while it receives rb from src.
func (k *call) swap(sb []byte, dst int, rb []byte, src int) error {
	st, err := k.c.sendrecv(k.ctx, k.slot, sb, dst, k.tag, k.slot, rb, src, k.tag)
	return k.expect(st, err, src, len(rb))
}

// scratch returns n bytes that belong to the call until its end. Their content
// is undefined.
func (k *call) scratch(n int) []byte {
	s := bufpool.Get(n)
	k.held = append(k.held, s)
	return s.Bytes(n)
}

// A pending is a message that was started; want is how long it must be, -1 for
// those sent.
type pending struct {
	r         *Request
	src, want int
}

// startTo starts sending b to dst, to be waited for by wait.
func (k *call) startTo(b []byte, dst int) error {
	r, err := k.c.isend(k.slot, sendStandard, b, dst, k.tag)
	return k.started(pending{r, dst, -1}, err)
}

// startFrom starts receiving exactly len(b) bytes from src, to be waited for
// by wait.
func (k *call) startFrom(b []byte, src int) error {
	r, err := k.c.irecv(k.slot, b, src, k.tag)
	return k.started(pending{r, src, len(b)}, err)
}

func (k *call) started(p pending, err error) error {
	if err != nil {
		return k.abandon(err)
	}
	k.reqs = append(k.reqs, p)
	return nil
}

// wait waits for all that was started. If one fails, or the context of the
// call ends, it withdraws the others: when it returns nothing touches the
// buffers any more.
func (k *call) wait() error {
	var failed error
	ctx := k.ctx
	for _, p := range k.reqs {
		var err error
		if p.want >= 0 {
			var st Status
			st, err = k.c.w.eng.finishRecv(ctx, p.r)
			err = k.expect(st, err, p.src, p.want)
		} else if err = k.c.w.eng.awaitSend(ctx, p.r); err == nil {
			if err = p.r.err; err == nil {
				p.r.recycle()
			}
		}
		if err != nil && failed == nil {
			failed, ctx = err, ended
		}
	}
	k.reqs = k.reqs[:0]
	return failed
}

// abandon withdraws all that was started and returns err.
func (k *call) abandon(err error) error {
	k.ctx = ended
	_ = k.wait() // err came first
	return err
}

// ended is a context that is over.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// same reports whether a and b are the same memory.
func same(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// overlap reports whether a and b share memory.
func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	pa, pb := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return pa < pb+uintptr(len(b)) && pb < pa+uintptr(len(a))
}

// apart returns ErrOverlap if a and b overlap without being the same memory.
func apart(a, b []byte) error {
	if overlap(a, b) && !same(a, b) {
		return ErrOverlap
	}
	return nil
}

// sblock and rblock return the block of rank i in the send and receive buffer.
func (k *call) sblock(i int) []byte { return blockOf(k.send, k.sv, k.n, i) }
func (k *call) rblock(i int) []byte { return blockOf(k.recv, k.rv, k.n, i) }

func blockOf(b []byte, v *layout, n, i int) []byte {
	if v != nil {
		return b[v.at[i] : v.at[i]+v.count[i]]
	}
	return b[i*n : (i+1)*n]
}

// cut returns where part i of parts begins when total bytes are cut into
// almost equal parts of whole elements; cut(parts) is total.
func (k *call) cut(total, i, parts int) int {
	e := total / k.elem
	return (e/parts*i + min(i, e%parts)) * k.elem
}

// part returns part i of b, see cut.
func (k *call) part(b []byte, i, parts int) []byte {
	return b[k.cut(len(b), i, parts):k.cut(len(b), i+1, parts)]
}
