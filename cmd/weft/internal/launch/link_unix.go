//go:build unix

package launch

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/weftstack/weft/internal/pmi"
	"golang.org/x/sys/unix"
)

// link gives each rank its connection to the launcher: one end of a socket pair,
// inherited as the first descriptor after the standard three.
type link struct {
	server *pmi.Server
	n      int
}

func (l *link) open(_ context.Context, s *pmi.Server, n int) error {
	l.server, l.n = s, n
	return nil
}

func (l *link) close() {}

// attach prepares cmd. The returned function must be called after the start,
// with its outcome.
func (l *link) attach(cmd *exec.Cmd, rank int) (func(ctx context.Context, started bool), error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
		err = unix.SetNonblock(fds[0], true)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "pmi"), os.NewFile(uintptr(fds[1]), "pmi-rank")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Env = append(cmd.Env, pmi.EnvFD+"=3", pmi.EnvRank+"="+strconv.Itoa(rank), pmi.EnvSize+"="+strconv.Itoa(l.n))
	return func(ctx context.Context, started bool) {
		theirs.Close()
		if !started {
			ours.Close()
			return
		}
		// How a rank ends is judged by its process, not by this connection.
		go l.server.Serve(ctx, rank, ours)
	}, nil
}
