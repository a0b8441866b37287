package mpi

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"math/bits"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/cma"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// WithSharedMemory sets whether ranks on one host exchange the messages of TransportHybrid through
// shared memory. Init does so by default (WEFT_SHARED), RunLocal does not. It needs Linux, and
// processes of one user that see the same network and processes; otherwise, and with [WithCapture],
// messages go over SCTP. Ranks may differ.
func WithSharedMemory(on bool) Option {
	return func(o *options) error {
		o.shared = on
		return nil
	}
}

// Limits of the memory that ranks of a host share.
const (
	// MaxSharedRanks bounds the ranks of a host that share memory. If there are more, all of them
	// use SCTP.
	MaxSharedRanks = 256
	// shmBudget bounds the ring buffers of one rank, in bytes. Each other rank of the host writes
	// to one of them, which has from minRing to maxRing bytes.
	shmBudget = 4 << 20
	minRing   = 16 << 10
	maxRing   = 256 << 10
)

// segmentRef is the part of a business card by which the ranks of a host find and map the
// shared-memory segment.
type segmentRef struct {
	Place string `json:"p"` // equal for processes that may share memory
	PID   int    `json:"i"`
	FD    int    `json:"f"`
	Nonce string `json:"n"`
	Probe uint64 `json:"a,omitempty"` // where the nonce is in the memory of the process
}

const shmNonceLen = cma.ProbeLen

// shmLayout is the version of the shared-memory layout. Ranks of different versions use the
// network.
const shmLayout = 2

// shmHeader begins the segment of a rank.
type shmHeader struct {
	nonce [shmNonceLen]byte // written to the file before it is mapped
	_     [112]byte
	awake atomic.Uint32 // 1 while the rank polls: it needs no doorbell
	_     [124]byte
}

const shmHeaderLen = int(unsafe.Sizeof(shmHeader{}))

// shmSegment is the shared memory into which the other ranks of the host write messages for one
// rank: a header, a ringControl for each of them, then their ring buffers.
type shmSegment struct{ mem []byte }

func (s *shmSegment) header() *shmHeader { return (*shmHeader)(unsafe.Pointer(&s.mem[0])) }

// ring returns the i-th of n ring buffers.
func (s *shmSegment) ring(i, n int) (*ringControl, []byte) {
	ctl := (*ringControl)(unsafe.Pointer(&s.mem[shmHeaderLen+i*ringControlLen]))
	size := ringSize(n)
	at := shmDataAt(n) + i*size
	return ctl, s.mem[at : at+size : at+size]
}

// ringSize returns the size of each of n ring buffers, a power of 2.
func ringSize(n int) int {
	size := max(min(shmBudget/max(n, 1), maxRing), minRing)
	return 1 << (bits.Len(uint(size)) - 1)
}

// shmDataAt returns the offset of the first ring buffer, a multiple of the page size.
func shmDataAt(n int) int { return (shmHeaderLen + n*ringControlLen + 4095) &^ 4095 }

// shmLen returns the length of a segment with n ring buffers.
func shmLen(n int) int { return shmDataAt(n) + n*ringSize(n) }

// sharedMemory is how a rank exchanges messages with the other ranks of its host.
type sharedMemory struct {
	ref      segmentRef
	nonce    [shmNonceLen]byte // other ranks read it to find out whether they can use cross-memory attach
	file     *os.File          // of the segment of this rank, until all have mapped it
	own      *shmSegment       // segment of this rank
	spinning *poll.Spinning    // goroutines of the rank that spin
	links    []*shmLink        // constant once up
	up       atomic.Bool       // the links are complete

	// awake is true while this rank polls: then peers need not send a doorbell. Polling
	// sets it. It is cleared shmLease after the last poll and not at once, because a
	// rank that has polled is likely to poll again.
	mu     sync.Mutex // guards changes of awake
	awake  atomic.Bool
	waits  atomic.Uint32 // approximate number of calls of Left
	leased atomic.Bool   // the timer is set, or about to be
	armed  atomic.Int64  // clock when the timer was set
	timer  *time.Timer

	// Exponential back-off of network polls: see polling.
	crowded bool          // there are more ranks than processors, so a poll may yield; constant
	turn    atomic.Uint32 // polls that found nothing in memory
	looked  atomic.Uint32 // turn at the last poll of the network
	gap     atomic.Uint32 // turns until the next one
}

const (
	// shmLease is how long after a poll peers still rely on the next one.
	shmLease = 75 * time.Microsecond
	// shmRearm is the least time between two resets of the timer for shmLease, in nanoseconds.
	shmRearm = int64(25 * time.Microsecond)
	// leaseEvery is the number of calls of Left for each that reads the clock while the lease runs.
	leaseEvery = 16
	// minGap is the number of polls of memory that find nothing for each poll of the network, which
	// takes a system call and delays messages in memory. It doubles with each network poll that
	// finds nothing, up to maxGap, or crowdedGap where a poll of memory may yield the processor.
	minGap     = 8
	maxGap     = 256
	crowdedGap = 16
)

