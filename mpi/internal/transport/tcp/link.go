package tcp

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"github.com/weftstack/weft/mpi/internal/ctxconn"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// Link carries messages over one TCP connection, all streams in one byte stream. A sender writes
// to the socket itself as long as the socket takes everything; a goroutine writes the rest.
type Link struct {
	Conn *net.TCPConn // to be closed only by its owner
	raw  syscall.RawConn
	Peer *p2p.Peer // at the other end

	mu      sync.Mutex
	batch   batch // messages that are written next
	spare   batch
	current batch // is being written; owned by the goroutine that has set writing
	queued  int   // bytes in batch
	writing bool  // a goroutine is writing
	closed  bool
	why     error      // the reason of the first kill
	idle    *sync.Cond // signalled when writing ends

	rmu  sync.Mutex // guards receiving, by the reader or a polling goroutine
	rbuf []byte
	rerr error         // why receiving has ended
	done chan struct{} // closed when the reader has ended

	writeRest func() // rest: a method value is made once, not with each goroutine
	direct    direct
}

const (
	// copyLimit is the length up to which bodies are copied behind their envelope, in bytes.
	copyLimit = 32 << 10
	// minRun is the mean length of runs from which writev takes less time than a copy, in bytes.
	minRun = 256
	// maxRuns bounds the runs of memory of one system call.
	maxRuns = 256
	// queueLimit bounds the copied bytes that wait to be written.
	queueLimit = 1 << 20
	// readBuffer is the size of the receive buffer, in bytes.
	readBuffer = 128 << 10
)

// NewLink returns the link to p over conn. It receives from when Read is called.
func NewLink(conn *net.TCPConn, p *p2p.Peer) (*Link, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	l := &Link{Conn: conn, raw: raw, Peer: p, rbuf: make([]byte, readBuffer), done: make(chan struct{})}
	l.idle = sync.NewCond(&l.mu)
	l.writeRest = l.rest
	l.direct.init(l)
	return l, nil
}

func (l *Link) CopyLimit(bool) int { return copyLimit }

// Send implements Link.
func (l *Link) Send(_ uint16, hdr, body []byte, own transport.Owner) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return transport.ErrClosed
	}
	if own == nil && len(body) > 0 && l.queued > queueLimit {
		return transport.ErrFull
	}
	l.queued += len(hdr) + len(body)
	l.batch.copy(hdr)
	if own == nil {
		l.batch.copy(body)
		return nil
	}
	if len(body) > 0 {
		l.batch.reference(part{buf: body})
	}
	l.batch.owners = append(l.batch.owners, own)
	return nil
}

// SendRuns implements RunsLink.
func (l *Link) SendRuns(_ uint16, hdr []byte, runs [][]byte, own transport.Owner) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return transport.ErrClosed
	}
	l.queued += len(hdr)
	l.batch.copy(hdr)
	l.batch.reference(part{runs: runs})
	l.batch.owners = append(l.batch.owners, own)
	return nil
}

// MinRun implements RunsLink.
func (l *Link) MinRun() int { return minRun }

// Flush implements Link.
func (l *Link) Flush() {
	l.mu.Lock()
	if l.writing || l.batch.empty() {
		l.mu.Unlock()
		return
	}
	l.writing = true
	l.write(false)
}

// write writes batches until none is left. If waits is false, it stops when the socket takes no more, and leaves the
// rest to a goroutine. It is called with mu held and writing set, and unlocks mu.
func (l *Link) write(waits bool) {
	for !l.batch.empty() {
		l.current, l.batch, l.spare = l.batch, l.spare, batch{}
		l.queued = 0
		l.mu.Unlock()
		err := l.writeCurrent(waits)
		if err == nil && !l.current.empty() {
			go l.writeRest()
			return
		}
		l.wrote(err)
	}
	l.writing = false
	l.idle.Broadcast()
	l.mu.Unlock()
}

// wrote releases the owners of the current batch and keeps its memory. It locks mu.
func (l *Link) wrote(err error) {
	b := &l.current
	for _, o := range b.owners {
		o.Released(err)
	}
	if err != nil {
		l.kill(err)
	}
	l.mu.Lock()
	l.spare = b.emptied()
}

// rest writes the rest of the current batch, and everything queued since.
func (l *Link) rest() {
	l.wrote(l.writeCurrent(true))
	l.write(true)
}

// Read receives until the connection ends.
func (l *Link) Read() {
	defer close(l.done)
	err := l.readLoop()
	l.rmu.Lock()
	if l.rerr == nil {
		l.rerr = err
	}
	err = l.rerr
	l.rmu.Unlock()
	l.mu.Lock()
	l.closed = true
	if l.why != nil {
		err = l.why
	}
	l.mu.Unlock()
	_ = l.Conn.Close()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	l.Peer.Down(err)
}

// kill makes the reader end the link. Unlike closing the connection it does not wait for other
// goroutines, so an upcall may call it.
func (l *Link) kill(err error) {
	l.mu.Lock()
	if l.why == nil {
		l.why = err
	}
	l.mu.Unlock()
	_ = l.Conn.SetDeadline(ctxconn.Past)
}

// parse gives received bytes to the message parser. rmu is held.
func (l *Link) parse(b []byte) error {
	f := &l.Peer.Parsers[0]
	for len(b) > 0 {
		n, err := f.Parse(b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// Shutdown implements Link.
func (l *Link) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { l.kill(ctx.Err()) })
	defer stop()
	l.mu.Lock()
	l.closed = true
	for l.writing {
		l.idle.Wait()
	}
	l.mu.Unlock()
	_ = l.Conn.CloseWrite() // fails if the peer was faster
	<-l.done                // the peer closes when it has done the same
	return ctx.Err()
}

// Abort implements Link.
func (l *Link) Abort(string) {
	_ = l.Conn.SetLinger(0)
	l.kill(transport.ErrClosed)
}
