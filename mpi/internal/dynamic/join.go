package dynamic

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"

	"github.com/weftstack/weft/mpi/internal/ctxconn"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// joinMagic begins the messages that the processes exchange.
const joinMagic = "weft join 1\n"

// joinNonce is the length of the random bytes that follow it.
const joinNonce = 16

// Join agrees with the process at the other end of conn on which of them accepts the other. Both
// have to be ready to accept before they call it.
func Join(ctx context.Context, conn net.Conn) (accepts bool, err error) {
	own := append([]byte(joinMagic), make([]byte, joinNonce)...)
	_, _ = rand.Read(own[len(joinMagic):]) // never fails
	other := make([]byte, len(own))
	err = ctxconn.Exchange(ctx, conn, own, func() error {
		_, err := io.ReadFull(conn, other)
		return err
	})
	if err == nil && !bytes.HasPrefix(other, []byte(joinMagic)) {
		err = fmt.Errorf("%w: the other end does not join", mpierr.ErrProtocol)
	}
	if err == nil && bytes.Equal(own, other) {
		err = fmt.Errorf("%w: both ends of the connection are the same", mpierr.ErrRank)
	}
	// The one with the greater number connects.
	return bytes.Compare(own, other) < 0, err
}
