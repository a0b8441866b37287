package sctp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
)

// errComplete stands for the end of a connection when nothing is missing but the peer's SHUTDOWN
// COMPLETE: everything is acknowledged, and the peer, which asked for the shutdown, closes its end of the
// connection once it has got the SHUTDOWN ACK.
var errComplete = errors.New("sctp: complete")

// lostError is the end of a connection under a transport.
type lostError struct {
	local netip.AddrPort
	err   error
}

func (e *lostError) Error() string {
	if !e.local.IsValid() {
		return fmt.Sprintf("sctp: the connection under the association ended: %v", e.err)
	}
	return fmt.Sprintf("sctp: the connection under the transport (%v) ended: %v", e.local, e.err)
}

// Unwrap does not return io.EOF, which would be the graceful end of an association.
func (e *lostError) Unwrap() error {
	if errors.Is(e.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return e.err
}

// lose takes a socket out of use after its connection has ended with err. The transport ends
// with its last socket.
func (t *Transport) lose(s *socket, err error) {
	lost := &lostError{t.shown(s.conn.LocalAddr()), err}
	if log := t.cfg.Log; log != nil {
		log.LogAttrs(context.Background(), slog.LevelWarn, "sctp: connection ended",
			slog.String("local", lost.local.String()), slog.String("error", err.Error()))
	}
	t.setMu.Lock()
	set := t.sockets()
	i := slices.Index(set.list, s)
	if i >= 0 && len(set.list) > 1 {
		t.set.Store(newSocketSet(slices.Delete(slices.Clone(set.list), i, i+1)))
		t.relisten()
		s.conn.Close()
		i = -1
	}
	t.setMu.Unlock()
	if i >= 0 {
		t.lost.CompareAndSwap(nil, lost)
		go t.end() // not here: it waits for this goroutine
	}
}

// lostCause returns why the transport came to its end by itself, nil if it did not.
func (t *Transport) lostCause() error {
	if l := t.lost.Load(); l != nil {
		return l
	}
	return nil
}

// closedError returns what calls on a closed endpoint return.
func (t *Transport) closedError() error {
	if l := t.lost.Load(); l != nil {
		return l
	}
	return ErrClosed
}
