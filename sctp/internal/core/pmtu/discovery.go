// Package pmtu finds the largest packet that a path takes (RFC 8899): Datagram Packetization
// Layer Path MTU Discovery.
package pmtu

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// Constants of path MTU discovery (RFC 8899, Section 5.1). Sizes are those of
// SCTP packets, the payload of a UDP datagram.
const (
	// MinMTU is MIN_PLPMTU of IPv4: 576 octets less the longest IP header and UDP.
	MinMTU = 508
	// minMTU6 is MIN_PLPMTU of IPv6: "the size at the PL that results in an
	// 1280-byte IPv6 packet".
	minMTU6 = (1280 - 48) &^ 3
	// BaseMTU is BASE_PLPMTU: "a default BASE_PLPMTU of 1200 bytes is
	// RECOMMENDED".
	BaseMTU = 1200
	// MaxProbes is MAX_PROBES.
	MaxProbes = 3
	// probeTimer is PROBE_TIMER: "This value MUST NOT be smaller than 1 second".
	//
	// Deviation (5.1.1, SHOULD): it is not larger than 15 seconds. A lost probe
	// costs nothing but time, and the RTO tells how long an answer takes.
	probeTimer = clock.Time(time.Second)
	// raiseTimer is PMTU_RAISE_TIMER: "a period of 600 seconds".
	raiseTimer = clock.Time(600 * time.Second)
	// errorTimer is how often the base size is probed in the Error phase.
	errorTimer = clock.Time(5 * time.Second)
	// MinGain is the least gain worth a probe (Section 5.3.2).
	MinGain = 16
)

// commonMTUs are sizes of IP packets that networks are made for, in ascending
// order: "step sizes from a table of common PMTU sizes" (RFC 8899, Section
// 5.3.2). They are, among others, those of IPv6 at least, tunnels, WireGuard,
// PPPoE, Ethernet, FDDI, jumbo frames and InfiniBand.
var commonMTUs = [...]int{1280, 1400, 1420, 1450, 1480, 1492, 1500, 2044, 4352, 9000, 16384, 32768}

// State is a phase of RFC 8899, Figure 5.
type State uint8

// The phases of discovery.
const (
	Disabled State = iota
	Base
	Search
	SearchComplete
	Error
)

// Discovery is path MTU discovery of one path. It has no packets and no timer of its own: the
// association sends a probe when one is due, and calls Timeout at the deadline.
//
// The search tries the largest size first: mostly the MTU of the interface is
// that of the path, and one round trip tells. After that it goes up by the table
// of common sizes, which costs a round trip each, until one fails, and halves
// what is left.
type Discovery struct {
	state   State
	hopeful bool  // the limit was not tried yet
	pending bool  // a probe is to be sent
	out     bool  // and was
	heard   bool  // something came from the path since
	stalled bool  // the path is inactive
	noPad   bool  // the peer answers nothing in packets with a PAD chunk
	ip6     bool  // the path is one of IPv6
	resized bool  // PLPMTU or low were set and TakeResized was not called since
	count   uint8 // PROBE_COUNT
	over    uint8 // size of the headers below SCTP
	mtu     int   // PLPMTU
	limit   int   // MAX_PLPMTU
	low     int   // the largest size that arrived, 0 if none did
	high    int   // the smallest size that did not
	size    int   // PROBED_SIZE of the next probe
	sent    int   // size of the last probe, in which nonce was
	nonce   uint64
	sentAt  clock.Time // when the last probe was sent
	// wake is the end of PROBE_TIMER while a probe is out, of PMTU_RAISE_TIMER once the search
	// is done, or of a pause.
	wake clock.Time
}

// New returns the discovery of the path to an address, disabled, with packets of up to size
// bytes.
func New(size int, remote netip.AddrPort) Discovery {
	return Discovery{mtu: size, ip6: !remote.Addr().Is4(), over: ipOverhead(remote)}
}

// ipOverhead returns the size of the IP and, if there is one, the UDP header on the
// way to an address.
func ipOverhead(a netip.AddrPort) uint8 {
	n := uint8(40)
	if a.Addr().Is4() {
		n = 20
	}
	if a.Port() != 0 {
		n += 8
	}
	return n
}

