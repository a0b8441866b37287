package core

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// Constants of path MTU discovery (RFC 8899, Section 5.1). Sizes are those of
// SCTP packets, the payload of a UDP datagram.
const (
	// BaseMTU is BASE_PLPMTU: "a default BASE_PLPMTU of 1200 bytes is
	// RECOMMENDED".
	BaseMTU = 1200
	// maxMTUProbes is MAX_PROBES.
	maxMTUProbes = 3
	// probeTimer is PROBE_TIMER: "This value MUST NOT be smaller than 1 second".
	//
	// Deviation (5.1.1, SHOULD): it is not larger than 15 seconds. A lost probe
	// costs nothing but time, and the RTO tells how long an answer takes.
	probeTimer = clock.Time(time.Second)
	// raiseTimer is PMTU_RAISE_TIMER: "a period of 600 seconds".
	raiseTimer = clock.Time(600 * time.Second)
	// errorTimer is how often the base size is probed in the Error phase.
	errorTimer = clock.Time(5 * time.Second)
	// mtuGain is the least gain worth a probe (Section 5.3.2).
	mtuGain = 16
	// minMTU6 is MIN_PLPMTU of IPv6: "the size at the PL that results in an
	// 1280-byte IPv6 packet".
	minMTU6 = 1280 - 48
)

// commonMTUs are sizes of IP packets that networks are made for, in ascending
// order: "step sizes from a table of common PMTU sizes" (RFC 8899, Section
// 5.3.2). They are, among others, those of IPv6 at least, tunnels, WireGuard,
// PPPoE, Ethernet, FDDI, jumbo frames and InfiniBand.
var commonMTUs = [...]int{1280, 1400, 1420, 1450, 1480, 1492, 1500, 2044, 4352, 9000, 16384, 32768}

// pmtuState is a phase of RFC 8899, Figure 5.
type pmtuState uint8

const (
	pmtuOff pmtuState = iota // DISABLED
	pmtuBase
	pmtuSearch
	pmtuDone // SEARCH_COMPLETE
	pmtuError
)

// pathMTU is path MTU discovery of one path (RFC 8899) with probes of a
// HEARTBEAT and a PAD chunk. The path's mtu is PLPMTU; the path's timerMTU is
// PROBE_TIMER while a probe is out, PMTU_RAISE_TIMER once the search is done.
//
// The search tries the largest size first: mostly the MTU of the interface is
// that of the path, and one round trip tells. After that it goes up by the table
// of common sizes, which costs a round trip each, until one fails, and halves
// what is left.
type pathMTU struct {
	state   pmtuState
	limit   int  // MAX_PLPMTU
	low     int  // the largest size that arrived, 0 if none did
	high    int  // the smallest size that did not
	hopeful bool // the limit was not tried yet
	size    int  // PROBED_SIZE of the next probe
	count   int  // PROBE_COUNT
	pending bool // a probe is to be sent
	out     bool // and was
	heard   bool // something came from the path since
	stalled bool // the path is inactive
	noPad   bool // the peer answers nothing in packets with a PAD chunk
	nonce   uint64
	sent    int // size of the probe that nonce was in
}

func (m *pathMTU) on() bool { return m.state != pmtuOff }

// searchDone reports whether the size of packets is likely to stay what it is.
func (m *pathMTU) searchDone() bool { return m.state != pmtuBase && m.state != pmtuSearch }

// ipOverhead returns the size of the IP and, if there is one, the UDP header on the
// way to an address.
func ipOverhead(a netip.AddrPort) int {
	n := 40
	if a.Addr().Is4() {
		n = 20
	}
	if a.Port() != 0 {
		n += 8
	}
	return n
}

// base returns BASE_PLPMTU of a path, floor MIN_PLPMTU.
func (p *path) base() int {
	if p.plpmtu.on() {
		return min(BaseMTU, p.plpmtu.limit)
	}
	return min(BaseMTU, p.mtu)
}

func (p *path) floor() int {
	if p.Remote.Addr().Is4() {
		return min(MinMTU, p.base())
	}
	return min(minMTU6&^3, p.base())
}

// unquestioned returns the size from which on packets are large: what becomes of them
// does not put in question that the path takes packets of this size.
func (p *path) unquestioned() int {
	if p.mtu <= p.base() || p.plpmtu.on() && p.plpmtu.low == 0 {
		return p.floor()
	}
	return p.base()
}

// watchSizes tells the scoreboard which packets of path i to watch. The base size needs
// proof, which a probe or data may give; what is larger only probes are sent with.
func (a *Assoc) watchSizes(i int) {
	p := &a.paths[i]
	wanted := p.mtu + 1 // none
	if p.plpmtu.on() {
		wanted = max(p.base(), p.plpmtu.low+1)
	}
	a.tx.sb.WatchSizes(i, p.mtu, p.mtu-p.unquestioned(), wanted)
}

