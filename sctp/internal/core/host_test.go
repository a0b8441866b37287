package core

import (
	"net/netip"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/wire"
)

// host is one end of a pair.
type host struct {
	p        *pair
	name     string
	local    []netip.AddrPort
	cfg      *Config
	assoc    *Assoc
	old      []*Assoc
	listener *Listener
	jar      *cookie.Jar
	events   []Event
	sent     []string // descriptions of packets, oldest first
	out      map[uint16]*ledger
	in       map[uint16]*ledger
	released map[*body]error
	reading  bool // drain received messages as they come
	got      []gotMsg
	buf      []byte
	dests    map[netip.AddrPort]int // where packets with user data went
	dropped  [NumDropReasons]int
	// lostSizes are those of packets that were lost for their size.
	lostSizes    []int
	parts        map[uint16][]byte
	inSequence   int // packets that HandleInSequence took
	unfragmented int // those of them with unfragmented messages
}

type gotMsg struct {
	sid  uint16
	data []byte
	u    bool
}

// ledger remembers the messages of a stream and what became of them.
type ledger struct{ ordered, unordered [][]byte }

type body struct {
	h    *host
	data []byte
	err  error
	n    int
}

func (b *body) Released(err error) { b.n++; b.err = err }

func (p *pair) newHost(name string, cfg *Config, addrs ...string) *host {
	h := &host{p: p, name: name, cfg: cfg, jar: cookie.NewJar(p.seed()), out: map[uint16]*ledger{}, in: map[uint16]*ledger{},
		released: map[*body]error{}, reading: true, parts: map[uint16][]byte{}}
	for _, a := range addrs {
		h.local = append(h.local, netip.MustParseAddrPort(a))
	}
	return h
}

func (h *host) ports() (local, peer uint16) {
	if h.name == "A" {
		return portA, portZ
	}
	return portZ, portA
}

const portA, portZ = 5001, 5002

// dial makes h a client of peer.
func (h *host) dial(peer *host) {
	h.p.t.Helper()
	local, remote := h.ports()
	a, err := NewClient(h.cfg, h.p.now, ClientParams{LocalPort: local, PeerPort: remote, Local: h.local,
		Peer: peer.local[:1], Tag: h.p.rng.Uint32() | 1, Seed: h.p.seed(), Cookies: h.jar})
	if err != nil {
		h.p.t.Fatal(err)
	}
	h.setAssoc(a)
}

func (h *host) setAssoc(a *Assoc) {
	if h.assoc != nil {
		h.old = append(h.old, h.assoc)
	}
	h.assoc = a
}

// listen puts a listener at h.
func (h *host) listen() {
	local, _ := h.ports()
	h.listener = NewListener(h.cfg, ListenerParams{Port: local, Local: h.local, Seed: h.p.seed(), Cookies: h.jar})
}

// pollIOVecs is PollTransmit with parts of messages left out at first that have
// least bytes or more, unless that is 0.
func pollIOVecs(a *Assoc, now clock.Time, buf []byte, segs, least int) ([]byte, Transmit, bool) {
	if least == 0 {
		return a.PollTransmit(now, buf, segs)
	}
	clear(buf[:cap(buf)]) // of what is to be filled in
	holes := make([]slab.IOVec, 0, segs)
	buf, tx, ok := a.PollTransmitGather(now, buf, segs, &holes, least%1000)
	slab.Fill(buf, holes)
	return buf, tx, ok
}

// flush moves what h has to send onto the network.
func (h *host) flush() {
	if h.assoc == nil {
		return
	}
	for _, a := range append(h.old, h.assoc) {
		process := h.p.later.IntN(4) == 0
		for range 100000 {
			// Buffers and batches of any size, as drivers have them.
			h.buf = slices.Grow(h.buf[:0], MaxPacket)
			room, segs := h.p.rng.IntN(MaxPacket), 1+h.p.rng.IntN(20)
			buf, tx, ok := pollIOVecs(a, h.p.now, h.buf[:0:room], segs, segs%2*room)
			if !ok && process && a.HasDeferredSack() {
				a.ProcessDeferredSack()
				continue
			}
			if !ok {
				break
			}
			h.p.checkTransmit(buf, tx)
			for len(buf) > 0 {
				n := min(tx.SegSize, len(buf))
				if m := h.p.net.mtu; m > 0 && n+28 > m && !tx.Fragment {
					h.lostSizes = append(h.lostSizes, n)
					buf = buf[n:]
					continue
				}
				if h.p.net.onFragment != nil && tx.Fragment {
					h.p.net.onFragment()
				}
				h.p.post(h, Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, ECN: tx.ECN, Data: buf[:n]})
				buf = buf[n:]
			}
		}
		for {
			ev, ok := a.PollEvent()
			if !ok {
				break
			}
			h.events = append(h.events, ev)
		}
		for _, r := range a.TakeReleases(nil) {
			r.Owner.Released(r.Err)
		}
	}
	h.p.checkAssoc(h.assoc)
}

// deliver hands a packet to h and what it sends in answer to the network.
func (h *host) deliver(pkt *Packet) DropReason {
	p := h.p
	hd, err := wire.ParseHeader(pkt.Data)
	if err != nil {
		return DropShort
	}
	var d DropReason
	a := h.assoc
	if a != nil && a.State() != Closed && (hd.VTag == a.Tag() || a.pathByIP(pkt.Remote.Addr()) >= 0) {
		pkt.DeferSack = p.later.IntN(2) == 0 // processed in flush or by what comes next
		d = a.HandlePacket(p.now, pkt)
		a.EndBatch(p.now)
	} else {
		var r Result
		if h.listener != nil {
			r = h.listener.HandlePacket(p.now, pkt, nil)
		} else {
			r.Answer = HandleOOTB(h.cfg, pkt, nil)
		}
		d = r.Drop
		if len(r.Reply) > 0 {
			p.post(h, Packet{Tuple: Tuple{Local: pkt.Remote, Remote: pkt.Local}, Data: r.Reply})
		}
		if r.New != nil {
			h.setAssoc(r.New)
			r.New.EndBatch(p.now)
		}
	}
	h.dropped[d]++
	if h.reading {
		h.read()
	}
	return d
}

