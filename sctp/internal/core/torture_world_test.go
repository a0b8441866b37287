package core

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime/debug"
	"slices"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// world is two ends that a script of bytes tortures: the first bytes choose the
// options of both, each pair of the others does something to a packet, to the
// clock, to the network or calls the API. See torture_ops_test.go.
type world struct {
	script []byte
	at     int
	rng    *rand.Rand
	now    clock.Time
	end    [2]*tend
	wire   []tflight
	seq    uint64
	mem    *tortureMemory
	slabs  *slab.Pool // nil: packets have no buffer to alias
	trace  func(format string, args ...any)

	// The network.
	cut   map[netip.Addr]bool
	mtu   int        // largest packet; 0 is any
	delay clock.Time // one way
	loss  int        // in 1000
	split bool       // addresses of different networks do not reach each other
	clean bool       // the checksum is what notices corruption

	mayFail bool // an association may end with an error
	ending  bool // messages that are open are to be ended
	hostile bool // forged packets were injected: only invariants hold
	ids     uint32
	sent    map[uint32]*tmsg
}

// tend is one end: an association, a listener behind it, and a user.
type tend struct {
	w        *world
	name     string
	cfg      *Config
	local    []netip.AddrPort
	assoc    *Assoc
	old      []*Assoc
	listener *Listener
	jar      *cookie.Jar
	reading  bool
	requests map[uint32]bool // not answered yet
	last     snapshot
	parts    map[uint64]*tpart // messages read in part
	pieces   []reasm.Piece
	buf      []byte
	read     []byte
	open     map[uint16]*topen // messages given in part
	cutOff   int               // messages that could not be given to their end
	next     map[uint16]uint32 // ordered messages sent, by stream
	order    map[uint16]uint32 // the last of the peer's that came, plus one
	ordered  map[uint16][]*tmsg
	closed   bool // EventDown was seen
	follows  bool // it has made requests whose numbers are not known
	maxMTU   int
	polls    int
}

// tmsg is a message that was sent.
type tmsg struct {
	id       uint32
	from     *tend
	size     int
	sid      uint16
	seq      uint32 // among the ordered ones of its stream
	u        bool
	reliable bool
	void     bool // of before a restart: it may be lost
	early    bool // sent before the number of streams was known
	got      bool
	released int
	err      error
	open     bool // more pieces of it are to come
	pieces   int  // that are not released
}

func (m *tmsg) Released(err error) { m.released++; m.err = err }

// tpart is a message that is being read.
type tpart struct {
	data []byte
	u    bool
	sid  uint16
}

// snapshot is what may only grow.
type snapshot struct {
	assoc *Assoc
	tag   uint32
	peer  uint32
	ack   seq.TSN // cumulative TSN ack point
	cum   seq.TSN // received
	state State
	sent  uint64
}

type tflight struct {
	at  clock.Time
	seq uint64
	to  *tend
	p   Packet
}

// tortureFailure is what a check panics with.
type tortureFailure string

func (w *world) fail(format string, args ...any) {
	panic(tortureFailure(fmt.Sprintf(format, args...)))
}

// tortureMemory is what worlds can use one after the other.
type tortureMemory struct {
	slabs     slab.Pool
	buf, read [2][]byte
}

// torture runs a script and returns what went wrong.
func torture(script []byte, trace func(string, ...any)) error {
	return new(tortureMemory).torture(script, trace)
}

func (mem *tortureMemory) torture(script []byte, trace func(string, ...any)) (err error) {
	w := &world{script: script, trace: trace, mem: mem}
	defer func() {
		switch x := recover().(type) {
		case nil:
		case tortureFailure:
			err = fmt.Errorf("%s", string(x))
		default:
			err = fmt.Errorf("panic: %v\n%s", x, debug.Stack())
		}
	}()
	w.run()
	return nil
}

// byte returns the next byte of the script, 0 at its end.
func (w *world) byte() int {
	if w.at >= len(w.script) {
		return 0
	}
	w.at++
	return int(w.script[w.at-1])
}

func (w *world) more() bool { return w.at < len(w.script) }

func (w *world) seed() (s [32]byte) {
	for i := range s {
		s[i] = byte(w.rng.Uint32())
	}
	return s
}