// startPMTU begins path MTU discovery on a confirmed path. RFC 8899, Section
// 6.2.1.1: "A sender can therefore enter the BASE state as soon as connectivity
// has been confirmed."
func (a *Assoc) startPMTU(now clock.Time, i int) {
	p := &a.paths[i]
	if !p.par.discover || !p.confirmed || !a.state.heartbeating() {
		return
	}
	p.plpmtu = pathMTU{state: pmtuSearch, limit: p.par.maxMTU, hopeful: true, heard: true, noPad: p.plpmtu.noPad}
	if p.mtu > p.par.maxMTU {
		a.setMTU(i, p.par.maxMTU)
	}
	p.plpmtu.high = p.plpmtu.limit + 4
	a.setMTU(i, p.mtu)
	a.nextProbe(now, i)
}

// choose returns the next size to probe, 0 if there is none worth it. over is
// the size of the headers below SCTP.
func (m *pathMTU) choose(base, over int) int {
	switch {
	case m.hopeful && m.limit > m.low:
		return m.limit
	case m.low == 0:
		return base // Section 5.1.4: confirm the base first
	}
	for _, ip := range commonMTUs {
		if n := (ip - over) &^ 3; n > m.low && n < m.high && n <= m.limit {
			return n
		}
	}
	switch {
	case m.low >= m.limit:
		return 0
	case m.high > m.limit:
		return m.limit // nothing has failed yet
	case m.high-m.low <= mtuGain:
		return 0
	}
	return (m.low + m.high) / 2 &^ 3
}

// nextProbe has the next probe sent, or ends the search.
func (a *Assoc) nextProbe(now clock.Time, i int) {
	p := &a.paths[i]
	m := &p.plpmtu
	m.out = false
	m.size = m.choose(p.base(), ipOverhead(p.Remote))
	if m.size == 0 {
		m.state, m.pending = pmtuDone, false
		wait := now + raiseTimer
		if m.low >= m.limit {
			wait = 0 // there is nothing to raise it to
		}
		a.timers.setPath(timerMTU, i, wait)
		return
	}
	m.pending = true
	a.slow |= slowHeartbeat
	a.timers.setPath(timerMTU, i, 0)
}

// nextProbePaced is nextProbe, but "the interval between probe packets MUST be at
// least one RTT" (RFC 8899, Section 3): what is known of the last probe may not have
// come from the peer.
func (a *Assoc) nextProbePaced(now clock.Time, i int) {
	p := &a.paths[i]
	due := p.probed + p.rto.SRTT()
	if p.probed == 0 || due <= now {
		a.nextProbe(now, i)
		return
	}
	p.plpmtu.out, p.plpmtu.pending = false, false
	a.timers.setPath(timerMTU, i, due)
}

// appendProbe appends the packet with the probe that is due on path i. RFC 8899,
// Section 6.2.1.2: "Probe packets consist of an SCTP common header followed by a
// HEARTBEAT chunk and a PAD chunk."
//
// Deviation: with a peer that discards packets with a chunk that it does not know, where
// RFC 9260, Section 3.2, has it skip a PAD chunk, the HEARTBEAT chunk itself is as long as
// needed. So is the answer, which makes such a probe fail for a short way back, too.
func (a *Assoc) appendProbe(b []byte, now clock.Time, i int) []byte {
	p, at := &a.paths[i], len(b)
	m := &p.plpmtu
	m.pending, m.out, m.heard = false, true, false
	m.nonce, m.sent = a.rng.uint64(), m.size
	var info [heartbeatInfoLen]byte
	binary.BigEndian.PutUint64(info[0:], m.nonce)
	binary.BigEndian.PutUint32(info[8:], p.id)
	binary.BigEndian.PutUint64(info[12:], uint64(now))
	b = wire.AppendHeader(b, a.header())
	if a.auth.Always {
		b = a.auth.Begin(b)
	}
	if m.noPad {
		long := make([]byte, m.size-(len(b)-at)-2*wire.ChunkHeaderLen)
		copy(long, info[:])
		b = wire.AppendHeartbeat(b, wire.Heartbeat{Info: long})
	} else {
		b = wire.AppendHeartbeat(b, wire.Heartbeat{Info: info[:]})
		b = wire.AppendPad(b, m.size-(len(b)-at))
	}
	if a.auth.Always {
		a.auth.Finish(b[at+wire.HeaderLen:])
	}
	a.seal(b, at, i, false)
	p.count.probes++
	p.probed = now
	a.timers.setPath(timerMTU, i, now+max(probeTimer, p.rto.Value()))
	return b
}

