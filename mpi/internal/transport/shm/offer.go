package shm

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/cma"
	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// Rendezvous between ranks of one host by cross-memory attach (CMA, process_vm_readv): the
// sender offers its buffer, and the receiver has the system copy it to the buffer of the
// receive. That is one copy by one processor; the ring buffer takes two.
//
// A send may be withdrawn while its buffer is being copied, and its Wait must not return
// before the copy has ended. So each offer has a state word in shared memory: the receiver
// changes it to taken before it copies and to done afterwards, and the sender withdraws the
// offer with a compare-and-swap of the same word.

const (
	// OfferMin is the length from which a body is offered, in bytes: below it the system call takes
	// longer than the copy that it saves.
	OfferMin = 16 << 10
	// MaxOffers bounds the offers to one rank. Further bodies go through the ring buffer.
	MaxOffers = 64
	// CopyChunk is how many bytes are copied between two checks whether the receive has ended.
	CopyChunk = 1 << 20
	// CopyInline is the length up to which the goroutine that finds the match copies the body
	// itself, in bytes. A longer copy would delay other messages, so it gets a goroutine.
	CopyInline = 4 << 20
	// minScatterRun is the mean length from which the system copies each run of items by itself, in bytes:
	// it takes about as long for a run as copying 1 KiB.
	minScatterRun = 1 << 10
	// scatterChunk is how many bytes are copied and then unpacked to shorter runs, while they are in the
	// processor's cache.
	scatterChunk = 128 << 10
	// copyPollInterval is the pause between two checks whether a copy has ended. After the peer has
	// failed they go on for deadGrace only, because its process may have died while it copied.
	copyPollInterval = 50 * time.Microsecond
	deadGrace        = time.Second
)

// States of an offer, in the low bits of its word; the other bits are its number. The word of a
// free slot is 0.
const (
	offerOpen   = 1 + iota
	offerTaken  // the receiver is copying
	offerDone   // the receiver has copied all
	offerMissed // the receiver has not copied all

	offerBits   = 3
	offerStates = 1<<offerBits - 1
)

// offerSlots are the offers to one rank.
type offerSlots struct {
	mu    sync.Mutex
	used  uint64 // bit set of the slots in use
	count uint64 // number of offers so far
	all   [MaxOffers]offer
}

// offer is the buffer of a send that the receiver may copy. It implements Offer.
type offer struct {
	l    *Link
	slot int
	word uint64 // value of the state word without the state
	buf  []byte // keeps the memory of a send that has failed
	// table has the address and the length of each run of items, as the peer reads them. With it buf is
	// the first of them: runs in memory of Go are of one object.
	table *bufpool.Buffer
}

// at returns the state word.
func (o *offer) at() *atomic.Uint64 { return &o.l.out.ctl.offers[o.slot] }

// Offer implements MemoryLink. The key names a slot of the ring buffer, and has the value of its state word and the
// address of the buffer. For items that lie in runs it names a table of them, and says how many there are.
// It fails if the buffer is short or no slot is free. peer.mu is held.
func (l *Link) Offer(r *p2p.Request) (key envelope.Key, ok bool) {
	if r.Room() < OfferMin || l.out.ctl.copies.Load() == 0 {
		return key, false
	}
	s := &l.offers
	s.mu.Lock()
	slot := bits.TrailingZeros64(^s.used)
	if slot == MaxOffers {
		s.mu.Unlock()
		return key, false
	}
	s.used |= 1 << slot
	s.count++
	o := &s.all[slot]
	o.l, o.slot, o.word, o.buf = l, slot, s.count<<offerBits, r.Buf
	s.mu.Unlock()
	key.STag = uint32(slot)
	if r.Gaps.Type != nil {
		key.STag |= uint32(o.listRuns(r)) << slotBits
	}
	o.at().Store(o.word | offerOpen)
	r.Offered = o
	binary.BigEndian.PutUint64(key.Token[:], o.word)
	// The address stays valid: o holds the memory, and the collector does not move it.
	at := unsafe.Pointer(&o.buf[0])
	if o.table != nil {
		at = unsafe.Pointer(&o.table.Bytes(1)[0])
	}
	binary.BigEndian.PutUint64(key.Token[8:], uint64(uintptr(at)))
	runtime.KeepAlive(l)
	return key, true
}

// slotBits are the bits of the key's number below the number of runs.
const slotBits = 8

// runEntry is the length of an entry in a table of runs, in bytes: the address of a run and its length,
// in the byte order of the host.
const runEntry = 16

// listRuns makes the table of the runs of r, and returns how many there are.
func (o *offer) listRuns(r *p2p.Request) (count int) {
	n := runEntry * p2p.MaxOfferRuns
	o.table = bufpool.Get(n)
	b := o.table.Bytes(n)
	v := scatterPool.Get().(*[cma.MaxPieces][]byte)
	defer scatterPool.Put(v)
	for at, end := 0, r.Room(); at < end; {
		runs, k := r.Runs(v[:], at, end)
		for _, run := range v[:runs] {
			e := b[count*runEntry:]
			binary.NativeEndian.PutUint64(e, uint64(uintptr(unsafe.Pointer(&run[0]))))
			binary.NativeEndian.PutUint64(e[8:], uint64(len(run)))
			count++
		}
		if at == 0 {
			o.buf = v[0]
		}
		clear(v[:runs])
		at += k
	}
	return count
}