func (w *world) logf(format string, args ...any) {
	if w.trace != nil {
		w.trace("%v "+format, append([]any{time.Duration(w.now)}, args...)...)
	}
}

func (e *tend) peer() *tend {
	if e == e.w.end[0] {
		return e.w.end[1]
	}
	return e.w.end[0]
}

func (e *tend) ports() (local, peer uint16) {
	if e == e.w.end[0] {
		return portA, portZ
	}
	return portZ, portA
}

// dial makes e a client of the other end.
func (e *tend) dial(addrs int) {
	w := e.w
	local, remote := e.ports()
	a, err := NewClient(e.cfg, w.now, ClientParams{LocalPort: local, PeerPort: remote, Local: e.local,
		Peer: e.peer().local[:min(addrs, len(e.peer().local))], Tag: w.rng.Uint32() | 1, Seed: w.seed(), Cookies: e.jar})
	if err != nil {
		w.fail("NewClient: %v", err)
	}
	e.adopt(a)
}

// adopt makes a the association of e; what the one before has sent may be lost.
func (e *tend) adopt(a *Assoc) {
	if e.assoc != nil {
		e.releasePieces()
		e.assoc.Release()
		e.old = append(e.old, e.assoc)
		e.void()
		clear(e.parts)
		e.cutOff += len(e.open)
		clear(e.open)
	}
	e.assoc, e.closed = a, false
}

// void gives up what both ends have sent so far.
func (e *tend) void() {
	for _, m := range e.w.sent {
		m.void = true
	}
}

func (e *tend) listen() {
	local, _ := e.ports()
	live := func() bool { return e.assoc != nil && e.assoc.State() != Closed }
	e.listener = NewListener(e.cfg, ListenerParams{Port: local, Local: e.local, Seed: e.w.seed(), Cookies: e.jar,
		TagInUse: func(tag uint32) bool { return live() && tag == e.assoc.Tag() },
		TagRetired: func(tag uint32) bool {
			gone := func(a *Assoc) bool { return a != nil && a.State() == Closed && a.Tag() == tag }
			return gone(e.assoc) || slices.ContainsFunc(e.old, gone)
		},
		Find: func(remote netip.AddrPort, _, _ uint16) (uint32, bool) {
			if !live() {
				return 0, false
			}
			return e.assoc.Tag(), confirmedBy(e.assoc, remote)
		}})
}

// flush puts what e has to send on the network and takes its events and
// releases.
func (e *tend) flush() {
	w := e.w
	for k, a := range append(slices.Clip(e.old), e.assoc) {
		if a == nil {
			continue
		}
		for n := 0; ; n++ {
			if n > 5000 {
				w.fail("%s: PollTransmit does not end", e.name)
			}
			if !e.transmit(a) {
				break
			}
		}
		for ev, ok := a.PollEvent(); ok; ev, ok = a.PollEvent() {
			e.event(ev, k == len(e.old))
		}
		for _, r := range a.TakeReleases(nil) {
			r.Owner.Released(r.Err)
		}
	}
	e.old = e.old[:0]
}

