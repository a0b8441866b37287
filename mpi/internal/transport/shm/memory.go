package shm

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Limits of the memory that ranks of a host share.
const (
	// MaxRanks bounds the ranks of a host that share memory.
	MaxRanks = 256
	// ringBudget bounds the ring buffers of one rank, in bytes. Each other rank of the host writes
	// to one of them, which has from minRing to MaxRing bytes.
	ringBudget = 4 << 20
	minRing    = 16 << 10
	MaxRing    = 256 << 10
)

// Memory is how a rank exchanges messages with the other ranks of its host.
type Memory struct {
	Segment  Segment
	nonce    [nonceLen]byte // other ranks read it to find out whether they can use cross-memory attach
	file     *os.File       // of the segment of this rank, until all have mapped it
	own      *mapping       // segment of this rank
	spinning *poll.Spinning // goroutines of the rank that spin
	links    []*Link        // constant once up
	up       atomic.Bool    // the links are complete

	// awake is true while this rank polls: then peers need not send a doorbell. Polling
	// sets it. It is cleared one lease after the last poll and not at once, because a
	// rank that has polled is likely to poll again.
	mu     sync.Mutex // guards changes of awake
	awake  atomic.Bool
	waits  atomic.Uint32 // approximate number of calls of Left
	leased atomic.Bool   // the timer is set, or about to be
	armed  atomic.Int64  // clock when the timer was set
	timer  *time.Timer
	lease  time.Duration // Lease or CrowdedLease; constant

	// Exponential back-off of network polls: see polling.
	crowded bool          // there are more ranks than processors, so a poll may yield; constant
	turn    atomic.Uint32 // polls that found nothing in memory
	looked  atomic.Uint32 // turn at the last poll of the network
	gap     atomic.Uint32 // turns until the next one
}

const (
	// Lease is how long after a poll peers still rely on the next one.
	Lease = 75 * time.Microsecond
	// CrowdedLease is Lease where there are more ranks than processors: the end of a lease and the doorbells
	// after it wake threads, which take the processor from ranks that compute. A rank that computes for
	// longer still receives, and serves requests to its windows.
	CrowdedLease = 4 * time.Millisecond
	// leaseRearms is how often the timer for a lease is reset at the most during one.
	leaseRearms = 3
	// leaseEvery is the number of calls of Left for each that reads the clock while the lease runs.
	leaseEvery = 16
	// minGap is the number of polls of memory that find nothing for each poll of the network, which
	// takes a system call and delays messages in memory. It doubles with each network poll that
	// finds nothing, up to maxGap, or crowdedGap where a poll of memory may yield the processor.
	minGap     = 8
	maxGap     = 256
	crowdedGap = 16
)

// New makes the file of the segment, which is sized later. It returns nil if the system
// does not support it.
func New(spinning *poll.Spinning) *Memory {
	place, err := hostPlace()
	if err != nil {
		return nil
	}
	s := &Memory{spinning: spinning, lease: Lease}
	if s.file, err = newFile(); err != nil {
		return nil
	}
	_, _ = rand.Read(s.nonce[:]) // never fails
	if _, err = s.file.WriteAt(s.nonce[:], 0); err != nil {
		s.Close()
		return nil
	}
	s.Segment = Segment{Place: place, PID: os.Getpid(), FD: int(s.file.Fd()), Nonce: hex.EncodeToString(s.nonce[:]),
		Probe: uint64(uintptr(unsafe.Pointer(&s.nonce)))}
	s.timer = time.AfterFunc(time.Hour, s.expired)
	s.timer.Stop()
	return s
}

