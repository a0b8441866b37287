package collective

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport/inproc"
)

// Ids of the communicators of a test.
const (
	worldID = 1 << 8
	interID = 2 << 8
	localID = 3 << 8 // plus the group, times 1 << 8
)

// newEngines returns the engines of n ranks that are linked in memory.
func newEngines(n int) []*p2p.Engine {
	engines := make([]*p2p.Engine, n)
	for r := range engines {
		engines[r] = p2p.New(&p2p.Config{Rank: r, Size: n, Eager: 1 << 20, Unexpected: 1 << 20, Streams: 4,
			PeerError: func(_ *p2p.Peer, err error) error { return err }})
	}
	for r, a := range engines {
		for q, b := range engines[:r] {
			ab := &inproc.Link{To: b.Peers[r]}
			ba := &inproc.Link{To: a.Peers[q], Rev: ab}
			ab.Rev = ba
			a.Peers[q].Link, b.Peers[r].Link = ab, ba
		}
	}
	return engines
}

// newComm returns a communicator of e with the given peers, as their rank.
func newComm(e *p2p.Engine, id uint64, rank int, peers []*p2p.Peer) *Comm {
	c := &p2p.Comm{ID: id, Rank: rank}
	c.Init(e, peers, nil, nil)
	c.SetHints(e.DefaultHints())
	table := coll.Builtin()
	return &Comm{P2P: c, Pick: func(s *coll.Schedule, kind coll.Kind, bytes int) (*coll.Algorithm, error) {
		return table.Pick(s, kind, bytes, false)
	}}
}

// run runs f as each of n ranks of one communicator.
func run(t *testing.T, n int, f func(ctx context.Context, c *Comm) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for rank, e := range newEngines(n) {
		c := newComm(e, worldID, rank, e.Peers)
		wg.Go(func() {
			if err := f(ctx, c); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	wg.Wait()
}

// bytesOf returns the arguments of a call that sends and receives bytes.
func bytesOf(send, recv []byte) Args {
	sig, err := datatype.ElementSig[byte]()
	return Args{Send: send, Recv: recv, Elem: 1, Sig: sig, Err: err}
}

// end ends a call that has been made.
func end(k *Call, err error) error {
	if err != nil {
		return err
	}
	return k.End()
}

// A call with bad arguments on one rank takes its tag there, so the next call of all ranks is the same one.
func TestBadArgumentsTakeTheirTag(t *testing.T) {
	run(t, 3, func(ctx context.Context, c *Comm) error {
		if c.P2P.Rank == 1 {
			if _, err := c.Bcast(ctx, bytesOf(nil, make([]byte, 1)), 3); !errors.Is(err, mpierr.ErrRoot) {
				return fmt.Errorf("root 3 of 3: %w, want ErrRoot", err)
			}
		} else if k, err := c.Bcast(ctx, bytesOf(nil, make([]byte, 1)), 0); err != nil {
			return err
		} else {
			k.release() // made and given up, so that no message is left over
		}
		all := make([]byte, 3)
		if err := end(c.Allgather(ctx, coll.Allgather, bytesOf([]byte{byte(c.P2P.Rank)}, all), nil, nil)); err != nil {
			return err
		}
		if string(all) != "\x00\x01\x02" {
			return fmt.Errorf("gathered %v", all)
		}
		return nil
	})
}

// Blocking and nonblocking calls never have the same tag, in whatever order a rank makes them.
func TestTagsOfBlockingAndNonblockingCalls(t *testing.T) {
	e := newEngines(1)[0]
	c := newComm(e, worldID, 0, e.Peers)
	seen := make(map[int]bool)
	for range 100 {
		for _, ctx := range []context.Context{t.Context(), Nonblocking} {
			k, err := c.Barrier(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if seen[k.comm.tag] {
				t.Fatalf("tag %d twice", k.comm.tag)
			}
			seen[k.comm.tag] = true
			k.release()
		}
	}
}

// On an intercommunicator a broadcast goes from the root to all ranks of the other group, and the other ranks of the
// root's group get nothing.
func TestBetweenGroups(t *testing.T) {
	const n = 5 // two ranks in the first group, three in the second
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for r, e := range newEngines(n) {
		group, rank, own, other := 0, r, e.Peers[:2], e.Peers[2:]
		if r >= 2 {
			group, rank, own, other = 1, r-2, other, own
		}
		c := newComm(e, interID, rank, other)
		c.Local = newComm(e, uint64(localID+group<<8), rank, own)
		wg.Go(func() {
			b, root := []byte{0}, 1
			switch r {
			case 0:
				root = coll.ProcNull
			case 1:
				b[0], root = 7, coll.Root
			}
			if err := end(c.Bcast(ctx, bytesOf(nil, b), root)); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
			want := byte(7)
			if r == 0 {
				want = 0
			}
			if b[0] != want {
				t.Errorf("rank %d has %d, want %d", r, b[0], want)
			}
			if _, err := c.Reduce(ctx, coll.Scan, bytesOf(b, b), nil, -1); !errors.Is(err, mpierr.ErrComm) {
				t.Errorf("rank %d: a scan between groups: %v, want ErrComm", r, err)
			}
			if err := end(c.Barrier(ctx)); err != nil {
				t.Errorf("rank %d: barrier: %v", r, err)
			}
		})
	}
	wg.Wait()
}
