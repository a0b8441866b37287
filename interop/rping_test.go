package interop

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"testing"
)

// rpingServer is `weft rping` as a server, and what it has said.
type rpingServer struct {
	*exec.Cmd
	out  lockedBuffer
	errs bytes.Buffer
}

// startRping starts a server of one client, which lives as long as ctx, and waits
// until it listens.
func startRping(ctx context.Context, t testing.TB, port int, args ...string) *rpingServer {
	t.Helper()
	s := &rpingServer{Cmd: commandIn(ctx, tool(t, "weft"), append([]string{"rping", "-sd", "-a127.0.0.1", "-p", fmt.Sprint(port)}, args...)...)}
	s.Stdout, s.Stderr = &s.out, &s.errs
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	awaitText(t, &s.out, "rdma_listen")
	return s
}

// end waits for the end of the server.
func (s *rpingServer) end(t testing.TB) {
	t.Helper()
	if err := s.Wait(); err != nil {
		t.Errorf("our server: %v, %s", err, s.errs.String())
	}
}
