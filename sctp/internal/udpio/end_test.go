package udpio

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestIsEnd(t *testing.T) {
	wrap := func(err error) error { return &net.OpError{Op: "read", Net: "udp", Err: err} }
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{net.ErrClosed, true},
		{wrap(net.ErrClosed), true},
		{io.EOF, true},
		{fmt.Errorf("dtls: %w", io.ErrUnexpectedEOF), true},
		{io.ErrClosedPipe, true},
		{wrap(os.NewSyscallError("read", syscall.ECONNREFUSED)), false},
		{os.ErrDeadlineExceeded, false},
		{wrap(os.ErrDeadlineExceeded), false},
		{errors.New("bad record"), false},
	} {
		failures := 0
		if got := IsEnd(tt.err, &failures); got != tt.want {
			t.Errorf("IsEnd(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
	// Others are the end when there are many in a row.
	failures, unknown := 0, errors.New("bad record")
	for i := range MaxFailures - 1 {
		if IsEnd(unknown, &failures) {
			t.Fatalf("the end after %d errors", i+1)
		}
	}
	if IsEnd(os.ErrDeadlineExceeded, &failures) || failures != 0 {
		t.Errorf("a deadline leaves %d failures in a row", failures)
	}
	for range MaxFailures {
		if IsEnd(unknown, &failures) != (failures == MaxFailures) {
			t.Errorf("not the end after %d errors in a row", failures)
		}
	}
}