// probeAcked takes in a HEARTBEAT ACK of path i, if it answers a probe. "A
// successful probe updates the association and path counters" (Section 6.2.1.2).
func (a *Assoc) probeAcked(now clock.Time, i int, nonce uint64) bool {
	p := &a.paths[i]
	m := &p.plpmtu
	if !m.on() || m.nonce == 0 || nonce != m.nonce {
		return false
	}
	m.nonce, m.count = 0, 0
	a.pathAlive(i)
	m.state, m.hopeful = pmtuSearch, m.hopeful && m.sent < m.limit
	m.low = max(m.low, m.sent)
	if m.low >= m.high {
		m.high = m.limit + 4 // it failed before for another reason
	}
	a.setMTU(i, max(m.low, p.base()))
	a.nextProbe(now, i)
	return true
}

// sizeProven takes in that data was acknowledged that path i carried in a packet of size
// bytes. No probe is needed for that size any more, and none that is not answered counts
// against it: the peer may ignore PAD chunks.
func (a *Assoc) sizeProven(now clock.Time, i, size int) {
	p := &a.paths[i]
	m := &p.plpmtu
	if !m.on() || size <= m.low {
		return
	}
	m.low, m.count = size, 0
	if m.low >= m.high {
		m.high = m.limit + 4
	}
	m.state = pmtuSearch
	a.setMTU(i, max(p.mtu, m.low))
	if m.size <= m.low {
		a.nextProbePaced(now, i)
	}
}

// pmtuTimeout handles the expiry of timerMTU of path i.
func (a *Assoc) pmtuTimeout(now clock.Time, i int) {
	p := &a.paths[i]
	m := &p.plpmtu
	if !m.on() || !a.state.heartbeating() {
		return
	}
	if !p.active {
		m.stalled, m.out = true, false // Figure 5: loss of connectivity
		return
	}
	if !m.out { // PMTU_RAISE_TIMER, or a pause in the Error phase
		if m.state == pmtuDone {
			m.state, m.hopeful, m.high = pmtuSearch, true, m.limit+4
		}
		a.nextProbe(now, i)
		return
	}
	// Section 6.2.1.2: "an unsuccessful probe is discounted (assumed to be a
	// result of choosing too large a PLPMTU)".
	switch {
	case m.hopeful:
		m.hopeful = false // that was a try; it may have been lost by chance
	case m.low == 0 && !m.heard:
		// Nothing at all arrives: the path is at fault and not the size.
		p.hb.pending = p.par.hbInterval >= 0
	default:
		if m.count++; m.count < maxMTUProbes {
			break
		}
		m.count = 0
		if m.low > 0 {
			m.high = m.size
			break
		}
		if m.noPad {
			a.mtuError(now, i)
			return
		}
		m.noPad = true
	}
	a.nextProbe(now, i)
}

// mtuError enters the Error phase: not even the base size works on path i, which
// is used with MIN_PLPMTU from now on. The base is tried again later.
func (a *Assoc) mtuError(now clock.Time, i int) {
	p := &a.paths[i]
	m := &p.plpmtu
	m.state, m.out, m.low, m.high, m.hopeful, m.noPad = pmtuError, false, 0, m.limit+4, false, false
	a.setMTU(i, p.floor())
	a.timers.setPath(timerMTU, i, now+errorTimer)
}

// resumePMTU goes on with a search that stopped when path i became inactive.
func (a *Assoc) resumePMTU(i int) {
	m := &a.paths[i].plpmtu
	m.heard = true
	if m.stalled {
		m.stalled, m.pending = false, m.size > 0
		a.slow |= slowHeartbeat
	}
}

// blackHole gives up the path MTU of path i: large packets do not arrive any more (RFC
// 8899, Section 4.3). Figure 5: "Black hole detected" leads to Base. A size that was
// assumed, without discovery, is given up in the same way, and looked for from then on.
func (a *Assoc) blackHole(now clock.Time, i int) {
	p := &a.paths[i]
	m := &p.plpmtu
	if p.suspect = false; p.mtu <= p.unquestioned() {
		return
	}
	p.count.holes++
	base, limit := p.base(), m.limit
	if !m.on() {
		limit = p.mtu
	}
	*m = pathMTU{state: pmtuBase, limit: limit, high: limit + 4, noPad: m.noPad}
	if p.mtu <= base {
		a.mtuError(now, i)
		return
	}
	a.setMTU(i, base)
	a.nextProbePaced(now, i)
}

