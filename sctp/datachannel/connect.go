package datachannel

import (
	"context"
	"net"

	"github.com/weftstack/weft/sctp"
)

// Connect opens a session over conn, a connection that keeps the boundaries of messages: DTLS (RFC
// 8261). Both sides call it, each with its own role in the DTLS handshake, and may do so at the same
// time. conn and cc, which may be nil, are as in [sctp.Client]; cc.Config is the base of cfg.SCTP. Over
// DTLS, set its ZeroChecksum.
//
// It blocks until the association is established, the attempt fails or ctx is done. Errors are those of
// Config.SCTP and sctp.Client. The session owns conn, which is closed in any case at the end.
func Connect(ctx context.Context, conn net.Conn, cfg Config, cc *sctp.ConnConfig) (*Session, error) {
	var c sctp.ConnConfig
	if cc != nil {
		c = *cc
	}
	var err error
	if c.Config, err = cfg.SCTP(c.Config); err != nil {
		conn.Close()
		return nil, err
	}
	a, err := sctp.Client(ctx, conn, &c)
	if err != nil {
		return nil, err
	}
	return From(a), nil
}
