// Package trial runs an example on different numbers of ranks.
package trial

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi"
)

// Same runs an example as goroutines, on several numbers of ranks and all
// transports, and fails the test unless it always writes the same. It returns
// what that is.
func Same(t *testing.T, run func(ctx context.Context, c *mpi.Comm, out io.Writer) error) string {
	t.Helper()
	first := ""
	for _, tt := range []struct {
		transport string
		ranks     []int
	}{
		{mpi.TransportInproc, []int{1, 2, 3, 4, 6, 7, 13}},
		{mpi.TransportTCP, []int{4}}, {mpi.TransportSCTP, []int{5}}, {mpi.TransportHybrid, []int{3}},
	} {
		for _, n := range tt.ranks {
			t.Run(fmt.Sprintf("transport=%s/ranks=%d", tt.transport, n), func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
				defer stop()
				var mu sync.Mutex
				var out bytes.Buffer
				err := mpi.RunLocal(ctx, n, func(ctx context.Context, w *mpi.World) error {
					return run(ctx, w.Comm(), writer(func(b []byte) (int, error) {
						mu.Lock()
						defer mu.Unlock()
						return out.Write(b)
					}))
				}, mpi.WithTransport(tt.transport))
				if err != nil {
					t.Fatal(err)
				}
				if first == "" {
					first = out.String()
				}
				if out.String() != first {
					t.Errorf("output %q, with one rank %q", out.String(), first)
				}
			})
		}
	}
	return first
}

type writer func(b []byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