// deliverBatch is deliver for packets that come in one batch, as a driver has it.
func (h *host) deliverBatch(first *Packet, rest []Packet) {
	p, a := h.p, h.assoc
	hd, err := wire.ParseHeader(first.Data)
	if len(rest) == 0 || err != nil || a == nil || a.State() == Closed || hd.VTag != a.Tag() {
		h.deliver(first)
		for i := range rest {
			h.deliver(&rest[i])
		}
		return
	}
	size := len(first.Data)
	var b []byte
	if p.net.slabs {
		first.Buf = p.slabs.Get()
		defer first.Buf.Release()
		b = first.Buf.B[:0]
	}
	b = append(b, first.Data...)
	for i := range rest {
		b = append(b, rest[i].Data...)
	}
	pkt := *first
	for len(b) > 0 {
		pkt.Data = b[:min(size, len(b))]
		b = b[len(pkt.Data):]
		d := a.HandlePacket(p.now, &pkt)
		h.dropped[d]++
		if d == DropNone {
			n := a.HandleInSequence(p.now, &pkt, b, size)
			b = b[n*size:]
			h.dropped[DropNone] += n
			h.inSequence += n
			if n > 0 && pkt.Data[wire.HeaderLen+1]&flagBegin != 0 {
				h.unfragmented += n
			}
		}
	}
	a.EndBatch(p.now)
	if h.reading {
		h.read()
	}
}

// read takes everything readable and enters it in the ledger.
func (h *host) read() {
	if h.assoc == nil {
		return
	}
	var buf [4096]byte
	for {
		var info reasm.RecvInfo
		n, ok := h.assoc.Read(buf[:], &info)
		if !ok {
			return
		}
		h.parts[info.SID] = append(h.parts[info.SID], buf[:n]...)
		if !info.EOR {
			continue
		}
		msg := h.parts[info.SID]
		delete(h.parts, info.SID)
		if info.Aborted {
			continue
		}
		h.got = append(h.got, gotMsg{info.SID, msg, info.Unordered})
		l := ledgerOf(h.in, info.SID)
		if info.Unordered {
			l.unordered = append(l.unordered, msg)
		} else {
			l.ordered = append(l.ordered, msg)
		}
	}
}

func ledgerOf(m map[uint16]*ledger, sid uint16) *ledger {
	if m[sid] == nil {
		m[sid] = &ledger{}
	}
	return m[sid]
}

// send sends a message of n bytes on a stream and remembers it.
func (h *host) send(sid uint16, n int) *body { return h.sendMsg(&tx.Message{SID: sid}, n) }

func (h *host) sendMsg(m *tx.Message, n int) *body {
	h.p.t.Helper()
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(h.p.rng.Uint32())
	}
	b := &body{h: h, data: data}
	if m.Body, m.Owner, m.Force = data, b, true; n%7 == 0 {
		m.SetRuns(cutIn(data, 1+n%700))
	}
	if err := h.assoc.Send(h.p.now, m); err != nil {
		h.p.t.Fatalf("%s: Send: %v", h.name, err)
	}
	h.released[b] = nil
	l := ledgerOf(h.out, m.SID)
	if m.Unordered {
		l.unordered = append(l.unordered, data)
	} else {
		l.ordered = append(l.ordered, data)
	}
	return b
}

// wantState checks the state of an end.
func (h *host) wantState(want State) {
	h.p.t.Helper()
	if got := h.assoc.State(); got != want {
		h.p.t.Fatalf("%s is in state %v, want %v", h.name, got, want)
	}
}

// wantEvent removes the first event of a kind and returns it.
func (h *host) wantEvent(kind EventKind) Event {
	h.p.t.Helper()
	h.flush()
	for i, e := range h.events {
		if e.Kind == kind {
			h.events = append(h.events[:i:i], h.events[i+1:]...)
			return e
		}
	}
	h.p.t.Fatalf("%s: no event %v among %v", h.name, kind, h.events)
	return Event{}
}

func (h *host) wantNoEvent(kind EventKind) {
	h.p.t.Helper()
	h.flush()
	for _, e := range h.events {
		if e.Kind == kind {
			h.p.t.Fatalf("%s: unexpected event %+v", h.name, e)
		}
	}
}

// packet builds a packet to h as from its peer.
func (h *host) packet(tag uint32, chunks ...[]byte) *Packet {
	local, peer := h.ports()
	b := wire.AppendHeader(nil, wire.Header{SrcPort: peer, DstPort: local, VTag: tag})
	for _, c := range chunks {
		b = append(b, c...)
	}
	wire.SetChecksum(b)
	from := h.p.a
	if h == from {
		from = h.p.z
	}
	return &Packet{Tuple: Tuple{Local: h.local[0], Remote: from.local[0]}, Data: b}
}

// outbox returns the packets h sends now, without letting them reach the peer.
func (h *host) outbox() (list [][]byte) {
	n := len(h.p.wire)
	h.flush()
	for _, f := range h.p.wire[n:] {
		list = append(list, f.p.Data)
	}
	h.p.wire = h.p.wire[:n]
	return list
}
