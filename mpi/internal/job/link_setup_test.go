package job

import (
	"errors"
	"io"
	"testing"

	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// TestLinkSetupUnneededLink has a process make a link although both ends know that they
// have one.
func TestLinkSetupUnneededLink(t *testing.T) {
	j, _ := newTestJob(t, 1)
	e, name := j.Engine, p2p.ProcName{Job: 1}
	old, err := e.AddRemote(name, p2p.RemoteInfo{}, 7)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.AddRemote(name, p2p.RemoteInfo{}, 8)
	if err != nil {
		t.Fatal(err)
	}
	m := &linkSetup{job: j, size: 2, peers: []*p2p.Peer{nil, p}, claimed: make([]bool, 2), others: []int{1}, need: -1, done: make(chan struct{})}
	if m.claim(1, p2p.NoLink{}) != p {
		t.Fatal("the link was not expected")
	}
	both := &dynamic.GroupMessage{Reports: []dynamic.ProcessMessage{{Links: [][2]uint64{{0, 7}}}}}
	if err := m.link(t.Context(), 0, both, both, []*p2p.Peer{old}, true); !errors.Is(err, mpierr.ErrProtocol) {
		t.Errorf("one more link: %v, want ErrProtocol", err)
	}
	m.linked(1, io.EOF)
	p.Down(io.EOF) // as the end of a link that has been aborted tells
}