// State returns the phase.
func (d *Discovery) State() State { return d.state }

// On reports whether discovery is enabled.
func (d *Discovery) On() bool { return d.state != Disabled }

// Stable reports whether the size of packets is likely to stay what it is.
func (d *Discovery) Stable() bool { return d.state != Base && d.state != Search }

// MTU returns the size of the largest packet: PLPMTU.
func (d *Discovery) MTU() int { return d.mtu }

// Proven returns the largest size that arrived, 0 if none did.
func (d *Discovery) Proven() int { return d.low }

// Due reports whether a probe is to be sent.
func (d *Discovery) Due() bool { return d.pending }

// Outstanding returns the size of the probe that waits for its answer, 0 if none does.
func (d *Discovery) Outstanding() int {
	if !d.out {
		return 0
	}
	return d.sent
}

// Deadline returns when Timeout is to be called, 0 for never.
func (d *Discovery) Deadline() clock.Time { return d.wake }

// TakeResized reports, once, whether what MTU, Proven or Unquestioned return may have changed.
func (d *Discovery) TakeResized() bool {
	was := d.resized
	d.resized = false
	return was
}

// base returns BASE_PLPMTU of the path, floor MIN_PLPMTU.
func (d *Discovery) base() int {
	if d.On() {
		return min(BaseMTU, d.limit)
	}
	return min(BaseMTU, d.mtu)
}

func (d *Discovery) floor() int {
	if d.ip6 {
		return min(minMTU6, d.base())
	}
	return min(MinMTU, d.base())
}

// Unquestioned returns the size from which on packets are large: what becomes of them
// does not put in question that the path takes packets of this size.
func (d *Discovery) Unquestioned() int {
	if d.mtu <= d.base() || d.On() && d.low == 0 {
		return d.floor()
	}
	return d.base()
}

// Wanted returns the least size of a packet whose arrival would be news. The base size needs
// proof, which a probe or data may give; what is larger only probes are sent with.
func (d *Discovery) Wanted() int {
	if d.On() {
		return max(d.base(), d.low+1)
	}
	return d.mtu + 1 // none
}

// setMTU sets PLPMTU. What is outstanding keeps its size: "once an SCTP message has been
// sent, it cannot be resegmented" (RFC 8899, Section 6.2).
func (d *Discovery) setMTU(size int) { d.mtu, d.resized = size&^3, true }

// Start begins discovery on a confirmed path whose packets have up to limit bytes. RFC 8899,
// Section 6.2.1.1: "A sender can therefore enter the BASE state as soon as connectivity
// has been confirmed."
func (d *Discovery) Start(now clock.Time, limit int) {
	d.restart(Search, limit)
	d.hopeful, d.heard = true, true
	d.setMTU(min(d.mtu, limit))
	d.nextProbe(now)
}

// restart forgets all that was found out, but for whether the peer knows PAD chunks.
func (d *Discovery) restart(s State, limit int) {
	*d = Discovery{state: s, mtu: d.mtu, limit: limit, high: limit + 4, noPad: d.noPad, ip6: d.ip6, over: d.over,
		sentAt: d.sentAt, wake: d.wake}
}

// Fix disables discovery: packets have up to size bytes.
func (d *Discovery) Fix(size int) {
	*d = Discovery{ip6: d.ip6, over: d.over, sentAt: d.sentAt}
	d.setMTU(size)
}

// choose returns the next size to probe, 0 if there is none worth it.
func (d *Discovery) choose() int {
	switch {
	case d.hopeful && d.limit > d.low:
		return d.limit
	case d.low == 0:
		return d.base() // Section 5.1.4: confirm the base first
	}
	for _, ip := range commonMTUs {
		if n := (ip - int(d.over)) &^ 3; n > d.low && n < d.high && n <= d.limit {
			return n
		}
	}
	switch {
	case d.low >= d.limit:
		return 0
	case d.high > d.limit:
		return d.limit // nothing has failed yet
	case d.high-d.low <= MinGain:
		return 0
	}
	return (d.low + d.high) / 2 &^ 3
}