// Close closes the file. After that no process can map the segment.
func (s *Memory) Close() {
	if s != nil && s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// Connect puts links through memory above the network links to the ranks of this host. refs holds
// the segment of each rank of the job; nil for ranks without.
func (s *Memory) Connect(e *p2p.Engine, refs []*Segment) {
	var local []int
	for rank, c := range refs {
		if c != nil && c.Place == s.Segment.Place {
			local = append(local, rank)
		}
	}
	n, me := len(local)-1, slices.Index(local, e.Rank)
	if n < 1 || n >= MaxRanks || me < 0 {
		return
	}
	var err error
	if s.own, err = mapFile(s.file, mappingLen(n)); err != nil {
		s.own = nil
		return
	}
	for i, rank := range local {
		if i == me {
			continue
		}
		p := e.Peers[rank]
		l := &Link{under: p.Link, peer: p, pid: refs[rank].PID, own: s.own}
		l.idle = sync.NewCond(&l.mu)
		l.parser.Peer = p
		l.in.ctl, l.in.data = s.own.ring(place(i, me), n)
		l.in.sent = &l.out.order
		if l.theirs, err = refs[rank].open(n); err == nil {
			l.out.ctl, l.out.data = l.theirs.ring(place(me, i), n)
			l.awake = &l.theirs.header().awake
			p.Link, p.Coalesces = l, false
		}
		l.probe(refs[rank])
		p.SetMemory(l)
		s.links = append(s.links, l)
	}
	s.up.Store(true)
	s.scan()
}

// Of returns the link to p through shared memory, or nil if there is none.
func Of(p *p2p.Peer) *Link {
	if l := p.Shared.Load(); l != nil {
		return (*l).(*Link)
	}
	return nil
}

// SetCrowded says that there are more ranks than processors. It is called before the first poll.
func (s *Memory) SetCrowded() { s.crowded, s.lease = true, CrowdedLease }

// All reports whether this rank has links in both directions to all other ranks of the job.
func (s *Memory) All(ranks int) bool {
	for _, l := range s.links {
		if l.theirs == nil {
			return false
		}
	}
	return s.up.Load() && len(s.links) == ranks-1
}

// place returns the index of the ring buffer that rank from writes in the segment of rank to. Both
// are indices among the ranks of the host.
func place(from, to int) int {
	if from > to {
		return from - 1
	}
	return from
}

// poll receives what other ranks have written, and writes queued messages. It reports whether it
// did either.
func (s *Memory) poll() (worked bool) {
	if !s.up.Load() {
		return false
	}
	if !s.awake.Load() {
		s.wake()
	}
	for _, l := range s.links {
		if l.drain(false) {
			worked = true
		}
		if l.queued.Load() && l.pump() {
			worked = true
		}
	}
	return worked
}

// Polling returns the poll function for memory and the network. base polls the network.
func (s *Memory) Polling(base func() bool) func() bool {
	return func() bool {
		if s.poll() {
			return true
		}
		turn, gap := s.turn.Add(1), s.gap.Load()
		if turn-s.looked.Load() < gap {
			return false
		}
		s.looked.Store(turn)
		worked := base()
		switch {
		case worked:
			gap = minGap
		case s.crowded:
			gap = min(2*max(gap, minGap), crowdedGap)
		default:
			gap = min(2*max(gap, minGap), maxGap)
		}
		s.gap.Store(gap)
		return worked
	}
}

// wake sets awake, for this rank and its peers.
func (s *Memory) wake() {
	s.mu.Lock()
	s.awake.Store(true)
	s.own.header().awake.Store(1)
	s.mu.Unlock()
}

// sleep clears awake, and then receives what a peer may have written before it saw that.
func (s *Memory) sleep() {
	s.mu.Lock()
	s.awake.Store(false)
	s.own.header().awake.Store(0)
	s.mu.Unlock()
	s.scan()
}

// scan receives everything that peers have written, and writes queued messages.
func (s *Memory) scan() {
	for _, l := range s.links {
		l.drain(true)
		if l.queued.Load() {
			l.pump()
		}
	}
}

// Left is called by a goroutine that ends polling: it starts the lease.
func (s *Memory) Left() {
	if !s.up.Load() {
		return
	}
	n := s.waits.Load() + 1
	s.waits.Store(n)
	leased := s.leased.Load()
	if leased && n%leaseEvery != 0 {
		return
	}
	now := p2p.Clock()
	if at := s.armed.Load(); !leased || now-at >= int64(s.lease/leaseRearms) && s.armed.CompareAndSwap(at, now) {
		s.armed.Store(now)
		s.leased.Store(true) // before the timer is set, which clears it
		s.timer.Reset(s.lease)
	}
}

// Parks is called instead of Left by a goroutine that is about to park. If no other goroutine
// polls, peers have to send a doorbell from now on.
func (s *Memory) Parks() {
	if s.up.Load() && !s.spinning.Any() {
		s.sleep()
	}
}

// expired is called by the timer when the lease has ended.
func (s *Memory) expired() {
	s.leased.Store(false)  // before spinning is looked at
	if !s.spinning.Any() { // those call Left
		s.sleep()
	}
}

// Active reports whether messages go through memory. s may be nil.
func (s *Memory) Active() bool { return s != nil && s.up.Load() }

// LinkCount returns the number of links through memory.
func (s *Memory) LinkCount() int {
	if !s.Active() {
		return 0
	}
	return len(s.links)
}

// String returns the value of WEFT_SHARED that active corresponds to.
func (s *Memory) String() string {
	if s.Active() {
		return "1"
	}
	return "0"
}
