package sctp

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/internal/udpio"
	"github.com/weftstack/weft/sctp/wire"
)

// minSlabBatch is the batch size below which the core copies payloads rather than
// pin a 64 KiB buffer for them.
const minSlabBatch = 4096

// readRetry is how long a reader waits after an error that is not the end of
// the socket, 10 ms: the next read may fail as well, and at once.
const readRetry = 10 * time.Millisecond

// socket is one socket of a transport.
type socket struct {
	t      *Transport
	conn   udpio.Conn
	direct bool // conn.Direct()

	// mu serialises receiving: reading datagrams and giving them to the cores, so that
	// packets reach their associations in order.
	mu           sync.Mutex
	bufs         [udpio.MaxMessages]*slab.Buf  // guarded by mu, but for the goroutine in conn.Read
	metas        [udpio.MaxMessages]udpio.Meta // likewise
	pkt          core.Packet                   // guarded by mu
	reply        []byte                        // guarded by mu
	last         *Association                  // guarded by mu: where the last packet went
	deferredSACK *Association                  // guarded by mu: has a SACK to process, see processDeferredSACK

	removed atomic.Bool // by RemoveAddr

	refused atomic.Int32 // consecutive polls that found another goroutine reading

	// Owned by the reader, between a read and the next sleep.
	pollMore func(spins bool) (came, over bool) // pollMoreOnce, as a func value that is made once
	reads    int                                // that found something
	polls    bool                               // it has turned suppression on, see startReader
}

func newSocket(t *Transport, c udpio.Conn) *socket {
	s := &socket{t: t, conn: c, direct: c.Direct(), reply: make([]byte, 0, 4096)}
	bufs := s.bufs[:]
	if t.conn != nil {
		bufs = bufs[:t.conn.Batches()]
	}
	for i := range bufs {
		bufs[i] = t.slabs.Get()
	}
	s.pollMore = s.pollMoreOnce
	return s
}

// readLoop receives until the socket is closed.
func (s *socket) readLoop() {
	defer s.t.readers.Done()
	var gap poll.Wait // since datagrams came last
	failures := 0     // of Read, in a row
	for {
		n, err := s.conn.Read(&s.mu, s.bufs[:], s.metas[:])
		if n > 0 {
			failures = 0
			began := s.handle(n)
			if s.conn.CanPoll() {
				gap = s.t.server.PollForMore(gap, int64(began), s.pollMore)
				s.endPolling()
			}
			continue
		}
		if err == nil {
			continue
		}
		if s.t.demux.isClosed() || s.removed.Load() {
			return
		}
		if udpio.IsEnd(err, &failures) {
			s.t.lose(s, err)
			return
		}
		time.Sleep(readRetry)
	}
}

// pollMoreOnce polls the socket once for the reader. It reports over if other goroutines
// poll, or the transport is closed.
func (s *socket) pollMoreOnce(spins bool) (came, over bool) {
	t := s.t
	came = s.poll(true)
	if came {
		s.reads++
	}
	if !s.polls && s.reads >= readsBeforeSuppression && (spins || s.reads >= busyReadsBeforeSuppression) {
		s.polls = t.suppression.startReader(t)
	}
	if s.polls {
		t.suppression.notePoll(t, came)
		over = !t.suppression.readerPolls.Load()
	} else {
		over = t.suppression.on.Load()
	}
	return came, over || t.demux.isClosed()
}

// endPolling is called by the reader before it sleeps.
func (s *socket) endPolling() {
	s.reads = 0
	if s.polls {
		s.polls = false
		s.processDeferredSACK() // if another one polls it may have done so already
		s.t.suppression.stopReader(s.t)
	}
}

// maxRefusals is how many consecutive polls may find another goroutine reading until one
// waits for it, which takes some microseconds.
const maxRefusals = 64

// poll receives once, unless another goroutine is reading. If all is false it may leave out
// the shared socket of a conn with a peer socket. It reports whether datagrams came.
func (s *socket) poll(all bool) bool {
	if !s.mu.TryLock() {
		if s.refused.Add(1) < maxRefusals {
			return false
		}
		// The goroutine that reads may be waiting for this processor.
		s.mu.Lock()
	}
	s.refused.Store(0)
	var n int
	if all {
		n, _ = s.conn.TryRead(s.bufs[:], s.metas[:])
	} else {
		n, _ = s.conn.Poll(s.bufs[:], s.metas[:])
	}
	return s.took(n)
}