// nextProbe has the next probe sent, or ends the search.
func (d *Discovery) nextProbe(now clock.Time) {
	d.out, d.wake = false, 0
	if d.size = d.choose(); d.size > 0 {
		d.pending = true
		return
	}
	d.state, d.pending = SearchComplete, false
	if d.low < d.limit { // else there is nothing to raise it to
		d.wake = now + raiseTimer
	}
}

// nextProbePaced is nextProbe, but "the interval between probe packets MUST be at
// least one RTT" (RFC 8899, Section 3): what is known of the last probe may not have
// come from the peer.
func (d *Discovery) nextProbePaced(now, rtt clock.Time) {
	if due := d.sentAt + rtt; d.sentAt != 0 && due > now {
		d.out, d.pending, d.wake = false, false, due
		return
	}
	d.nextProbe(now)
}

// Probe notes that the probe that is due is being sent, with a nonce that is not 0, and
// returns how long it must be. pad tells to fill it with a PAD chunk, which the peer ignores.
// RFC 8899, Section 6.2.1.2: "Probe packets consist of an SCTP common header followed by a
// HEARTBEAT chunk and a PAD chunk."
//
// Deviation: with a peer that discards packets with a chunk that it does not know, where
// RFC 9260, Section 3.2, has it skip a PAD chunk, the HEARTBEAT chunk itself is as long as
// needed. So is the answer, which makes such a probe fail for a short way back, too.
func (d *Discovery) Probe(now, rto clock.Time, nonce uint64) (size int, pad bool) {
	d.pending, d.out, d.heard = false, true, false
	d.nonce, d.sent, d.sentAt = nonce, d.size, now
	d.wake = now + max(probeTimer, rto)
	return d.size, !d.noPad
}

// Acked takes in a HEARTBEAT ACK with a nonce. It reports whether that answers a probe: "A
// successful probe updates the association and path counters" (Section 6.2.1.2).
func (d *Discovery) Acked(now clock.Time, nonce uint64) bool {
	if !d.On() || d.nonce == 0 || nonce != d.nonce {
		return false
	}
	d.Resume()
	d.nonce, d.count = 0, 0
	d.state, d.hopeful = Search, d.hopeful && d.sent < d.limit
	d.low = max(d.low, d.sent)
	if d.low >= d.high {
		d.high = d.limit + 4 // it failed before for another reason
	}
	d.setMTU(max(d.low, d.base()))
	d.nextProbe(now)
	return true
}

// DataAcked takes in that data was acknowledged that a packet of size bytes carried. No probe
// is needed for that size any more, and none that is not answered counts against it: the peer
// may ignore PAD chunks.
func (d *Discovery) DataAcked(now, rtt clock.Time, size int) {
	if !d.On() || size <= d.low {
		return
	}
	d.low, d.count = size, 0
	if d.low >= d.high {
		d.high = d.limit + 4
	}
	d.state = Search
	d.setMTU(max(d.mtu, d.low))
	if d.size <= d.low {
		d.nextProbePaced(now, rtt)
	}
}

// Timeout handles the deadline. probing tells whether the association is in a state to probe
// its paths, active whether this one is reachable as far as is known. If silent is true
// nothing at all arrives: the path is at fault and not the size, which a heartbeat can tell.
func (d *Discovery) Timeout(now clock.Time, probing, active bool) (silent bool) {
	d.wake = 0
	switch {
	case !d.On():
		return false
	case !probing:
		d.out = false
		return false
	case !active:
		d.stalled, d.out = true, false // Figure 5: loss of connectivity
		return false
	case !d.out: // PMTU_RAISE_TIMER, or a pause in the Error phase
		if d.state == SearchComplete {
			d.state, d.hopeful, d.high = Search, true, d.limit+4
		}
		d.nextProbe(now)
		return false
	}
	// Section 6.2.1.2: "an unsuccessful probe is discounted (assumed to be a
	// result of choosing too large a PLPMTU)".
	switch {
	case d.hopeful:
		d.hopeful = false // that was a try; it may have been lost by chance
	case d.low == 0 && !d.heard:
		silent = true
	default:
		if d.count++; d.count < MaxProbes {
			break
		}
		d.count = 0
		if d.low > 0 {
			d.high = d.size
			break
		}
		if d.noPad {
			d.noPad = false // the chunk was not at fault, as far as is known
			d.fail(now)
			return false
		}
		d.noPad = true
	}
	d.nextProbe(now)
	return silent
}

