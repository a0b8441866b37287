package sctptest

import (
	"container/heap"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"
)

// Link holds the parameters of one direction between two addresses. The zero
// Link delivers every packet at once.
type Link struct {
	// Delay is the propagation delay. Jitter adds a random time below it to
	// each packet, without changing their order.
	Delay, Jitter time.Duration

	// Rate, if positive, is the bandwidth in bits per second. Packets wait for
	// one another in a queue of at most Queue bytes (default 256 KiB), then
	// are dropped.
	Rate  int64
	Queue int

	// MarkAt, if positive, is the queue length in bytes from which packets
	// that are ECN capable are marked (RFC 3168).
	MarkAt int

	// Loss is the probability that a packet is lost, independent of others.
	Loss float64

	// BurstEnter is the probability per packet to enter a state in which all
	// packets are lost, BurstLeave that to leave it (default 0.5): losses
	// come in bursts of 1/BurstLeave on average.
	BurstEnter, BurstLeave float64

	// Duplicate is the probability that a packet arrives twice.
	Duplicate float64

	// Reorder is the probability that a packet is overtaken by those sent in
	// the ReorderDelay (default 2 ms) after it.
	Reorder      float64
	ReorderDelay time.Duration

	// Corrupt is the probability that one to three bytes of a packet are
	// changed.
	Corrupt float64

	// MTU, if positive, is the largest packet in bytes, IP and UDP headers
	// included; larger ones are lost.
	MTU int

	// Filter, if not nil, is called for each packet with its UDP payload,
	// which it may read but not keep; false loses the packet. It is called
	// with the link locked and must not send.
	Filter func(payload []byte) bool
}

// Defaults of Link.
const (
	defaultQueue        = 256 << 10
	defaultBurstLeave   = 0.5
	defaultReorderDelay = 2 * time.Millisecond
)

// Counters counts what happened to the packets of one direction.
type Counters struct {
	// Sent and Bytes count packets and UDP payload handed to the link;
	// Delivered those that reached a socket, duplicates included.
	Sent, Bytes, Delivered uint64
	// Lost counts packets lost at random, Cut those sent while the link was
	// cut, Filtered those Filter refused, TooBig those beyond the MTU,
	// QueueDrops those that found the queue full, Unreachable those that no
	// socket was waiting for, Overflow those a socket had no room for.
	Lost, Cut, Filtered, TooBig, QueueDrops, Unreachable, Overflow uint64
	Duplicated, Reordered, Corrupted, Marked                       uint64
}

// add sums two sets of counters.
func (c *Counters) add(d Counters) {
	for _, p := range [][2]*uint64{{&c.Sent, &d.Sent}, {&c.Bytes, &d.Bytes}, {&c.Delivered, &d.Delivered},
		{&c.Lost, &d.Lost}, {&c.Cut, &d.Cut}, {&c.Filtered, &d.Filtered}, {&c.TooBig, &d.TooBig},
		{&c.QueueDrops, &d.QueueDrops}, {&c.Unreachable, &d.Unreachable}, {&c.Overflow, &d.Overflow},
		{&c.Duplicated, &d.Duplicated}, {&c.Reordered, &d.Reordered}, {&c.Corrupted, &d.Corrupted},
		{&c.Marked, &d.Marked}} {
		*p[0] += *p[1]
	}
}

// packet is one datagram on its way.
type packet struct {
	from, to netip.AddrPort
	ecn      uint8
	at       time.Time
	seq      uint64
	b        []byte
}

// link is one direction between two addresses.
type link struct {
	net      *Network
	from, to netip.Addr

	mu     sync.Mutex
	par    Link
	cut    bool
	rng    *rand.Rand
	burst  bool
	last   time.Time // arrival of the last packet in order
	free   time.Time // when the transmitter is done with what it has
	seq    uint64
	flight flight
	timer  *time.Timer
	timed  time.Time // when timer fires, zero if it is not set
	count  Counters
}

// flight is a heap of packets by arrival.
type flight []*packet

func (f flight) Len() int { return len(f) }
func (f flight) Less(i, j int) bool {
	if !f[i].at.Equal(f[j].at) {
		return f[i].at.Before(f[j].at)
	}
	return f[i].seq < f[j].seq
}
func (f flight) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flight) Push(x any)   { *f = append(*f, x.(*packet)) }
func (f *flight) Pop() any {
	old := *f
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*f = old[:len(old)-1]
	return p
}

const udpOverhead4, udpOverhead6 = 28, 48

func overhead(a netip.Addr) int {
	if a.Is4() {
		return udpOverhead4
	}
	return udpOverhead6
}

