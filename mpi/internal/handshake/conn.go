package handshake

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/weftstack/weft/internal/accept"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

const (
	// Timeout bounds the handshake of one connection.
	Timeout = 30 * time.Second
	// MaxUnproven bounds the connections that are not authenticated yet. One more closes the oldest.
	MaxUnproven = 256
)

// Server accepts connections and gives each a bounded time for its handshake.
var Server = accept.Server{MaxUnproven: MaxUnproven, ProofTimeout: Timeout}

// Run runs the exchange on conn, and takes its deadline away then. It blocks until the exchange is complete or fails.
// The connector gives its hello as first, the acceptor nil.
func Run(conn net.Conn, h *Exchange, first []byte) error {
	if first != nil {
		if _, err := conn.Write(Frame(first)); err != nil {
			return err
		}
	}
	var buf [envelope.MinLen + maxMessage]byte
	for !h.Sending() {
		if _, err := io.ReadFull(conn, buf[:envelope.MinLen]); err != nil {
			return errors.Join(mpierr.ErrAuth, err)
		}
		var v envelope.Header
		if !v.Decode(buf[:envelope.MinLen]) || v.Kind != envelope.Handshake || v.Length > maxMessage {
			return fmt.Errorf("%w: not a handshake message", mpierr.ErrAuth)
		}
		msg := buf[envelope.MinLen:][:v.Length]
		if _, err := io.ReadFull(conn, msg); err != nil {
			return errors.Join(mpierr.ErrAuth, err)
		}
		reply, err := h.Step(msg)
		if err != nil {
			return err
		}
		if reply != nil {
			if _, err := conn.Write(Frame(reply)); err != nil {
				return err
			}
		}
	}
	return conn.SetDeadline(time.Time{})
}
