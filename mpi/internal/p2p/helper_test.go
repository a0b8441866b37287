package p2p

import (
	"context"
	"errors"
	"testing"

	"github.com/weftstack/weft/mpi/internal/transport"
)

// errTestOver is why a test ends what is under way.
var errTestOver = errors.New("the test is over")

// testCommID is the communicator of the ranks of a test.
const testCommID = 1 << 8

// newTestEngine returns the engine of rank 0 of two, which have a communicator, and the peer that
// rank 1 is.
func newTestEngine(t *testing.T) (*Comm, *Peer) {
	t.Helper()
	e := New(&Config{Size: 2, Eager: 2000, Unexpected: 1 << 20, Streams: 4, OnDown: func(*Peer, error) {},
		PeerError: func(_ *Peer, err error) error { return err }})
	for _, p := range e.Peers {
		p.Link = sink{}
	}
	c := &Comm{ID: testCommID}
	c.Init(e, e.Peers, nil, nil)
	c.SetHints(e.DefaultHints())
	return c, e.Peers[1]
}

// sink is a link that takes everything and delivers nothing.
type sink struct{}

func (sink) Send(_ uint16, _, _ []byte, own transport.Owner) error {
	if own != nil {
		own.Released(nil)
	}
	return nil
}
func (sink) Flush()                         {}
func (sink) CopyLimit(bool) int             { return 1000 }
func (sink) Shutdown(context.Context) error { return nil }
func (sink) Abort(string)                   {}