// send takes a copy of b on its way.
func (l *link) send(from, to netip.AddrPort, b []byte, ecn uint8, fragment bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count.Sent++
	l.count.Bytes += uint64(len(b))
	par := &l.par
	// Every packet draws the same numbers, whatever becomes of it: so the fate
	// of the nth packet does not depend on parameters that do not concern it.
	lost, enter, dup := l.rng.Float64(), l.rng.Float64(), l.rng.Float64()
	reorder, corrupt, jitter := l.rng.Float64(), l.rng.Float64(), l.rng.Float64()
	where := l.rng.Uint64()
	if l.burst {
		leave := par.BurstLeave
		if leave == 0 {
			leave = defaultBurstLeave
		}
		l.burst = enter >= leave
	} else {
		l.burst = enter < par.BurstEnter
	}
	size := len(b) + overhead(to.Addr())
	switch {
	case l.cut:
		l.count.Cut++
		return
	case par.Filter != nil && !par.Filter(b):
		l.count.Filtered++
		return
	case par.MTU > 0 && size > par.MTU && !fragment:
		l.count.TooBig++
		return
	case lost < par.Loss || l.burst:
		l.count.Lost++
		return
	}
	now := time.Now()
	leaves := now
	if par.Rate > 0 {
		leaves = later(l.free, now)
		queued := int(leaves.Sub(now).Seconds() * float64(par.Rate) / 8)
		limit := par.Queue
		if limit == 0 {
			limit = defaultQueue
		}
		if queued+size > limit {
			l.count.QueueDrops++
			return
		}
		if par.MarkAt > 0 && queued >= par.MarkAt && ecn != 0 {
			ecn = 3
			l.count.Marked++
		}
		leaves = leaves.Add(time.Duration(float64(size) * 8e9 / float64(par.Rate)))
		l.free = leaves
	}
	at := later(leaves.Add(par.Delay+time.Duration(jitter*float64(par.Jitter))), l.last)
	if reorder < par.Reorder {
		l.count.Reordered++
		late := par.ReorderDelay
		if late == 0 {
			late = defaultReorderDelay
		}
		at = at.Add(late)
	} else {
		l.last = at
	}
	p := l.put(from, to, b, ecn, at)
	if corrupt < par.Corrupt && len(b) > 0 {
		l.count.Corrupted++
		for i := range where%3 + 1 {
			p.b[(where>>8+i*(where>>40))%uint64(len(b))] ^= byte(1 + where>>(8*i)%255)
		}
	}
	if dup < par.Duplicate {
		l.count.Duplicated++
		l.put(from, to, b, ecn, at)
	}
	l.deliver(now)
}

func (l *link) put(from, to netip.AddrPort, b []byte, ecn uint8, at time.Time) *packet {
	p := newPacket(b)
	p.from, p.to, p.ecn, p.at, p.seq = from, to, ecn, at, l.seq
	l.seq++
	heap.Push(&l.flight, p)
	return p
}

// deliver hands out the packets that have arrived and sets the timer for the
// next. It is called with mu locked; it never blocks.
func (l *link) deliver(now time.Time) {
	for len(l.flight) > 0 && !l.flight[0].at.After(now) {
		p := heap.Pop(&l.flight).(*packet)
		switch l.net.deliver(p) {
		case delivered:
			l.count.Delivered++
		case unreachable:
			l.count.Unreachable++
			p.free()
		case overflow:
			l.count.Overflow++
			p.free()
		}
	}
	if len(l.flight) == 0 {
		return
	}
	next := l.flight[0].at
	if !l.timed.IsZero() && !next.Before(l.timed) {
		return
	}
	l.timed = next
	if l.timer == nil {
		l.timer = time.AfterFunc(next.Sub(now), l.fire)
	} else {
		l.timer.Reset(next.Sub(now))
	}
}

func (l *link) fire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timed = time.Time{}
	l.deliver(time.Now())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Packets of a common size and larger ones come from different pools.
const smallPacket = 2048

var smallPool, bigPool sync.Pool

func newPacket(b []byte) *packet {
	if len(b) <= smallPacket {
		p, _ := smallPool.Get().(*packet)
		if p == nil {
			p = &packet{b: make([]byte, smallPacket)}
		}
		p.b = p.b[:copy(p.b[:smallPacket], b)]
		return p
	}
	p, _ := bigPool.Get().(*packet)
	if p == nil {
		p = &packet{b: make([]byte, 1<<16)}
	}
	p.b = p.b[:copy(p.b[:1<<16], b)]
	return p
}

func (p *packet) free() {
	if cap(p.b) == smallPacket {
		smallPool.Put(p)
	} else {
		bigPool.Put(p)
	}
}
