package sctp

import (
	"context"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// SendBuffers is [Association.Send] of a message that is in several buffers: opts.Header, and then
// the bytes of bufs one after another (gather send: RFC 6458, Section 9.12, sctp_sendv with several
// buffers). Buffers may be empty. With opts.Owner the bytes and the table bufs itself belong to the
// association until Released is called: the bytes go into packets from where they are. Without an
// Owner they are copied before it returns, as many as wait for room included.
//
// It blocks as Send does, and returns its errors: [ErrEmpty] if there is no byte in all buffers and
// opts.Header.
func (a *Association) SendBuffers(ctx context.Context, bufs [][]byte, opts SendOptions) error {
	err := a.sendBuffers(ctx.Done(), bufs, &opts)
	if err == errStopped {
		return ctx.Err()
	}
	return err
}

// TrySendBuffers is [Association.SendBuffers] that never blocks and makes no upcalls: it returns
// [ErrWouldBlock] when the send buffer is full and opts.Force is not set.
func (a *Association) TrySendBuffers(bufs [][]byte, opts SendOptions) error {
	return a.sendBuffers(stopped, bufs, &opts)
}

// sendBuffers is send for a message in several buffers.
func (a *Association) sendBuffers(stop <-chan struct{}, bufs [][]byte, opts *SendOptions) error {
	a.prefetchForSend()
	var m tx.Message
	var own *bufpool.Buffer
	newMessage(&m, nil, opts)
	if m.SetRuns(bufs); m.Owner == nil {
		own = joinRuns(&m, bufs)
	}
	return a.push(stop, nil, &m, own, opts.More)
}

// joinRuns makes a copy of bufs the body of m, and returns the pooled memory that holds it; nil
// if bufs are empty.
func joinRuns(m *tx.Message, bufs [][]byte) *bufpool.Buffer {
	n := m.Len() - len(m.Header)
	m.SetRuns(nil)
	if n == 0 {
		return nil
	}
	own := bufpool.Get(n)
	body := own.Bytes(n)
	m.Body, m.Owner = body, own
	for _, b := range bufs {
		body = body[copy(body, b):]
	}
	return own
}