// transmit sends one batch.
func (e *tend) transmit(a *Assoc) bool {
	w := e.w
	type window struct{ flight, cwnd int }
	var was [address.MaxPeer]window
	paths := a.paths
	for i := range paths {
		was[i] = window{a.tx.sb.Flight(i), paths[i].cc.Cwnd()}
	}
	permit, awake := a.tx.sb.Permit(), a.state.connected()
	e.buf = slices.Grow(e.buf[:0], MaxPacket)
	room, segs := w.rng.IntN(MaxPacket), 1+w.rng.IntN(20)
	idle := a.Idle(w.now)
	e.polls++
	buf, tx, ok := pollIOVecs(a, w.now, e.buf[:0:room], segs, e.polls%2*e.polls)
	if !ok {
		return false
	}
	if idle {
		w.fail("%s: PollTransmit has %d bytes although idle", e.name, len(buf))
	}
	if tx.Last {
		if more, _, ok := a.PollTransmit(w.now, make([]byte, 0, room), segs); ok {
			w.fail("%s: PollTransmit has %d bytes after the last", e.name, len(more))
		}
	}
	if n := (len(buf) + tx.SegSize - 1) / max(tx.SegSize, 1); n != tx.Segs || tx.Segs == 0 {
		w.fail("PollTransmit: %d bytes in segments of %d are not %d", len(buf), tx.SegSize, tx.Segs)
	}
	// RFC 9260, Section 6.1, B: no new data with cwnd outstanding, which may be
	// exceeded by less than a packet; one more may go regardless.
	for i := range paths {
		e.maxMTU = max(e.maxMTU, paths[i].mtu) // chunks that have a TSN keep their size
		most := max(was[i].cwnd, paths[i].cc.Cwnd()) + 2*e.maxMTU
		if f := a.tx.sb.Flight(i); awake && f > was[i].flight && f > most && !permit && !tx.Fragment {
			w.fail("%s: path %d has %d bytes in flight, had %d, and a window of %d", e.name, i, f, was[i].flight, was[i].cwnd)
		}
	}
	for len(buf) > 0 {
		n := min(tx.SegSize, len(buf))
		e.checkPacket(a, buf[:n], tx)
		w.post(e, Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, ECN: tx.ECN, Data: buf[:n]}, tx.Fragment)
		buf = buf[n:]
	}
	return true
}

// checkPacket checks a packet to be sent.
func (e *tend) checkPacket(a *Assoc, pkt []byte, tx Transmit) {
	w := e.w
	zero := a.peer.features.Has(feature.ZeroChecksum)
	if !zero && !wire.VerifyChecksum(pkt) || len(pkt)%4 != 0 || len(pkt) <= wire.HeaderLen {
		w.fail("%s: bad checksum or length %d", e.name, len(pkt))
	}
	i := a.pathByAddr(tx.Remote)
	data, key := false, -1
	it := wire.NewChunks(pkt[wire.HeaderLen:])
	for it.Next() {
		switch c := it.Chunk(); c.Type {
		case wire.ChunkAuth:
			key = int(binary.BigEndian.Uint16(c.Value))
		case wire.ChunkData, wire.ChunkIData:
			data = true
			e.checkKey(a, seq.TSN(binary.BigEndian.Uint32(c.Value)), key)
		case wire.ChunkSack, wire.ChunkInit, wire.ChunkInitAck, wire.ChunkCookieEcho:
			if data {
				w.fail("%s: control chunks behind DATA: %s", e.name, wire.Describe(pkt))
			}
		}
	}
	if it.Err() != nil {
		w.fail("%s: malformed packet %s", e.name, wire.Describe(pkt))
	}
	// RFC 9260, Section 5.4.
	if i >= 0 && data && a.state.connected() && !a.paths[i].confirmed {
		w.fail("%s: data for an unconfirmed address", e.name)
	}
	if data && i >= 0 && len(pkt) > a.paths[i].mtu && !tx.Fragment {
		w.fail("%s: a packet of %d bytes on a path that takes %d", e.name, len(pkt), a.paths[i].mtu)
	}
}

// event takes note of an event of the association, of a former one if current is
// false.
func (e *tend) event(ev Event, current bool) {
	w := e.w
	if current {
		w.logf("%s: event %v %v", e.name, ev.Kind, ev.Err)
	}
	switch ev.Kind {
	case EventRequestDone:
		if !e.requests[ev.Request] && current && !e.follows {
			w.fail("%s: request %d is done twice, or never was", e.name, ev.Request)
		}
		delete(e.requests, ev.Request)
	case EventRestart:
		e.void()
	case EventDown:
		if current {
			if e.closed {
				w.fail("%s: down twice", e.name)
			}
			e.closed = true
			// An ABORT may overtake a SHUTDOWN COMPLETE; a late COOKIE ECHO finds
			// nobody any more.
			w.checkUnfinished(e)
			late := e.peer().gone() && e.peer().assoc != nil && e.peer().assoc.Err() == nil
			if ev.Err != nil && !w.mayFail && !late {
				w.fail("%s: the association failed: %v", e.name, ev.Err)
			}
		}
	}
}

