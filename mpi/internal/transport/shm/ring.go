package shm

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// ringControl is the shared state of a ring buffer. Each group of fields has two cache lines of its
// own, because processors prefetch pairs of lines (against false sharing).
type ringControl struct {
	tail     atomic.Uint64 // total bytes written
	doorbell atomic.Uint32 // 1: a doorbell is in flight; the reader clears it before it loads tail
	_        [116]byte

	head atomic.Uint64 // total bytes read
	_    [120]byte

	want atomic.Uint32 // 1: the writer wants a doorbell when there is room
	_    [124]byte

	copies atomic.Uint32 // 1: the reader can use cross-memory attach on the writer
	_      [124]byte

	offers [MaxOffers]atomic.Uint64 // of the writer, see offer
}

const (
	ringControlLen = int(unsafe.Sizeof(ringControl{}))
	// ringStep is how many bytes of a long message are written, or read, before the other side sees
	// them, so that both copy at the same time (pipelining).
	ringStep = 16 << 10
	// ringAlign is the alignment of messages, in bytes: a short one takes a single cache line, and
	// elements are aligned for operators that read them in place.
	ringAlign = 64
)

// padding returns the number of bytes between a position and the next message.
func padding(pos uint64) int { return int(-pos & (ringAlign - 1)) }

// ringWriter is the writing end of a single-producer, single-consumer ring buffer in memory
// that two processes share. What the other process writes there is checked before use.
type ringWriter struct {
	ctl  *ringControl
	data []byte // its length is a power of 2
	pos  uint64 // total bytes written, including those not published
	head uint64 // head of the reader when it was last loaded
	// order is incremented before each publish, and loaded by the reader of the other
	// direction: in the Go memory model the other process, which comes between a message
	// and its answer, orders no memory accesses.
	order atomic.Uint64
}

// room returns how many bytes can be written. It reads the position of the reader only if
// the last known one leaves less than need, which saves a cache miss.
func (w *ringWriter) room(need int) int {
	if free := w.free(); free >= need {
		return free
	}
	if h := w.ctl.head.Load(); h-w.head <= w.pos-w.head { // otherwise the value is impossible
		w.head = h
	}
	return w.free()
}

func (w *ringWriter) free() int { return len(w.data) - int(w.pos-w.head) }

// begin begins a message. There must be room for padding(w.pos) bytes and one more.
func (w *ringWriter) begin() { w.pos += uint64(padding(w.pos)) }

// write writes as much of b as there is room for, and returns how much. The reader does not see the
// last bytes before publish.
func (w *ringWriter) write(b []byte) (n int) {
	for n < len(b) {
		k := min(len(b)-n, ringStep)
		if k = min(k, w.room(k)); k == 0 {
			break
		}
		at := int(w.pos) & (len(w.data) - 1)
		if c := copy(w.data[at:], b[n:n+k]); c < k {
			copy(w.data, b[n+c:n+k])
		}
		w.pos += uint64(k)
		if n += k; n < len(b) {
			w.publish()
		}
	}
	return n
}

// publish makes the written bytes visible to the reader.
func (w *ringWriter) publish() {
	w.order.Add(1)
	w.ctl.tail.Store(w.pos)
}

// ringReader is the reading end of a ring buffer.
type ringReader struct {
	ctl  *ringControl
	data []byte
	sent *atomic.Uint64 // order of the ringWriter of the other direction
	pos  atomic.Uint64  // total bytes read
}

// ready reports whether there is something to read.
func (r *ringReader) ready() bool { return r.ctl.tail.Load() != r.pos.Load() }

// next returns bytes to read, in place; none if there are none. fresh says that a message begins,
// so padding is skipped first. It fails if the position of the writer is impossible.
func (r *ringReader) next(fresh bool) ([]byte, error) {
	pos := r.pos.Load()
	n := r.ctl.tail.Load() - pos
	if n == 0 {
		return nil, nil
	}
	r.sent.Load() // after tail: what these bytes may answer happens before
	if n > uint64(len(r.data)) {
		return nil, fmt.Errorf("%w: %d bytes in shared memory for %d", mpierr.ErrProtocol, n, len(r.data))
	}
	if pad := uint64(padding(pos)); fresh && pad > 0 {
		if n <= pad {
			return nil, fmt.Errorf("%w: %d bytes in shared memory before a message", mpierr.ErrProtocol, n)
		}
		pos += pad
		n -= pad
		r.pos.Store(pos) // skip publishes it to the writer
	}
	at := int(pos) & (len(r.data) - 1)
	return r.data[at:min(at+min(int(n), ringStep), len(r.data))], nil
}

// skip returns the room of the next n bytes to the writer.
func (r *ringReader) skip(n int) {
	pos := r.pos.Load() + uint64(n)
	r.pos.Store(pos)
	r.ctl.head.Store(pos)
}

// half reports whether at least half of the ring is free.
func (r *ringReader) half() bool {
	return r.ctl.tail.Load()-r.pos.Load() <= uint64(len(r.data)/2)
}