// read is poll(true) that waits while another goroutine reads.
func (s *socket) read() bool {
	s.mu.Lock()
	n, _ := s.conn.TryRead(s.bufs[:], s.metas[:])
	return s.took(n)
}

// took handles n GRO batches that were read. It is called with mu locked and unlocks it.
func (s *socket) took(n int) bool {
	if n == 0 {
		s.unlockAndProcessSACK()
		return false
	}
	if n > 1 || !s.receiveSmall() {
		s.handle(n)
	}
	return true
}

// touched is an association that received something in a batch.
type touched struct {
	a            *Association
	packets      int
	deferred     deferred
	idle         bool // it had nothing to send, and its timer is set
	deferredSACK bool // it has a SACK to process

	flushing int32 // of a, while flushList has it
}

// batchAssocs is how many associations of one batch are remembered to be
// flushed together at its end.
const batchAssocs = 32

// handle gives the packets of n GRO batches to their associations, has these answer, and
// returns when it began. A batch costs one clock read, and one lock, one SACK decision and one
// flush for each association in it. It is called with mu locked and unlocks it.
func (s *socket) handle(n int) clock.Time {
	t := s.t
	now := t.now()
	var list [batchAssocs]touched
	done := list[:0]
	cur := touched{}
	late := s.deferredSACK
	s.deferredSACK = nil
	datagrams, bytes := 0, 0
	if t.demux.prefetches() {
		s.prefetchBatch(n)
	}
	for i := range n {
		buf, m := s.bufs[i], &s.metas[i]
		b := buf.B
		if t.cfg.Tap != nil {
			t.tap(false, s.conn.LocalAddr(), m, b)
		}
		bytes += len(b)
		if m.Remote.Port() == 0 && !s.direct {
			t.count.bad.Add(1) // there is no way back, and port 0 means something else
			continue
		}
		local := netip.AddrPortFrom(m.Local, s.conn.LocalAddr().Port())
		if !m.Local.IsValid() {
			local = s.conn.LocalAddr()
		}
		s.pkt = core.Packet{Tuple: core.Tuple{Local: local, Remote: m.Remote}, ECN: m.ECN}
		if len(b) >= minSlabBatch {
			s.pkt.Buf = buf
		}
		for len(b) > 0 {
			d := b
			if m.SegSize > 0 && m.SegSize < len(b) {
				d = b[:m.SegSize]
			}
			b = b[len(d):]
			datagrams++
			s.pkt.Data = d
			// A goroutine that polls is back soon, and processes a deferred SACK then.
			s.pkt.DeferSack = n == 1 && len(d) == len(buf.B) && s.conn.CanPoll() && t.suppression.on.Load()
			if len(d) < 12 { // no SCTP common header
				t.count.bad.Add(1)
				continue
			}
			// This comes before the association is locked, because senders want its lock. Only the
			// association knows whether a checksum of zero is accepted (RFC 9653).
			s.pkt.Verified = binary.LittleEndian.Uint32(d[8:]) != 0 && wire.VerifyInPlace(d)
			tag := binary.BigEndian.Uint32(d[4:])
			if cur.a == nil || tag != cur.a.tag.Load() {
				if cur.a != nil {
					done = cur.leave(now, done)
					cur = touched{}
				}
				a := s.find(tag)
				if a == nil {
					// Handshakes, OOTB packets, and packets to be found by address.
					var made touched
					if a, made = s.outOfTheBlue(now); made.a != nil {
						done = made.note(done)
					}
					if a == nil {
						continue
					}
				}
				cur = touched{a: a}
				a.mu.Lock()
				a.shareMemory()
			}
			cur.packets++
			switch cur.a.core.HandlePacket(now, &s.pkt) {
			case core.DropNone:
				if len(b) >= m.SegSize && m.SegSize > 0 {
					k := cur.a.core.HandleInSequence(now, &s.pkt, b, m.SegSize)
					b = b[k*m.SegSize:]
					datagrams += k
					cur.packets += k
				}
			case core.DropChecksum:
				t.count.bad.Add(1)
			}
		}
	}
	if cur.a != nil {
		done = cur.leave(now, done)
	}
	for i := range n {
		if s.bufs[i].Shared() {
			s.bufs[i].Release()
			s.bufs[i] = t.slabs.Get()
		}
	}
	if cur.deferredSACK {
		s.deferredSACK = cur.a
	}
	s.pkt = core.Packet{}
	s.mu.Unlock()
	t.count.received(datagrams, bytes)
	if len(done) == 1 {
		done[0].finish()
	} else if len(done) > 1 {
		t.finishAll(done)
	}
	if late != nil && late != cur.a {
		late.processDeferredSACK()
	}
	if cur.deferredSACK && !t.suppression.on.Load() {
		s.processDeferredSACK() // suppression may have ended before s.deferredSACK was set
	}
	return now
}

