package mpi

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// This file is rendezvous between ranks that share memory: the sender offers its buffer,
// and the receiver has the system copy it to the buffer of the receive. That is one copy
// by one processor, where the ring takes two.
//
// A send may be withdrawn while its buffer is being copied, and then the program wants
// the buffer back. So each offer has a word in memory that both ranks share: the
// receiver takes the offer there before it copies, and says there when it has copied,
// and the sender withdraws it there.

const (
	// nearLeast is the least body that is offered: to copy a short one takes as long as
	// the system call.
	nearLeast = 16 << 10
	// nearOffers bounds the offers to one rank. More bodies go through the ring.
	nearOffers = 64
	// nearStep is how much is copied before the copier looks whether the receive has
	// ended.
	nearStep = 1 << 20
	// nearAtOnce is how much is copied by who finds the match, and may have others to
	// serve. More is left to a goroutine.
	nearAtOnce = 4 << 20
	// nearPatience is how often one looks who waits for a copy to end, and nearGrace for
	// how long where the copier may have died in the midst of it.
	nearPatience = 50 * time.Microsecond
	nearGrace    = time.Second
)

// States of an offer, in the low bits of its word; the rest is its number. The word is 0
// while there is none.
const (
	offerOpen   = 1 + iota
	offerTaken  // it is being copied
	offerDone   // it was copied
	offerMissed // it was not, or not all of it

	offerBits   = 3
	offerStates = 1<<offerBits - 1
)

// nearSlots are the offers to one rank.
type nearSlots struct {
	mu    sync.Mutex
	used  uint64 // a bit for each
	count uint64 // of offers so far
	all   [nearOffers]nearOffer
}

// nearOffer is the buffer of a send that the receiver may copy: an offering.
type nearOffer struct {
	l    *shmLink
	slot int
	word uint64 // without a state
	buf  []byte // a send that has failed does not hold it any more
}

// at is where the state is.
func (o *nearOffer) at() *atomic.Uint64 { return &o.l.out.ctl.offers[o.slot] }

// offer lets the peer copy the buffer of r, and says in v how, if that can be. It is
// called with the lock of the peer held.
func (l *shmLink) offer(r *Request, v *envelope) {
	if len(r.buf) < nearLeast || l.out.ctl.copies.Load() == 0 {
		return
	}
	s := &l.near
	s.mu.Lock()
	slot := bits.TrailingZeros64(^s.used)
	if slot == nearOffers {
		s.mu.Unlock()
		return
	}
	s.used |= 1 << slot
	s.count++
	o := &s.all[slot]
	o.l, o.slot, o.word, o.buf = l, slot, s.count<<offerBits, r.buf
	s.mu.Unlock()
	o.at().Store(o.word | offerOpen)
	r.offered = o
	v.offer, v.flags, v.grant = true, v.flags|flagNear, grant{stag: uint32(slot)}
	binary.BigEndian.PutUint64(v.grant.token[:], o.word)
	// It does not move: o holds it, and the collector moves nothing.
	binary.BigEndian.PutUint64(v.grant.token[8:], uint64(uintptr(unsafe.Pointer(&o.buf[0]))))
	runtime.KeepAlive(l)
}

// withdraw implements offering.
func (o *nearOffer) withdraw(then func(whole bool)) {
	at := o.at()
	if at.CompareAndSwap(o.word|offerOpen, 0) || at.Load() != o.word|offerTaken {
		then(o.close())
		return
	}
	go func() {
		var gone time.Time // since when the peer is
		for at.Load() == o.word|offerTaken {
			switch {
			case o.l.peer.failure() == nil:
			case gone.IsZero():
				gone = time.Now()
			case time.Since(gone) >= nearGrace:
				at.CompareAndSwap(o.word|offerTaken, 0)
			}
			time.Sleep(nearPatience)
		}
		then(o.close())
	}()
}

// over implements offering.
func (o *nearOffer) over() bool {
	if o.at().Load() != o.word|offerDone {
		return false
	}
	o.close()
	return true
}

// close gives the slot back, and reports whether the receiver has said that it has copied
// all.
func (o *nearOffer) close() (whole bool) {
	l := o.l
	whole = o.at().Swap(0) == o.word|offerDone
	l.near.mu.Lock()
	o.buf = nil
	l.near.used &^= 1 << o.slot
	l.near.mu.Unlock()
	runtime.KeepAlive(l)
	return whole
}

// fetch copies a body that the peer has offered, or asks for it.
func (l *shmLink) fetch(f *fetch) {
	if f.n > nearAtOnce {
		g := *f
		go l.copyBody(&g)
		return
	}
	l.copyBody(f)
}

func (l *shmLink) copyBody(f *fetch) {
	e := l.peer.e
	word := binary.BigEndian.Uint64(f.from.token[:])
	if f.from.stag >= nearOffers || word&offerStates != 0 {
		e.unfetched(f)
		return
	}
	at := &l.in.ctl.offers[f.from.stag]
	if !at.CompareAndSwap(word|offerOpen, word|offerTaken) {
		e.unfetched(f) // and hears that the send was withdrawn
		return
	}
	gone, err := l.copyTo(f, binary.BigEndian.Uint64(f.from.token[8:]))
	switch {
	case gone:
		at.CompareAndSwap(word|offerTaken, word|offerMissed)
		e.fetched(f, true)
	case err == nil && processHolds(l.pid, l.nonceAt, &l.nonce) && at.CompareAndSwap(word|offerTaken, word|offerDone):
		l.peer.rdma.reads.count(f.n)
		e.fetched(f, false)
	default:
		// The peer may be gone, and its process be another one now, or it may have
		// given this one up: then who ends the receive finds its id.
		at.CompareAndSwap(word|offerTaken, word|offerMissed)
		e.unfetched(f)
	}
	runtime.KeepAlive(l)
}

// copyTo copies memory of the peer at addr to the buffer of the receive. It stops if the
// receive has ended or is unmatched, and fails if the peer has ended.
func (l *shmLink) copyTo(f *fetch, addr uint64) (gone bool, err error) {
	r, n := f.r, f.n
	for at := 0; at < n; {
		if why := l.peer.failure(); why != nil {
			return false, why
		}
		k := min(n-at, nearStep)
		r.place.Lock()
		if gone = r.epoch != f.epoch || len(r.buf) < n; !gone {
			err = readProcess(l.pid, addr+uint64(at), r.buf[at:at+k])
		}
		r.place.Unlock()
		if gone || err != nil {
			return gone, err
		}
		at += k
	}
	return false, nil
}

// probe finds out whether this process may copy memory of the peer, and lets the peer
// know.
func (l *shmLink) probe(c *segmentRef) {
	b, err := hex.DecodeString(c.Nonce)
	if err != nil || len(b) != shmNonceLen || c.Probe == 0 {
		return
	}
	l.nonce, l.nonceAt = [shmNonceLen]byte(b), c.Probe
	if processHolds(l.pid, l.nonceAt, &l.nonce) {
		l.in.ctl.copies.Store(1)
	}
}
