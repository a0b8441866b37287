package cbinding

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A BsendBuffer is a buffer that the program has attached for buffered sends (MPI-4.1, Section 3.6). The
// library copies messages to memory of its own, never to the program's, but no more than fits: a message takes its
// length and MPI_BSEND_OVERHEAD until it has left.
type BsendBuffer struct {
	Address uintptr // as given; MPI_BUFFER_AUTOMATIC: without a bound
	Size    int

	mu      sync.Mutex // guards what follows
	used    int
	pending []*bufferedSend
}

// A bufferedSend is a message in a buffer.
type bufferedSend struct {
	size int

	// Held by the goroutine that waits for the message; guards what follows. Taken before that of the buffer.
	mu sync.Mutex
	r  *mpi.Request // nil once the message has left
}

// ProcessBuffer is that of MPI_Buffer_attach.
var ProcessBuffer atomic.Pointer[BsendBuffer]

func init() { AtFinalize(func() { _, _ = Detach(&ProcessBuffer) }) }

// Buffer returns the buffer that sends on c use: its own, or that of its session, or of the process (MPI-4.1,
// Section 3.6).
func (c *Communicator) Buffer() *BsendBuffer {
	if b := c.BsendBuffer.Load(); b != nil {
		return b
	}
	if s := c.Session; s != nil {
		if b := s.BsendBuffer.Load(); b != nil {
			return b
		}
	}
	return ProcessBuffer.Load()
}

// Send copies a message and starts to send it on c.
func (b *BsendBuffer) Send(c *Communicator, data mpi.Buffer, rank, tag int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	need := data.Len() + abi.BsendOverhead
	if b.Address != abi.BufferAutomatic {
		if b.used+need > b.Size {
			b.sweep()
		}
		if b.used+need > b.Size {
			return &CallError{Class: abi.ErrBuffer, Text: fmt.Sprintf("a message of %d bytes and MPI_BSEND_OVERHEAD, %d, do not fit: "+
				"%d of the %d bytes attached are free", data.Len(), abi.BsendOverhead, b.Size-b.used, b.Size)}
		}
	} else if len(b.pending) >= sweepEvery {
		b.sweep()
	}
	r, err := c.Ibsend(data, rank, tag)
	if err != nil {
		return err
	}
	if _, done, _ := r.Test(); done {
		r.Free() // it has left already: a failure of the peer is not reported
		return nil
	}
	b.pending = append(b.pending, &bufferedSend{r: r, size: need})
	b.used += need
	return nil
}

// sweepEvery is how many sends of an automatic buffer are pending before it looks which have left.
const sweepEvery = 64

// sweep forgets the messages that have left, but for the one that each flush waits for. mu is held.
func (b *BsendBuffer) sweep() {
	b.pending = slices.DeleteFunc(b.pending, func(p *bufferedSend) bool {
		if !p.mu.TryLock() {
			return false
		}
		defer p.mu.Unlock()
		if p.r == nil {
			return true // a flush has found that
		}
		if _, done, _ := p.r.Test(); !done {
			return false
		}
		b.gone(p)
		return true
	})
}

// gone gives back the space of a message that has left. Both mutexes are held.
func (b *BsendBuffer) gone(p *bufferedSend) {
	p.r.Free() // a failure of the peer is not reported
	p.r = nil
	b.used -= p.size
}

// Messages returns the messages that are in the buffer now.
func (b *BsendBuffer) Messages() []*bufferedSend {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep()
	return slices.Clone(b.pending)
}

// Flush waits until all messages that are in the buffer now have left. Later ones may be sent meanwhile.
func (b *BsendBuffer) Flush() { b.Await(b.Messages()) }

// Await waits until messages of the buffer have left (MPI-4.1, Section 3.6.1).
func (b *BsendBuffer) Await(messages []*bufferedSend) {
	for _, p := range messages {
		b.await(p)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep()
}

func (b *BsendBuffer) await(p *bufferedSend) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.r == nil {
		return
	}
	_, _ = p.r.Wait(Background)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone(p)
}

// Attach makes b the buffer of an object or of the process.
func Attach(to *atomic.Pointer[BsendBuffer], address uintptr, size int) error {
	if address == abi.BufferAutomatic {
		size = 0 // "is irrelevant"
	}
	switch {
	case size < 0:
		return ArgError(abi.ErrArg, "size", size, "is negative")
	case address == 0 && size > 0:
		return ArgError(abi.ErrBuffer, "buffer", "NULL", "is needed")
	case !to.CompareAndSwap(nil, &BsendBuffer{Address: address, Size: size}):
		return &CallError{Class: abi.ErrBuffer, Text: "a buffer is attached already"}
	}
	return nil
}

// Detach waits until the messages in a buffer have left, and takes it away.
func Detach(from *atomic.Pointer[BsendBuffer]) (*BsendBuffer, error) {
	b := from.Load()
	if b == nil {
		return nil, ErrNoBuffer
	}
	b.Flush()
	from.CompareAndSwap(b, nil)
	return b, nil
}

// ErrNoBuffer is the error of calls that need an attached buffer.
var ErrNoBuffer = &CallError{Class: abi.ErrBuffer, Text: "no buffer is attached"}

// DropBuffer detaches the buffer of a communicator or session that is freed, if there is one.
func (o *Object) DropBuffer() { _, _ = Detach(&o.BsendBuffer) }