// processDeferredSACK processes the SACK that handle deferred, if any. A goroutine that stops
// polling calls it before it parks.
func (s *socket) processDeferredSACK() {
	s.mu.Lock()
	s.unlockAndProcessSACK()
}

// unlockAndProcessSACK processes the SACK that handle deferred, if any. It is called with mu
// locked and unlocks it.
func (s *socket) unlockAndProcessSACK() {
	late := s.deferredSACK
	s.deferredSACK = nil
	s.mu.Unlock()
	if late != nil {
		late.processDeferredSACK()
	}
}

// processDeferredSACK processes a SACK that was deferred until the answer to the data that it
// came with had left.
func (a *Association) processDeferredSACK() {
	a.mu.Lock()
	if !a.core.HasDeferredSack() { // a sender has processed it, and may have set no timer
		a.arm()
		a.mu.Unlock()
		return
	}
	a.core.ProcessDeferredSack()
	if now := a.t.now(); !a.core.Idle(now) {
		a.runCallbacks(a.flushLocked(now))
		return
	}
	a.arm()
	a.runCallbacks(a.drainAndUnlock())
}

// find looks an association up by its local verification tag.
func (s *socket) find(tag uint32) *Association {
	if a := s.last; a != nil && a.tag.Load() == tag && !a.gone.Load() {
		return a
	}
	a := s.t.demux.byTag(tag)
	if a != nil {
		s.last = a
	}
	return a
}

// leave ends the receive batch of one association, unlocks it and adds it to the list of those
// to finish.
func (c *touched) leave(now clock.Time, list []touched) []touched {
	c.a.core.EndBatch(now)
	c.deferredSACK = c.a.core.HasDeferredSack()
	if c.idle = c.a.core.Idle(now); c.idle {
		c.a.arm()
	}
	c.deferred = c.a.drainAndUnlock()
	return c.note(list)
}

// note adds an association to the list, or finishes it at once if the list is full.
func (c *touched) note(list []touched) []touched {
	for i := range list {
		if list[i].a == c.a {
			list[i].packets += c.packets
			list[i].deferred |= c.deferred
			list[i].idle = c.idle
			return list
		}
	}
	if len(list) == cap(list) {
		c.finish()
		return list
	}
	return append(list, *c)
}

// smallBatch is the number of packets up to which upcalls come before the
// acknowledgement: what they send then carries it.
const smallBatch = 2

// finishAll is finish for several associations, whose answers share GSO batches.
func (t *Transport) finishAll(list []touched) {
	for i := range list {
		if c := &list[i]; c.upcallsFirst() {
			c.a.runCallbacks(c.deferred)
			c.deferred = 0
		}
	}
	t.flushList(list)
	for i := range list {
		list[i].a.runCallbacks(list[i].deferred)
	}
}

// upcallsFirst reports whether upcalls come before packets are sent.
func (c *touched) upcallsFirst() bool {
	return c.packets <= smallBatch && c.deferred&deferredEvents == 0
}

// finish answers a receive batch: it transmits and makes the upcalls. No lock of an association
// is held. The last packets of an association leave before its user learns of the end, because
// the user may close the sockets then.
func (c *touched) finish() {
	if c.idle {
		c.a.runCallbacks(c.deferred)
	} else if !c.upcallsFirst() {
		c.deferred |= c.a.flush()
		c.a.runCallbacks(c.deferred)
	} else {
		c.a.runCallbacks(c.deferred)
		if conn := c.a.t.conn; conn == nil || !conn.deferFlush(c.a) {
			c.a.runCallbacks(c.a.flush())
		}
	}
}
