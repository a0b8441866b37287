package launch

import (
	"context"
	"crypto/rand"
	"net"
	"os/exec"
	"strconv"

	"github.com/weftstack/weft/internal/pmi"
)

// link gives each rank its connection to the launcher: a loopback TCP port and
// a token, because sockets are not inherited here.
type link struct {
	addr, token string
	listener    net.Listener
}

func (l *link) open(ctx context.Context, s *pmi.Server, _ int) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	l.listener, l.addr, l.token = listener, listener.Addr().String(), rand.Text()
	go s.ServeListener(ctx, listener, l.token)
	return nil
}

func (l *link) close() { l.listener.Close() }

// attach prepares cmd. The returned function must be called after the start,
// with its outcome.
func (l *link) attach(cmd *exec.Cmd, rank int) (func(ctx context.Context, started bool), error) {
	cmd.Env = append(cmd.Env, pmi.EnvFD+"=", pmi.EnvPort+"="+l.addr, pmi.EnvID+"="+strconv.Itoa(rank),
		pmi.EnvToken+"="+l.token)
	return func(context.Context, bool) {}, nil
}