// post puts a packet on the network.
func (w *world) post(from *tend, p Packet, fragment bool) {
	if w.trace != nil {
		w.logf("%s -> %v %s", from.name, p.Local.Addr(), wire.Describe(p.Data))
	}
	if w.cut[p.Local.Addr()] || w.cut[p.Remote.Addr()] || len(w.wire) >= 1000 ||
		w.loss > 0 && w.rng.IntN(1000) < w.loss || w.mtu > 0 && len(p.Data)+28 > w.mtu && !fragment {
		return
	}
	if x, y := p.Local.Addr().As4(), p.Remote.Addr().As4(); w.split && x[1] != y[1] {
		return
	}
	p.Data = bytes.Clone(p.Data)
	w.seq++
	w.wire = append(w.wire, tflight{w.now + w.delay, w.seq, from.peer(), p})
}

// take takes packet i off the network.
func (w *world) take(i int) tflight {
	f := w.wire[i]
	w.wire = slices.Delete(w.wire, i, i+1)
	return f
}

// confirmedBy reports whether an address is one of the peer of a, and confirmed. If none is
// any will do: the peer has changed its address, and is about to begin anew, which would
// make a second association.
func confirmedBy(a *Assoc, remote netip.AddrPort) bool {
	i := a.pathByIP(remote.Addr())
	return i >= 0 && (a.paths[i].confirmed || !slices.ContainsFunc(a.paths, func(p path) bool { return p.confirmed }))
}

// deliver hands a packet to an end. last ends the receive batch.
func (w *world) deliver(f tflight, last bool) DropReason {
	e, p := f.to, f.p
	h, err := wire.ParseHeader(p.Data)
	if err != nil {
		return DropShort
	}
	if w.trace != nil {
		w.logf("%s <- %s", e.name, wire.Describe(p.Data))
	}
	if w.slabs != nil {
		b := w.slabs.Get()
		p.Data = b.B[:copy(b.B, p.Data)]
		p.Buf = b
		defer b.Release()
	}
	if a := e.assoc; a != nil && a.State() != Closed && (h.VTag == a.Tag() || confirmedBy(a, p.Remote)) {
		d := a.HandlePacket(w.now, &p)
		if last {
			a.EndBatch(w.now)
		}
		return d
	}
	var r Result
	if e.listener != nil {
		r = e.listener.HandlePacket(w.now, &p, nil)
	} else {
		r.Answer = HandleOOTB(nil, &p, nil)
	}
	if len(r.Reply) > 3*len(p.Data) && len(r.Reply) > 2048 {
		w.fail("%d bytes in reply to %d", len(r.Reply), len(p.Data))
	}
	if len(r.Reply) > 0 {
		w.post(e, Packet{Tuple: Tuple{Local: p.Remote, Remote: p.Local}, Data: r.Reply}, false)
	}
	if r.ForTag != 0 {
		r.Drop = e.assoc.HandlePacket(w.now, &p)
		e.assoc.EndBatch(w.now)
	}
	if r.New != nil {
		if a := e.assoc; a != nil && a.State() != Closed && a.pathByIP(p.Remote.Addr()) >= 0 {
			w.fail("%s: a second association with the same peer", e.name)
		}
		e.adopt(r.New)
		r.New.EndBatch(w.now)
	}
	return r.Drop
}

// send sends a message and remembers it.
func (e *tend) send(m *tx.Message, n int) error {
	w := e.w
	w.ids++
	x := &tmsg{id: w.ids, from: e, size: 4 + n, sid: m.SID, u: m.Unordered, early: !e.assoc.state.connected(),
		reliable: m.Lifetime == 0 && !m.LimitRtx && !m.Droppable}
	body := w.body(x.id, x.size)
	if w.rng.IntN(4) == 0 {
		k := min(w.rng.IntN(tx.MaxHeader+1), len(body))
		m.Header, body = body[:k], body[k:]
	}
	if m.Body, m.Owner = body, x; x.id%3 == 0 {
		m.SetRuns(cutIn(body, 1+int(x.id)*37%700))
	}
	if err := e.assoc.Send(w.now, m); err != nil {
		return err
	}
	w.sent[x.id] = x
	if !m.Unordered {
		x.seq = e.next[m.SID]
		e.next[m.SID]++
		e.ordered[m.SID] = append(e.ordered[m.SID], x)
	}
	return nil
}

