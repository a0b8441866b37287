package job

import (
	"testing"

	"github.com/weftstack/weft/mpi/internal/ft"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// testCommID is the communicator of the ranks of a test.
const testCommID = 1 << 8

// newTestJob returns the part of rank 0 in a job of size ranks, without links, and a communicator of all of them.
func newTestJob(t *testing.T, size int) (*Job, *p2p.Comm) {
	t.Helper()
	j := New(0, size, &Options{Transport: TransportInproc, Eager: 2000, Unexpected: 1 << 20, Streams: 10}, nil, Face{
		RankError: func(_ int, _ bool, err error) error { return err },
		Comm:      func(any) ft.Comm { return nil },
		CommName:  func(any) string { return "world" },
		CallName:  func(string) string { return "" },
	})
	c := &p2p.Comm{ID: testCommID}
	c.Init(j.Engine, j.Engine.Peers, nil, nil)
	c.SetHints(j.Engine.DefaultHints())
	return j, c
}