// fail enters the Error phase: not even the base size works on the path, which
// is used with MIN_PLPMTU from now on. The base is tried again later.
func (d *Discovery) fail(now clock.Time) {
	d.state, d.out, d.low, d.high, d.hopeful = Error, false, 0, d.limit+4, false
	d.setMTU(d.floor())
	d.wake = now + errorTimer
}

// Resume notes that something came by the path, which goes on with a search that stopped when
// the path became inactive.
func (d *Discovery) Resume() {
	d.heard = true
	if d.stalled {
		d.stalled, d.pending = false, d.size > 0
	}
}

// BlackHole gives up the path MTU: large packets do not arrive any more (RFC
// 8899, Section 4.3). Figure 5: "Black hole detected" leads to Base. A size that was
// assumed, without discovery, is given up in the same way, and looked for from then on. It
// reports whether there was anything to give up.
func (d *Discovery) BlackHole(now, rtt clock.Time) bool {
	if d.mtu <= d.Unquestioned() {
		return false
	}
	base, limit := d.base(), d.limit
	if !d.On() {
		limit = d.mtu
	}
	d.restart(Base, limit)
	if d.mtu <= base {
		d.fail(now)
		return true
	}
	d.setMTU(base)
	d.nextProbePaced(now, rtt)
	return true
}

// PacketTooBig takes in an ICMP message that says that a packet was longer than size. RFC
// 8899, Section 4.6.2: what is larger than the packets sent, or smaller than any path can be,
// is not believed. It reports whether that changed anything, and whether the path MTU had to
// be given up.
func (d *Discovery) PacketTooBig(now, rtt clock.Time, size int) (changed, hole bool) {
	switch {
	case !d.On() || size < d.floor():
	case size < d.base() && d.mtu > d.floor():
		// "PL_PTB_SIZE < BASE_PLPMTU: a PL … MAY enter the error state".
		d.fail(now)
		return true, true
	case size < d.mtu && d.mtu > d.base():
		// "BASE_PLPMTU <= PL_PTB_SIZE < PLPMTU: this could be an indication of a
		// black hole … the PLPMTU is reduced to the BASE_PLPMTU".
		d.restart(Base, d.limit)
		d.high = size + 4
		d.setMTU(d.base())
		d.nextProbePaced(now, rtt)
		return true, true
	case d.out && size > d.mtu && size < d.sent:
		// "PLPMTU < PL_PTB_SIZE < PROBED_SIZE": the probe was too large.
		d.hopeful, d.count, d.high = false, 0, size+4
		d.nextProbePaced(now, rtt)
		return true, false
	}
	return false, false
}

// Verify checks the invariants of discovery.
func (d *Discovery) Verify() error {
	switch {
	case !d.On():
		if d.pending || d.out || d.wake != 0 {
			return fmt.Errorf("pmtu: disabled, but a probe is due, or out, or a timer runs")
		}
		return nil
	case d.mtu&3 != 0 || d.mtu < d.floor() || d.mtu > d.limit:
		return fmt.Errorf("pmtu: packets of up to %d bytes, limits %d and %d", d.mtu, d.floor(), d.limit)
	case d.low >= d.high || d.low > d.limit:
		return fmt.Errorf("pmtu: %d bytes arrive, %d do not, the limit is %d", d.low, d.high, d.limit)
	case d.pending && d.out:
		return fmt.Errorf("pmtu: a probe is due while another is out")
	case d.pending && d.size == 0:
		return fmt.Errorf("pmtu: a probe of no size is due")
	case d.state == SearchComplete && (d.pending || d.out):
		return fmt.Errorf("pmtu: probes although the search is complete")
	case d.out && d.wake == 0:
		return fmt.Errorf("pmtu: no timer for the probe that is out")
	}
	return nil
}