// newSharedMemory makes the file of the segment, which is sized later. It returns nil if the system
// does not support it.
func newSharedMemory(spinning *poll.Spinning) *sharedMemory {
	place, err := shmPlace()
	if err != nil {
		return nil
	}
	s := &sharedMemory{spinning: spinning}
	if s.file, err = newShmFile(); err != nil {
		return nil
	}
	_, _ = rand.Read(s.nonce[:]) // never fails
	if _, err = s.file.WriteAt(s.nonce[:], 0); err != nil {
		s.close()
		return nil
	}
	s.ref = segmentRef{Place: place, PID: os.Getpid(), FD: int(s.file.Fd()), Nonce: hex.EncodeToString(s.nonce[:]),
		Probe: uint64(uintptr(unsafe.Pointer(&s.nonce)))}
	s.timer = time.AfterFunc(time.Hour, s.expired)
	s.timer.Stop()
	return s
}

// close closes the file. After that no process can map the segment.
func (s *sharedMemory) close() {
	if s != nil && s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// connect puts links through memory above the network links to the ranks of this host. refs holds
// the segment of each rank of the job; nil for ranks without.
func (s *sharedMemory) connect(e *p2p.Engine, refs []*segmentRef) {
	var local []int
	for rank, c := range refs {
		if c != nil && c.Place == s.ref.Place {
			local = append(local, rank)
		}
	}
	n, me := len(local)-1, slices.Index(local, e.Rank)
	if n < 1 || n >= MaxSharedRanks || me < 0 {
		return
	}
	var err error
	if s.own, err = mapShm(s.file, shmLen(n)); err != nil {
		s.own = nil
		return
	}
	for i, rank := range local {
		if i == me {
			continue
		}
		p := e.Peers[rank]
		l := &shmLink{under: p.Link, peer: p, pid: refs[rank].PID, own: s.own}
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

// sharedLink returns the link to p through shared memory, or nil if there is none.
func sharedLink(p *p2p.Peer) *shmLink {
	if l := p.Shared.Load(); l != nil {
		return (*l).(*shmLink)
	}
	return nil
}

// all reports whether this rank has links in both directions to all other ranks of the job.
func (s *sharedMemory) all(ranks int) bool {
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

// open maps the segment of another rank, which has n ring buffers.
func (c *segmentRef) open(n int) (*shmSegment, error) {
	f, err := openShmFile(c.PID, c.FD)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var nonce [shmNonceLen]byte
	if _, err := f.ReadAt(nonce[:], 0); err != nil {
		return nil, err
	}
	if hex.EncodeToString(nonce[:]) != c.Nonce {
		return nil, errors.New("mpi: shared-memory segment of another process")
	}
	return mapShm(f, shmLen(n))
}

// poll receives what other ranks have written, and writes queued messages. It reports whether it
// did either.
func (s *sharedMemory) poll() (worked bool) {
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

// polling returns the poll function for memory and the network. base polls the network.
func (s *sharedMemory) polling(base func() bool) func() bool {
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
func (s *sharedMemory) wake() {
	s.mu.Lock()
	s.awake.Store(true)
	s.own.header().awake.Store(1)
	s.mu.Unlock()
}

// sleep clears awake, and then receives what a peer may have written before it saw that.
func (s *sharedMemory) sleep() {
	s.mu.Lock()
	s.awake.Store(false)
	s.own.header().awake.Store(0)
	s.mu.Unlock()
	s.scan()
}

// scan receives everything that peers have written, and writes queued messages.
func (s *sharedMemory) scan() {
	for _, l := range s.links {
		l.drain(true)
		if l.queued.Load() {
			l.pump()
		}
	}
}

// Left is called by a goroutine that ends polling: it starts the lease.
func (s *sharedMemory) Left() {
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
	if at := s.armed.Load(); !leased || now-at >= shmRearm && s.armed.CompareAndSwap(at, now) {
		s.armed.Store(now)
		s.leased.Store(true) // before the timer is set, which clears it
		s.timer.Reset(shmLease)
	}
}

// Parks is called instead of Left by a goroutine that is about to park. If no other goroutine
// polls, peers have to send a doorbell from now on.
func (s *sharedMemory) Parks() {
	if s.up.Load() && !s.spinning.Any() {
		s.sleep()
	}
}

// expired is called by the timer when the lease has ended.
func (s *sharedMemory) expired() {
	s.leased.Store(false)  // before spinning is looked at
	if !s.spinning.Any() { // those call Left
		s.sleep()
	}
}

// active reports whether messages go through memory. s may be nil.
func (s *sharedMemory) active() bool { return s != nil && s.up.Load() }

// String returns the value of WEFT_SHARED that active corresponds to.
func (s *sharedMemory) String() string {
	if s.active() {
		return "1"
	}
	return "0"
}
