package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// lockedBuffer is a buffer for loggers of several ranks.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// logger returns a logger of everything, without times, and what it has written.
func logger() (*slog.Logger, *lockedBuffer) {
	out := new(lockedBuffer)
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})), out
}

// wantRecords fails unless each pattern matches a line.
func wantRecords(t *testing.T, log string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)^" + p + "$").MatchString(log) {
			t.Errorf("no record like %s in\n%s", p, log)
		}
	}
}

// A job that ends well logs its begin and end, and nothing that an operator has to look at.
func TestLogOfQuietJob(t *testing.T) {
	for _, tr := range []string{TransportInproc, TransportTCP, TransportHybrid} {
		t.Run("transport="+tr, func(t *testing.T) {
			l, out := logger()
			err := RunLocal(t.Context(), 3, func(ctx context.Context, w *World) error {
				return Barrier(ctx, w.Comm())
			}, WithTransport(tr), WithLog(l))
			if err != nil {
				t.Fatal(err)
			}
			log := out.String()
			for rank := range 3 {
				wantRecords(t, log,
					fmt.Sprintf(`level=INFO msg="mpi: links are up" rank=%d transport=%s ranks=3 shared_memory=0`, rank, tr),
					fmt.Sprintf(`level=INFO msg="mpi: finalized" rank=%d`, rank))
			}
			if strings.Contains(log, "level=WARN msg=\"mpi:") || strings.Contains(log, "level=ERROR") {
				t.Errorf("a quiet job logs\n%s", log)
			}
		})
	}
}

// A rank that fails, and what the others do about it, is logged with the reason.
func TestLogOfFailure(t *testing.T) {
	l, out := logger()
	checkFT(t, 3, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if w.Rank() == 2 {
			return errDies
		}
		var x [1]int
		if _, err := Recv(ctx, c, x[:], 2, 0); !errors.Is(err, ErrProcFailed) && !errors.Is(err, ErrRevoked) {
			return fmt.Errorf("receive from a rank that has failed: %w", err)
		}
		// Failures are logged by a goroutine of their own, which may run after the receive has ended.
		for !strings.Contains(out.String(), fmt.Sprintf(`msg="mpi: peer failed" rank=%d peer=2`, w.Rank())) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			runtime.Gosched()
		}
		if w.Rank() == 0 {
			if err := c.Revoke(); err != nil {
				return err
			}
		}
		d, err := c.Shrink(ctx)
		if err != nil {
			return err
		}
		return Barrier(ctx, d)
	}, WithLog(l))
	wantRecords(t, out.String(),
		`level=WARN msg="mpi: this rank ends as failed" rank=2 error=.*`,
		`level=WARN msg="mpi: peer failed" rank=0 peer=2 error=.*`,
		`level=WARN msg="mpi: peer failed" rank=1 peer=2 error=.*`,
		`level=WARN msg="mpi: communicator revoked" rank=0 comm=world size=3 by=0`,
		`level=WARN msg="mpi: communicator revoked" rank=1 comm=world size=3 by=0`)
}

// Abort is logged with the code and the message.
func TestLogOfAbort(t *testing.T) {
	l, out := logger()
	err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
		if w.Rank() == 0 {
			w.Abort(7, "enough")
		}
		return Barrier(ctx, w.Comm())
	}, WithLog(l))
	if !errors.Is(err, ErrAborted) {
		t.Errorf("aborted job: %v", err)
	}
	wantRecords(t, out.String(), `level=ERROR msg="mpi: job aborted" rank=0 code=7 error=".*enough"`)
}

// Groups that connect are logged, and those that cannot, with the reason.
func TestLogOfConnect(t *testing.T) {
	l, out := logger()
	err := RunLocal(t.Context(), 1, func(ctx context.Context, w *World) error {
		if _, err := w.Comm().Connect(ctx, "weft://127.0.0.1:1/00", 0, nil); !errors.Is(err, ErrPort) {
			return fmt.Errorf("connect to no port: %w", err)
		}
		a, b := net.Pipe()
		errs := make(chan error, 1)
		go func() {
			errs <- RunLocal(ctx, 1, func(ctx context.Context, w *World) error {
				c, err := w.Join(ctx, b)
				if err != nil {
					return err
				}
				return c.Disconnect(ctx)
			})
		}()
		c, err := w.Join(ctx, a)
		if err != nil {
			return err
		}
		return errors.Join(c.Disconnect(ctx), <-errs)
	}, WithLog(l))
	if err != nil {
		t.Fatal(err)
	}
	wantRecords(t, out.String(),
		`level=WARN msg="mpi: connecting to a group failed" rank=0 error=.*`,
		`level=INFO msg="mpi: group connected" rank=0 processes=1`)
}

// A logger costs messages nothing.
func TestLogAllocatesNothingForMessages(t *testing.T) {
	l := slog.New(slog.NewTextHandler(io.Discard, nil))
	err := RunLocal(t.Context(), 1, func(ctx context.Context, w *World) error {
		var x, y [1]int
		round := func() error {
			r, err := Irecv(w.Comm(), y[:], 0, 0)
			if err != nil {
				return err
			}
			if err := Send(ctx, w.Comm(), x[:], 0, 0); err != nil {
				return err
			}
			_, err = r.Wait(ctx)
			r.Free()
			return err
		}
		var failed error
		if n := testing.AllocsPerRun(100, func() { failed = errors.Join(failed, round()) }); n != 0 && !testenv.Race {
			t.Errorf("a message takes %v allocations with a logger, want 0", n)
		}
		return failed
	}, WithLog(l))
	if err != nil {
		t.Fatal(err)
	}
}
