package udpio

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/sctp/internal/slab"
)

// ConnLocal and ConnRemote stand for the two ends of a connection, which has no addresses that
// SCTP could know. They are of the prefix whose packets go nowhere (RFC 6666).
var (
	ConnLocal  = netip.AddrPortFrom(netip.MustParseAddr("100::1"), 1)
	ConnRemote = netip.AddrPortFrom(netip.MustParseAddr("100::2"), 1)
)

const (
	// maxWaiting is how many bytes may wait for the connection before it counts as full,
	// 64 KiB. The batches that pass the limit, and what is being written, come on top.
	maxWaiting = 64 << 10
	// maxDeferred is how many receives, of at most 2 packets each, one flush answers at most, 16.
	// A sender is to hear of every second packet (RFC 9260, Section 6.2, a SHOULD), or of all
	// that has come if it waited in the connection; many more in one SACK make it send in bursts.
	maxDeferred = 16
	// drainWait is how long Close waits for what was written before, 200 ms.
	drainWait = 200 * time.Millisecond
)

// messageBatchConn is what a connection may have to carry several messages in one call.
type messageBatchConn interface {
	ReadBatch(buffers [][]byte, sizes []int) (n int, err error)
	WriteBatch(messages [][]byte) error
}

// MessageConn is a Connection on any net.Conn that keeps the boundaries of messages, such as
// DTLS. Write never blocks: a goroutine of the MessageConn writes to the connection.
type MessageConn struct {
	conn  net.Conn
	batch messageBatchConn // nil if conn does not have it
	flush func()           // see Connection
	wrote func(error)      // called after each write

	// Owned by the goroutine in Read, with batch.
	views [][]byte
	sizes []int

	drops atomic.Uint64 // messages read that are empty or too long, and packets that nobody asked Full for

	mu      sync.Mutex
	more    sync.Cond
	waiting *messageQueue // nil if nothing waits
	full    bool          // Full has returned true
	closing bool
	done    chan struct{} // closed when the writer has ended

	wanted   bool // DeferFlush has asked for a flush
	deferred int  // calls of DeferFlush since the last flush
}

// messageQueue is packets that wait for the connection, one after the other.
type messageQueue struct {
	mem   []byte
	ends  []int
	views [][]byte // for WriteBatch
}

var messageQueues = sync.Pool{New: func() any { return new(messageQueue) }}

// NewMessageConn returns a Conn on conn, which it owns from then on. Start must follow.
func NewMessageConn(conn net.Conn) *MessageConn {
	c := &MessageConn{conn: conn, done: make(chan struct{})}
	c.more.L = &c.mu
	if c.batch, _ = conn.(messageBatchConn); c.batch != nil {
		c.views, c.sizes = make([][]byte, MaxMessages), make([]int, MaxMessages)
	}
	return c
}

// Start implements Connection.
func (c *MessageConn) Start(flush func(), wrote func(error)) {
	c.flush, c.wrote = flush, wrote
	go c.writeLoop()
}

// Batches implements Connection.
func (c *MessageConn) Batches() int {
	if c.batch != nil {
		return MaxMessages
	}
	return 1
}

// Read implements Conn.
func (c *MessageConn) Read(mu sync.Locker, bufs []*slab.Buf, metas []Meta) (int, error) {
	for {
		n, err := c.read(bufs)
		if errors.Is(err, io.ErrShortBuffer) {
			c.drops.Add(1)
			continue
		}
		if err != nil {
			return 0, err
		}
		kept := 0
		for i := range n {
			b := bufs[i]
			if len(b.B) == 0 {
				c.drops.Add(1)
				continue
			}
			bufs[kept], bufs[i] = b, bufs[kept]
			metas[kept] = Meta{SegSize: len(b.B), Local: ConnLocal.Addr(), Remote: ConnRemote}
			kept++
		}
		if kept > 0 {
			mu.Lock()
			return kept, nil
		}
	}
}

func (c *MessageConn) read(bufs []*slab.Buf) (n int, err error) {
	if c.batch == nil {
		b := bufs[0]
		n, err = c.conn.Read(b.B[:slab.Size])
		b.B = b.B[:max(n, 0)]
		return 1, err
	}
	for i, b := range bufs {
		c.views[i] = b.B[:slab.Size]
	}
	n, err = c.batch.ReadBatch(c.views[:len(bufs)], c.sizes)
	for i := range n {
		bufs[i].B = bufs[i].B[:c.sizes[i]]
	}
	return n, err
}