// Withdraw implements Offer.
func (o *offer) Withdraw(then func(whole bool)) {
	at := o.at()
	if at.CompareAndSwap(o.word|offerOpen, 0) || at.Load() != o.word|offerTaken {
		then(o.close())
		return
	}
	go func() {
		var gone time.Time // when the peer was seen to have failed
		for at.Load() == o.word|offerTaken {
			switch {
			case o.l.peer.Failure() == nil:
			case gone.IsZero():
				gone = time.Now()
			case time.Since(gone) >= deadGrace:
				at.CompareAndSwap(o.word|offerTaken, 0)
			}
			time.Sleep(copyPollInterval)
		}
		then(o.close())
	}()
}

// Over implements Offer.
func (o *offer) Over() bool {
	if o.at().Load() != o.word|offerDone {
		return false
	}
	o.close()
	return true
}

// close frees the slot, and reports whether the receiver has copied all.
func (o *offer) close() (whole bool) {
	l := o.l
	whole = o.at().Swap(0) == o.word|offerDone
	l.offers.mu.Lock()
	o.buf = nil
	o.table.Put()
	o.table = nil
	l.offers.used &^= 1 << o.slot
	l.offers.mu.Unlock()
	runtime.KeepAlive(l)
	return whole
}

// Fetch implements MemoryLink: it copies the body, or falls back to CTS.
func (l *Link) Fetch(f p2p.Fetch) {
	if f.Len > CopyInline {
		g := f
		go l.copyBody(&g)
		return
	}
	l.copyBody(&f)
}

func (l *Link) copyBody(f *p2p.Fetch) {
	e := l.peer.Engine
	word := binary.BigEndian.Uint64(f.From.Token[:])
	slot, runs := f.From.STag&(1<<slotBits-1), int(f.From.STag>>slotBits)
	if slot >= MaxOffers || runs > p2p.MaxOfferRuns || word&offerStates != 0 {
		e.ReadFailed(f)
		return
	}
	at := &l.in.ctl.offers[slot]
	if !at.CompareAndSwap(word|offerOpen, word|offerTaken) {
		e.ReadFailed(f) // its CTS is answered by SendFailed: the send was withdrawn
		return
	}
	from := memoryRuns{pid: l.pid, addr: binary.BigEndian.Uint64(f.From.Token[8:]), left: f.Len}
	var err error
	if runs > 0 {
		err = from.load(runs)
	}
	gone := false
	if err == nil {
		gone, err = l.copyTo(f, &from)
	}
	from.table.Put()
	switch {
	case gone:
		at.CompareAndSwap(word|offerTaken, word|offerMissed)
		e.ReadDone(f, true)
	case err == nil && cma.Holds(l.pid, l.nonceAt, &l.nonce) && at.CompareAndSwap(word|offerTaken, word|offerDone):
		l.peer.RDMA.Reads.Count(f.Len)
		e.ReadDone(f, false)
	default:
		// The copy has failed, or the peer has ended and another process has its pid, or
		// the peer has withdrawn the offer. The receive stays in ids, where the answer to
		// CTS, or the end of the link, finds it.
		at.CompareAndSwap(word|offerTaken, word|offerMissed)
		e.ReadFailed(f)
	}
	runtime.KeepAlive(l)
}

// copyTo copies memory of the peer to the buffer of the receive. It stops if the receive has ended or is
// unmatched, and fails if the peer has failed.
func (l *Link) copyTo(f *p2p.Fetch, from *memoryRuns) (gone bool, err error) {
	r, n := f.Receive, f.Len
	r.Place.Lock()
	scatter := r.LongRuns(minScatterRun)
	r.Place.Unlock()
	for at := 0; at < n; {
		if why := l.peer.Failure(); why != nil {
			return false, why
		}
		k := 0
		r.Place.Lock()
		if gone = r.Epoch != f.Epoch || r.Room() < n; !gone {
			k, err = l.copyPart(r, scatter, from, at, n)
		}
		r.Place.Unlock()
		if gone || err != nil {
			return gone, err
		}
		at += k
	}
	return false, nil
}

// copyPart copies the next memory of the peer to the buffer of a receive from at on, up to n at most,
// and returns how much that was. scatter says that the system fills the runs of items by itself.
// r.Place is held.
func (l *Link) copyPart(r *p2p.Request, scatter bool, from *memoryRuns, at, n int) (k int, err error) {
	v := scatterPool.Get().(*[cma.MaxPieces][]byte)
	defer scatterPool.Put(v)
	if r.Buf != nil {
		k = min(n-at, CopyChunk)
		v[0] = r.Buf[at : at+k]
		k, err = from.read(v[:1], k)
		v[0] = nil
		return k, err
	}
	if scatter {
		var runs int
		runs, k = r.Runs(v[:], at, min(n, at+CopyChunk))
		k, err = from.read(v[:runs], k)
		clear(v[:runs])
		return k, err
	}
	k = min(n-at, scatterChunk)
	own := bufpool.Get(k)
	defer own.Put()
	v[0] = own.Bytes(k)
	if k, err = from.read(v[:1], k); err == nil {
		r.Gaps.Unpack(v[0][:k], at)
	}
	v[0] = nil
	return k, err
}

// scatterPool has the runs of items that one call fills.
var scatterPool = sync.Pool{New: func() any { return new([cma.MaxPieces][]byte) }}

// probe finds out whether this process may read memory of the peer, and records that for the peer.
func (l *Link) probe(c *Segment) {
	b, err := hex.DecodeString(c.Nonce)
	if err != nil || len(b) != nonceLen || c.Probe == 0 {
		return
	}
	l.nonce, l.nonceAt = [nonceLen]byte(b), c.Probe
	if cma.Holds(l.pid, l.nonceAt, &l.nonce) {
		l.in.ctl.copies.Store(1)
	}
}
