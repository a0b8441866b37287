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
)

// WithSharedMemory sets whether the messages of TransportHybrid between ranks on
// one host go through memory that they share. Init does so by default (WEFT_SHARED),
// RunLocal does not. It needs Linux, and that the processes have the same user,
// network and processes in view; where it cannot be, and with WithCapture, messages
// go over SCTP. Ranks may differ.
func WithSharedMemory(on bool) Option {
	return func(o *options) error {
		o.shared = on
		return nil
	}
}

// Limits of the memory that ranks of a host share.
const (
	// MaxSharedRanks bounds the ranks of a host that share memory. Beyond it all of
	// them use SCTP.
	MaxSharedRanks = 256
	// shmBudget is how much memory a rank shares with all others of its host, each
	// of which has from minRing to maxRing of it.
	shmBudget = 4 << 20
	minRing   = 16 << 10
	maxRing   = 256 << 10
)

// segmentRef is the part of a business card by which the ranks of a host find and map the shared-memory segment.
type segmentRef struct {
	Place string `json:"p"` // equal for processes that may share memory
	PID   int    `json:"i"`
	FD    int    `json:"f"`
	Nonce string `json:"n"`
	Probe uint64 `json:"a,omitempty"` // where the nonce is in the memory of the process
}

const shmNonceLen = 16

// shmLayout changes with what ranks share and say of it: those of other versions use the
// network.
const shmLayout = 2

// shmHeader begins the memory that a rank shares.
type shmHeader struct {
	nonce [shmNonceLen]byte // written to the file before it is mapped
	_     [112]byte
	awake atomic.Uint32 // the rank polls
	_     [124]byte
}

const shmHeaderLen = int(unsafe.Sizeof(shmHeader{}))

// shmSegment is the shared memory into which the other ranks of the host write messages for one rank: a header, a
// ringControl for each of them, then their ring buffers.
type shmSegment struct{ mem []byte }

func (s *shmSegment) header() *shmHeader { return (*shmHeader)(unsafe.Pointer(&s.mem[0])) }

// ring returns the i-th of n ring buffers.
func (s *shmSegment) ring(i, n int) (*ringControl, []byte) {
	ctl := (*ringControl)(unsafe.Pointer(&s.mem[shmHeaderLen+i*ringControlLen]))
	size := ringSize(n)
	at := shmDataAt(n) + i*size
	return ctl, s.mem[at : at+size : at+size]
}

// ringSize is the size of each of n rings: a power of 2.
func ringSize(n int) int {
	size := max(min(shmBudget/max(n, 1), maxRing), minRing)
	return 1 << (bits.Len(uint(size)) - 1)
}

// shmDataAt is the offset of the first ring buffer, a multiple of the page size.
func shmDataAt(n int) int { return (shmHeaderLen + n*ringControlLen + 4095) &^ 4095 }

// shmLen is the length of a segment with n ring buffers.
func shmLen(n int) int { return shmDataAt(n) + n*ringSize(n) }

// sharedMemory is how a rank exchanges messages with those on its host.
type sharedMemory struct {
	ref      segmentRef
	nonce    [shmNonceLen]byte // others find out whether they can copy it
	file     *os.File          // of the memory of this rank, until all have mapped it
	own      *shmSegment
	spinning *poll.Spinning // goroutines of the rank that spin
	links    []*shmLink     // constant once up
	up       atomic.Bool    // the links are complete

	// awake is true while this rank polls: then peers need not send a doorbell. Polling
	// sets it. It is cleared shmLease after the last poll and not at once, because a
	// rank that has polled is likely to poll again.
	mu     sync.Mutex // guards changes of awake
	awake  atomic.Bool
	waits  atomic.Uint32 // about how often left was called
	leased atomic.Bool   // the timer is set, or about to be
	armed  atomic.Int64  // clock when it was set
	timer  *time.Timer

	// How often the network is polled: the fields of adaptive back-off.
	crowded bool          // a poll may take as long as others run; constant
	turn    atomic.Uint32 // polls that found nothing in memory
	looked  atomic.Uint32 // turn at the last look
	gap     atomic.Uint32 // turns to the next
}