// PacketTooBig takes in an ICMP message that says that a packet with a
// verification tag was longer than size on the path to an address. It reports
// whether that changed anything; PollTransmit is due then. RFC 9260, Section 10,
// ICMP6: the tag must be the peer's. RFC 8899, Section 4.6.2: what is larger than
// the packets sent, or smaller than any path can be, is not believed.
func (a *Assoc) PacketTooBig(now clock.Time, addr netip.AddrPort, tag uint32, size int) bool {
	i := a.pathByAddr(unmap(addr))
	if i < 0 || tag == 0 || tag != a.peer.tag || !a.state.heartbeating() {
		return false
	}
	p := &a.paths[i]
	m := &p.plpmtu
	switch {
	case !m.on() || size < p.floor():
	case size < p.base() && p.mtu > p.floor():
		// "PL_PTB_SIZE < BASE_PLPMTU: a PL … MAY enter the error state".
		p.count.holes++
		a.mtuError(now, i)
		return true
	case size < p.mtu && p.mtu > p.base():
		// "BASE_PLPMTU <= PL_PTB_SIZE < PLPMTU: this could be an indication of a
		// black hole … the PLPMTU is reduced to the BASE_PLPMTU".
		p.count.holes++
		*m = pathMTU{state: pmtuBase, limit: m.limit, high: size + 4}
		a.setMTU(i, p.base())
		a.nextProbePaced(now, i)
		return true
	case m.out && size > p.mtu && size < m.sent:
		// "PLPMTU < PL_PTB_SIZE < PROBED_SIZE": the probe was too large.
		m.hopeful, m.count, m.high = false, 0, size+4
		a.nextProbePaced(now, i)
		return true
	}
	return false
}

// setMTU sets the size of the largest packet for path i. What is outstanding
// keeps its size: "once an SCTP message has been sent, it cannot be resegmented"
// (RFC 8899, Section 6.2).
func (a *Assoc) setMTU(i, size int) {
	p := &a.paths[i]
	size = clampMTU(size)
	changed := size != p.mtu
	p.mtu = size
	if a.tx.sb != nil {
		a.watchSizes(i)
	}
	if !changed {
		return
	}
	p.cc.SetMTU(p.pmdcs())
	if p.count.packets == 0 {
		p.cc.Reset() // the initial window depends on the packet size
	}
	a.events.push(Event{Kind: EventPathMTU, Addr: p.Remote})
}

// fixMTU sets the size of the largest packet for path i and stops discovery.
func (a *Assoc) fixMTU(i, size int) {
	p := &a.paths[i]
	p.par.discover, p.plpmtu = false, pathMTU{}
	a.timers.setPath(timerMTU, i, 0)
	a.setMTU(i, size)
}

// SetPathMTU fixes the size of the largest SCTP packet for the path to addr. It
// returns ErrPath if there is no such path.
func (a *Assoc) SetPathMTU(addr netip.AddrPort, size int) error {
	i := a.pathByAddr(unmap(addr))
	if i < 0 {
		return ErrPath
	}
	a.fixMTU(i, size)
	a.recheckSlow()
	return nil
}

// SetPathLimit tells the size of the largest SCTP packet that the interface
// towards addr takes: where path MTU discovery ends. It returns ErrPath if there
// is no such path. PollTransmit is due afterwards.
func (a *Assoc) SetPathLimit(now clock.Time, addr netip.AddrPort, size int) error {
	i := a.pathByAddr(unmap(addr))
	if i < 0 {
		return ErrPath
	}
	p := &a.paths[i]
	if size = clampMTU(size); size == p.par.maxMTU {
		return nil
	}
	p.par.maxMTU = size
	if p.plpmtu.on() {
		a.startPMTU(now, i)
	} else if p.mtu > size {
		a.setMTU(i, size)
	}
	return nil
}

// mtuProbe returns a path on which a probe is due.
func (a *Assoc) mtuProbe() int {
	for i := range a.paths {
		if p := &a.paths[i]; p.plpmtu.pending && p.active && a.state.heartbeating() {
			return i
		}
	}
	return -1
}

// amdcs returns the size of the largest chunk with user data, header included,
// while path d carries the data: RFC 9260, Section 7.3, "The sender SHOULD track
// an AMDCS that will be the smallest PMDCS discovered for all of the peer's
// destination addresses". Paths that are not in use, and not measured yet, do
// not count.
func (a *Assoc) amdcs(d int) int {
	n := a.paths[d].pmdcs()
	for i := range a.paths {
		if p := &a.paths[i]; p.confirmed && p.active && p.plpmtu.searchDone() {
			n = min(n, p.pmdcs())
		}
	}
	return n
}