// cutIn cuts a body into runs of n bytes, with an empty one between each two.
func cutIn(body []byte, n int) (runs [][]byte) {
	for part := range slices.Chunk(body, n) {
		runs = append(runs, part, nil)
	}
	return runs
}

// body returns the contents of a message, which tell its number.
func (w *world) body(id uint32, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(int(id)*31 + i*7)
	}
	binary.BigEndian.PutUint32(b, id)
	return b
}

// consume reads what there is to read.
func (e *tend) consume(limit int) {
	a := e.assoc
	if a == nil || !e.reading {
		return
	}
	if e.cfg.Pieces {
		e.consumePieces(limit)
		return
	}
	e.read = slices.Grow(e.read[:0], 8192)
	for range limit {
		dst := e.read[:1+e.w.rng.IntN(8191)]
		var info reasm.RecvInfo
		n, ok := a.Read(dst, &info)
		if !ok {
			return
		}
		p := e.part(info.Message, info.SID, info.Unordered)
		if uint64(len(p.data)) != info.Offset && !info.Aborted {
			e.w.fail("%s: stream %d: offset %d, want %d", e.name, info.SID, info.Offset, len(p.data))
		}
		p.data = append(p.data, dst[:n]...)
		if info.EOR {
			delete(e.parts, info.Message)
			e.received(p, info.Aborted)
		}
	}
}

func (e *tend) part(msg uint64, sid uint16, u bool) *tpart {
	p := e.parts[msg]
	if p == nil {
		p = &tpart{sid: sid, u: u}
		e.parts[msg] = p
	}
	return p
}

// consumePieces is consume for ends that take fragments; some are kept for a
// while.
func (e *tend) consumePieces(limit int) {
	for range limit {
		var x reasm.Piece
		if !e.assoc.PopPiece(&x) {
			break
		}
		p := e.part(x.Message, x.SID, x.Unordered)
		if uint64(len(p.data)) != x.Offset && !x.Aborted {
			e.w.fail("%s: stream %d: offset %d, want %d", e.name, x.SID, x.Offset, len(p.data))
		}
		p.data = append(p.data, x.Data...)
		if x.End {
			delete(e.parts, x.Message)
			e.received(p, x.Aborted)
		}
		if e.pieces = append(e.pieces, x); e.w.rng.IntN(3) > 0 {
			e.releasePieces()
		}
	}
}

func (e *tend) releasePieces() {
	for i := range e.pieces {
		e.assoc.ReleasePiece(&e.pieces[i])
	}
	e.pieces = e.pieces[:0]
}

// received checks a message that was read: it was sent, to this stream, as it
// is, it has not come before, and no ordered one of its stream was overtaken.
func (e *tend) received(p *tpart, aborted bool) {
	w := e.w
	if w.hostile || aborted {
		return
	}
	var m *tmsg
	if len(p.data) >= 4 {
		m = w.sent[binary.BigEndian.Uint32(p.data)]
	}
	switch {
	case m == nil || m.from == e || m.size != len(p.data) || !bytes.Equal(p.data, w.body(m.id, m.size)):
		w.fail("%s: stream %d: a message of %d bytes that nobody sent", e.name, p.sid, len(p.data))
	case m.sid != p.sid || m.u != p.u:
		w.fail("%s: message %d of stream %d came on stream %d, unordered %v", e.name, m.id, m.sid, p.sid, p.u)
	case m.void: // the peer may have sent it again in the association after
		m.got = true
		return
	case m.got:
		w.fail("%s: message %d came twice", e.name, m.id)
	}
	m.got = true
	w.logf("%s: message %d, stream %d, %d bytes", e.name, m.id, m.sid, m.size)
	if m.u {
		return
	}
	list := e.peer().ordered[m.sid]
	for _, x := range list[min(int(e.order[m.sid]), len(list)):] {
		if x == m {
			break
		}
		if x.reliable && !x.void && !(x.early && x.err == tx.ErrStream) {
			w.fail("%s: stream %d: message %d came before message %d", e.name, m.sid, m.id, x.id)
		}
	}
	if m.seq < e.order[m.sid] {
		w.fail("%s: stream %d: message %d came after a later one", e.name, m.sid, m.id)
	}
	e.order[m.sid] = m.seq + 1
}
