package mpi

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

// tcpLink carries messages over one TCP connection, all streams in one byte stream. A sender writes
// to the socket itself as long as the socket takes everything; a goroutine writes the rest.
type tcpLink struct {
	conn *net.TCPConn
	raw  syscall.RawConn
	peer *p2p.Peer

	mu      sync.Mutex
	batch   tcpBatch // messages that are written next
	spare   tcpBatch
	queued  int  // bytes in batch
	writing bool // a goroutine is writing
	closed  bool
	why     error      // the reason of the first kill
	idle    *sync.Cond // signalled when writing ends

	rmu  sync.Mutex // guards receiving, by the reader or a polling goroutine
	rbuf []byte
	rerr error         // why receiving has ended
	done chan struct{} // closed when the reader has ended

	direct tcpDirect
}

// tcpBatch is a sequence of messages for one writev.
type tcpBatch struct {
	bufs   [][]byte
	owners []transport.Owner
	arena  []byte // copied bytes
	last   bool   // the last of bufs is the end of arena: a copied message extends it
}

const (
	// tcpCopy is the length up to which bodies are copied behind their envelope, in bytes.
	tcpCopy = 32 << 10
	// tcpQueue bounds the copied bytes that wait to be written.
	tcpQueue = 1 << 20
	// tcpRead is the size of the receive buffer, in bytes.
	tcpRead = 128 << 10
)

func newTCPLink(conn *net.TCPConn, p *p2p.Peer) (*tcpLink, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	l := &tcpLink{conn: conn, raw: raw, peer: p, rbuf: make([]byte, tcpRead), done: make(chan struct{})}
	l.idle = sync.NewCond(&l.mu)
	l.direct.init(l)
	return l, nil
}

func (l *tcpLink) CopyLimit(bool) int { return tcpCopy }

// Send implements Link.
func (l *tcpLink) Send(_ uint16, hdr, body []byte, own transport.Owner) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return transport.ErrClosed
	}
	if own == nil && len(body) > 0 && l.queued > tcpQueue {
		return transport.ErrFull
	}
	l.queued += len(hdr) + len(body)
	l.batch.copy(hdr)
	if own == nil {
		l.batch.copy(body)
		return nil
	}
	if len(body) > 0 {
		l.batch.bufs = append(l.batch.bufs, body)
		l.batch.last = false
	}
	l.batch.owners = append(l.batch.owners, own)
	return nil
}

// copy appends a copy of b.
func (t *tcpBatch) copy(b []byte) {
	if len(b) == 0 {
		return
	}
	at := len(t.arena)
	moved := at+len(b) > cap(t.arena)
	t.arena = append(t.arena, b...) // bufs still reference the old array if it moves
	if t.last && !moved {
		i := len(t.bufs) - 1
		t.bufs[i] = t.bufs[i][:len(t.bufs[i])+len(b)]
	} else {
		t.bufs = append(t.bufs, t.arena[at:])
		t.last = true
	}
}

// written removes the first n bytes.
func (t *tcpBatch) written(n int) {
	for n > 0 && n >= len(t.bufs[0]) {
		n -= len(t.bufs[0])
		t.bufs[0] = nil
		t.bufs = t.bufs[1:]
	}
	if n > 0 {
		t.bufs[0] = t.bufs[0][n:]
	}
}

// Flush implements Link.
func (l *tcpLink) Flush() {
	l.mu.Lock()
	if l.writing || len(l.batch.bufs) == 0 {
		l.mu.Unlock()
		return
	}
	l.writing = true
	l.write(true)
}

// write writes batches until none is left. If direct is set, it stops when the socket takes no
// more, and leaves the rest to a goroutine. It is called with mu held and writing set, and unlocks
// mu.
func (l *tcpLink) write(direct bool) {
	for len(l.batch.bufs) > 0 {
		b := l.batch
		l.batch = l.spare
		l.spare = tcpBatch{}
		l.queued = 0
		l.mu.Unlock()
		all := b.bufs
		var err error
		if direct {
			var n int
			if n, err = l.tryWrite(b.bufs); err == nil {
				b.written(n)
				if len(b.bufs) > 0 {
					go l.rest(b)
					return
				}
			}
		} else {
			err = l.writeAll(&b)
		}
		l.wrote(all, b.owners, b.arena, err)
	}
	l.writing = false
	l.idle.Broadcast()
	l.mu.Unlock()
}

// wrote releases the owners of a batch and keeps its memory. It locks mu.
func (l *tcpLink) wrote(bufs [][]byte, owners []transport.Owner, arena []byte, err error) {
	for i, o := range owners {
		o.Released(err)
		owners[i] = nil
	}
	if err != nil {
		l.kill(err)
	}
	clear(bufs)
	if cap(arena) > tcpQueue {
		arena = nil
	}
	l.mu.Lock()
	l.spare = tcpBatch{bufs: bufs[:0], owners: owners[:0], arena: arena[:0]}
}

// rest writes the rest of b, and everything queued since.
func (l *tcpLink) rest(b tcpBatch) {
	err := l.writeAll(&b)
	l.wrote(nil, b.owners, b.arena, err)
	l.write(false)
}

func (l *tcpLink) writeAll(b *tcpBatch) error {
	bufs := net.Buffers(b.bufs)
	_, err := bufs.WriteTo(l.conn)
	return err
}

// read receives until the connection ends.
func (l *tcpLink) read() {
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
	_ = l.conn.Close()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	l.peer.Down(err)
}

// kill makes the reader end the link. Unlike closing the connection it does not wait for other
// goroutines, so an upcall may call it.
func (l *tcpLink) kill(err error) {
	l.mu.Lock()
	if l.why == nil {
		l.why = err
	}
	l.mu.Unlock()
	_ = l.conn.SetDeadline(ctxconn.Past)
}

// parse gives received bytes to the message parser. rmu is held.
func (l *tcpLink) parse(b []byte) error {
	f := &l.peer.Parsers[0]
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
func (l *tcpLink) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { l.kill(ctx.Err()) })
	defer stop()
	l.mu.Lock()
	l.closed = true
	for l.writing {
		l.idle.Wait()
	}
	l.mu.Unlock()
	_ = l.conn.CloseWrite() // fails if the peer was faster
	<-l.done                // the peer closes when it has done the same
	return ctx.Err()
}

// Abort implements Link.
func (l *tcpLink) Abort(string) {
	_ = l.conn.SetLinger(0)
	l.kill(transport.ErrClosed)
}