const (
	// shmLease is how long after a poll peers still count on the next one.
	shmLease = 75 * time.Microsecond
	// shmRearm is how long the timer for that is not set again.
	shmRearm = int64(25 * time.Microsecond)
	// leaseEvery is how many polls there are to one that looks whether that is so.
	leaseEvery = 16
	// minGap is how many looks at memory that find nothing there are to one at the
	// network, which takes a system call and would keep a message in memory waiting.
	// With each of those that finds nothing the number doubles, up to maxGap, or
	// crowdedGap where a look at memory may take long.
	minGap     = 8
	maxGap     = 256
	crowdedGap = 16
)

// newSharedMemory makes memory for others to write to, whose size is not known yet.
// It returns nil where there can be none.
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

// close lets go of the file: nobody can map the memory any more.
func (s *sharedMemory) close() {
	if s != nil && s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// connect makes links to the ranks of this host besides those over the network. The
// refs has the segment of each rank of the job; nil stands for none.
func (s *sharedMemory) connect(e *engine, refs []*segmentRef) {
	var local []int
	for rank, c := range refs {
		if c != nil && c.Place == s.ref.Place {
			local = append(local, rank)
		}
	}
	n, me := len(local)-1, slices.Index(local, e.rank)
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
		p := e.peers[rank]
		l := &shmLink{under: p.link, peer: p, pid: refs[rank].PID, own: s.own}
		l.idle = sync.NewCond(&l.mu)
		l.parser.p = p
		l.in.ctl, l.in.data = s.own.ring(place(i, me), n)
		l.in.sent = &l.out.order
		if l.theirs, err = refs[rank].open(n); err == nil {
			l.out.ctl, l.out.data = l.theirs.ring(place(me, i), n)
			l.awake = &l.theirs.header().awake
			p.link, p.coalesces = l, false
		}
		l.probe(refs[rank])
		p.shared.Store(l)
		s.links = append(s.links, l)
	}
	s.up.Store(true)
	s.scan()
}

// all reports whether there are links to all other ranks, of a job of so many, in
// both directions.
func (s *sharedMemory) all(ranks int) bool {
	for _, l := range s.links {
		if l.theirs == nil {
			return false
		}
	}
	return s.up.Load() && len(s.links) == ranks-1
}

// place returns which ring buffer in the segment of rank to is written by rank from; both are indices.
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

// poll takes in what others have written, and writes what there was no room for. It
// reports whether there was something.
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

// polling returns poll for memory and the network, whose poll is base.
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

// sleep clears awake, and then takes in what a peer may have written before it saw that.
func (s *sharedMemory) sleep() {
	s.mu.Lock()
	s.awake.Store(false)
	s.own.header().awake.Store(0)
	s.mu.Unlock()
	s.scan()
}

// scan takes in everything that peers have written.
func (s *sharedMemory) scan() {
	for _, l := range s.links {
		l.drain(true)
		if l.queued.Load() {
			l.pump()
		}
	}
}

// left is called when a goroutine ends polling: it starts the lease.
func (s *sharedMemory) left() {
	if !s.up.Load() {
		return
	}
	n := s.waits.Load() + 1
	s.waits.Store(n)
	leased := s.leased.Load()
	if leased && n%leaseEvery != 0 {
		return
	}
	now := clock()
	if at := s.armed.Load(); !leased || now-at >= shmRearm && s.armed.CompareAndSwap(at, now) {
		s.armed.Store(now)
		s.leased.Store(true) // before the timer is set, which clears it
		s.timer.Reset(shmLease)
	}
}

// parks is called instead of left by a goroutine that is about to park. If no other goroutine polls, peers have to send a
// doorbell from now on.
func (s *sharedMemory) parks() {
	if s.up.Load() && !s.spinning.Any() {
		s.sleep()
	}
}

// expired is called by the timer when the lease has ended.
func (s *sharedMemory) expired() {
	s.leased.Store(false)  // before spinning is looked at
	if !s.spinning.Any() { // those call left
		s.sleep()
	}
}

// active reports whether messages go through memory. There may be none.
func (s *sharedMemory) active() bool { return s != nil && s.up.Load() }

// String returns the value of WEFT_SHARED that says so.
func (s *sharedMemory) String() string {
	if s.active() {
		return "1"
	}
	return "0"
}