// Write implements Conn. It copies the packets of the batch b and does not block: the caller
// asks Full before. Answers to packets of no association come without, and are dropped if too
// much waits.
func (c *MessageConn) Write(b []byte, m *Meta) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return ErrClosed
	}
	q := c.waiting
	if q == nil {
		q = messageQueues.Get().(*messageQueue)
		c.waiting = q
		c.more.Signal()
	}
	at := len(q.mem)
	if at >= maxWaiting+MaxBatchBytes {
		c.drops.Add(1)
		return nil
	}
	q.mem = append(q.mem, b...)
	for n := m.SegSize; n > 0 && at+n < len(q.mem); {
		at += n
		q.ends = append(q.ends, at)
	}
	q.ends = append(q.ends, len(q.mem))
	return nil
}

// Full implements Connection.
func (c *MessageConn) Full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full = c.waiting != nil && len(c.waiting.mem) >= maxWaiting
	return c.full
}

// DeferFlush implements Connection. Over DTLS, which passes one message at a time from goroutine to
// goroutine, each SACK would cost half of what a packet of data does, and be late already when it is
// written, because more has come.
func (c *MessageConn) DeferFlush() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	if c.deferred++; c.deferred > maxDeferred {
		c.deferred = 0
		return false
	}
	if !c.wanted {
		c.wanted = true
		c.more.Signal()
	}
	return true
}

// writeLoop writes what waits, until Close.
func (c *MessageConn) writeLoop() {
	defer close(c.done)
	for {
		c.mu.Lock()
		for c.waiting == nil && !c.wanted && !c.closing {
			c.more.Wait()
		}
		if c.wanted && !c.closing {
			c.mu.Unlock()
			runtime.Gosched() // to those that read
			c.mu.Lock()
			c.wanted, c.deferred = false, 0
			c.mu.Unlock()
			c.flush()
			c.mu.Lock()
		}
		q, full, over := c.waiting, c.full, c.closing
		c.waiting, c.full = nil, false
		c.mu.Unlock()
		if q == nil {
			if over {
				return
			}
			continue
		}
		if full {
			c.flush()
		}
		c.write(q)
		q.mem, q.ends = q.mem[:0], q.ends[:0]
		messageQueues.Put(q)
	}
}

func (c *MessageConn) write(q *messageQueue) {
	if c.batch != nil {
		at := 0
		for _, end := range q.ends {
			q.views = append(q.views, q.mem[at:end])
			at = end
		}
		c.wrote(c.batch.WriteBatch(q.views))
		clear(q.views)
		q.views = q.views[:0]
		return
	}
	at := 0
	for _, end := range q.ends {
		_, err := c.conn.Write(q.mem[at:end])
		c.wrote(err)
		at = end
	}
}

// Close implements Conn. It gives the connection a moment for what was written before.
func (c *MessageConn) Close() error {
	c.mu.Lock()
	again := c.closing
	c.closing = true
	c.more.Signal()
	c.mu.Unlock()
	if again {
		return ErrClosed
	}
	t := time.NewTimer(drainWait)
	defer t.Stop()
	select {
	case <-c.done:
	case <-t.C:
	}
	return c.conn.Close()
}

// TryRead implements Conn.
func (c *MessageConn) TryRead([]*slab.Buf, []Meta) (int, error) { return 0, nil }

// Poll implements Conn.
func (c *MessageConn) Poll([]*slab.Buf, []Meta) (int, error) { return 0, nil }

// CanPoll implements Conn.
func (c *MessageConn) CanPoll() bool { return false }

// Polled implements Conn.
func (c *MessageConn) Polled(bool) bool { return true }

// Unwatch implements Conn.
func (c *MessageConn) Unwatch() {}

// WriteGather implements Conn.
func (c *MessageConn) WriteGather(b []byte, holes []slab.IOVec, m *Meta) error {
	slab.Fill(b, holes)
	return c.Write(b, m)
}

// Segments implements Conn.
func (c *MessageConn) Segments() int { return MaxSegments }

// Direct implements Conn.
func (c *MessageConn) Direct() bool { return false }

// LocalAddr implements Conn.
func (c *MessageConn) LocalAddr() netip.AddrPort { return ConnLocal }

// Info implements Conn.
func (c *MessageConn) Info() Info { return Info{Drops: c.drops.Load()} }
