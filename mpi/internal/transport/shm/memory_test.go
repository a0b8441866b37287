package shm

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// sharing needs memory that ranks share.
func sharing(t *testing.T) *Memory {
	t.Helper()
	s := New(new(poll.Spinning))
	if s == nil {
		if runtime.GOOS == "linux" {
			t.Fatal("no shared memory")
		}
		t.Skip("no shared memory on", runtime.GOOS)
	}
	t.Cleanup(s.Close)
	return s
}

// A rank that says nothing sensible about its memory is sent messages over the
// network, and so are all where there are too many.
func TestSharedMemoryRefuses(t *testing.T) {
	connect := func(n int, change func(c *Segment)) *p2p.Engine {
		s := sharing(t)
		e := p2p.New(&p2p.Config{Size: n, Unexpected: 1 << 20, Streams: 1, PeerError: peerError})
		refs := make([]*Segment, n)
		for i := range refs {
			e.Peers[i].Link = p2p.NoLink{}
			c := s.Segment
			if i > 0 {
				change(&c)
			}
			refs[i] = &c
		}
		s.Connect(e, refs)
		return e
	}
	same := func(*Segment) {}
	for _, tt := range []struct {
		name     string
		ranks    int
		change   func(c *Segment)
		out, in_ bool
	}{
		{"two", 2, same, true, true},
		{"most", MaxRanks, same, true, true},
		{"too many", MaxRanks + 1, same, false, false},
		{"elsewhere", 2, func(c *Segment) { c.Place = "elsewhere" }, false, false},
		{"nonce", 2, func(c *Segment) { c.Nonce = "00" }, false, true},
		{"process", 2, func(c *Segment) { c.PID = 1 << 30 }, false, true},
		{"file", 2, func(c *Segment) { c.FD = 1 << 30 }, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := connect(tt.ranks, tt.change)
			for _, p := range e.Peers[1:] {
				_, out := p.Link.(*Link)
				if in := p.Shared.Load() != nil; out != tt.out || in != tt.in_ {
					t.Fatalf("rank %d: sends through memory %v, receives %v; want %v, %v", p.Rank, out, in, tt.out, tt.in_)
				}
			}
		})
	}
}

// Peers rely on the next poll for one lease after the last, which is longer where ranks outnumber processors.
func TestLease(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, lease := sharing(t), Lease
			if crowded {
				s.SetCrowded()
				lease = CrowdedLease
			}
			var err error
			if s.own, err = mapFile(s.file, mappingLen(1)); err != nil {
				t.Fatal(err)
			}
			s.up.Store(true)
			awake := func() bool {
				synctest.Wait()
				return s.own.header().awake.Load() == 1
			}
			for range 3 {
				s.poll()
				s.Left()
				if time.Sleep(lease - 1); !awake() {
					t.Fatalf("crowded %v: doorbells are needed before %v are over", crowded, lease)
				}
				if time.Sleep(time.Nanosecond); awake() {
					t.Fatalf("crowded %v: no doorbells are sent %v after the last poll", crowded, lease)
				}
			}
		})
	}
}

// While the network has nothing it is looked at ever more rarely, but not too rarely;
// once it has, it is again.
func TestSharedLooksAtNetwork(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		s := sharing(t)
		s.crowded = crowded
		looks, found := 0, false
		poll := s.Polling(func() bool { looks++; return found })
		polls := func(n int) int {
			looks = 0
			for range n {
				poll()
			}
			return looks
		}
		most := maxGap
		if crowded {
			most = crowdedGap
		}
		if polls(4 * maxGap); polls(4*maxGap) != 4*maxGap/most {
			t.Errorf("crowded %v: %d looks in %d", crowded, looks, 4*maxGap)
		}
		found = true
		if polls(maxGap); polls(4*minGap) != 4 {
			t.Errorf("crowded %v: %d looks in %d, with something each time", crowded, looks, 4*minGap)
		}
	}
}
