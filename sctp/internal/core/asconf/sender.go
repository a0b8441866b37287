// Package asconf changes the addresses of an association while it is in use (RFC 5061): a
// [Sender] asks the peer to take up changes of our addresses, a [Receiver] answers what the peer
// asks.
package asconf

import (
	"net/netip"
	"slices"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

// Limits of address changes.
const (
	// MaxChanges is how many changes one ASCONF carries; with their addresses
	// they fit the smallest packet, together with an AUTH chunk.
	MaxChanges = 8
	// MaxQueue bounds the changes of the user that wait.
	MaxQueue = 64
)

// Association is what a [Sender] asks of its association.
type Association interface {
	// CanSend reports whether the association is in a state in which an ASCONF may be sent.
	CanSend() bool
	// DataPath returns the path of new data, and OtherPath where to send again what was not
	// answered on path i.
	DataPath() int
	OtherPath(i int) int
	// MaySendTo reports whether control chunks may go to path i: it is confirmed, or none is.
	MaySendTo(i int) bool
	// LocalChanged is called when the local addresses have changed; added tells that there is a
	// new one.
	LocalChanged(added bool)
	// Done tells the outcome of a request of the user.
	Done(id uint32, err error)
}

// Sender asks the peer for the changes of our addresses, by ASCONF chunks of which one is
// outstanding at a time. The zero Sender has no requests, and takes none until it is opened.
type Sender struct {
	local   *address.Local
	numbers *requests.Numbers
	assoc   Association

	nextSeq uint32
	corr    uint32
	queue   []change
	changes []change // of the outstanding chunk
	chunk   []byte   // that chunk; empty: none is outstanding
	tries   int      // expirations of T4 in a row
	path    int      // where chunk goes
	send    bool     // chunk is to be sent
	sent    bool     // it is in the packet being built
	// mute is true while all our addresses are being replaced, so that nothing may be sent
	// without the ASCONF until the peer has answered.
	mute bool
	// What the peer does not understand (Section 5.1, A9, and 5.3, F3a and F3b).
	noAsconf, noAddrs, noPrimary bool
}

// Open begins anew, without requests: the association was established or restarted. RFC 5061,
// Section 5.1, A2: "The Sequence Number MUST be initialized at the start of the association to the
// same value as the Initial Transmission Sequence Number", which is tsn.
func (s *Sender) Open(local *address.Local, numbers *requests.Numbers, assoc Association, tsn uint32) {
	*s = Sender{local: local, numbers: numbers, assoc: assoc, nextSeq: tsn}
}

// Fail ends all requests; addresses on their way out are in use again. T4 is to be stopped.
func (s *Sender) Fail(err error) {
	for _, c := range slices.Concat(s.changes, s.queue) {
		s.done(c, err)
	}
	for _, c := range s.changes {
		if c.kind == wire.ParamDeleteIP {
			s.local.Stay(c.addr)
		}
	}
	s.changes, s.queue, s.chunk, s.send, s.mute = nil, nil, nil, false, false
}

// Unsupported ends the use of ASCONF: A9, the peer "did not recognize the ASCONF Chunk Type".
func (s *Sender) Unsupported() {
	s.noAsconf = true
	s.Fail(requests.ErrNotSupported)
}

// done notes the outcome of a change.
func (s *Sender) done(c change, err error) {
	r := c.req
	if r.err == nil {
		r.err = err
	}
	if r.left--; r.left == 0 {
		s.assoc.Done(r.id, r.err)
	}
}

// Begin makes an ASCONF chunk of the changes that wait, if none is outstanding (RFC 5061,
// Section 5.1, A1 to A3).
func (s *Sender) Begin() {
	for len(s.chunk) == 0 && len(s.queue) > 0 && s.assoc.CanSend() {
		s.begin()
	}
}

func (s *Sender) begin() {
	n := 0
	for n < len(s.queue) {
		same := n + 1
		for same < len(s.queue) && s.queue[same].req == s.queue[n].req {
			same++
		}
		if same > MaxChanges {
			break
		}
		n = same
	}
	list := slices.Clone(s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	x := wire.Asconf{Seq: s.nextSeq, Addr: s.local.Known()}
	left := len(s.local.InUse)
	for _, c := range list {
		switch c.kind {
		case wire.ParamAddIP:
			if !c.addr.Addr().IsUnspecified() {
				left++
			}
		case wire.ParamDeleteIP:
			// F5; what was to come in its place may have been refused meanwhile.
			if left <= 1 {
				s.done(c, ErrLastAddr)
				continue
			}
			left--
			s.local.Leave(c.addr)
		}
		c.corr = s.corr
		s.corr++
		x.Params = wire.AppendAsconfRequest(x.Params, wire.AsconfRequest{Type: c.kind, ID: c.corr, Addr: c.addr.Addr()})
		s.changes = append(s.changes, c)
	}
	if len(s.changes) == 0 {
		return
	}
	s.nextSeq++
	s.mute = len(s.local.InUse) == 0
	s.assoc.LocalChanged(false)
	s.chunk = wire.AppendAsconf(s.chunk[:0], x)
	s.send, s.tries, s.path = true, 0, s.assoc.DataPath()
}

// Muted reports whether all our addresses are being replaced, so that nothing may be sent without
// the ASCONF.
func (s *Sender) Muted() bool { return s.mute }

// Due reports whether the outstanding ASCONF is to be sent.
func (s *Sender) Due() bool { return s.send }

// DueTo reports whether it goes with the next packet to path i.
func (s *Sender) DueTo(i int) bool { return s.send && s.path == i }

// Outstanding reports whether an ASCONF is not answered yet, sent or to be sent.
func (s *Sender) Outstanding() bool { return len(s.chunk) > 0 }

// Pending returns how many changes wait or are outstanding.
func (s *Sender) Pending() int { return len(s.queue) + len(s.changes) }

// Busy reports whether packets are to be built with the Sender in mind: a change waits, an ASCONF is
// to be sent or was just appended, or all our addresses are being replaced.
func (s *Sender) Busy() bool { return s.mute || s.sent || s.send || len(s.queue) > 0 }

// Chunk returns the outstanding ASCONF chunk, which aliases the Sender's memory; it is empty if there is none.
func (s *Sender) Chunk() []byte { return s.chunk }

// NextSeq returns the number of our next ASCONF.
func (s *Sender) NextSeq() uint32 { return s.nextSeq }

// Path returns where the outstanding ASCONF goes.
func (s *Sender) Path() int { return s.path }

// MovePath gives another path what goes to path i, which is removed.
func (s *Sender) MovePath(i, to int) {
	if s.path == i {
		s.path = to
	}
}

// NextPath begins what waits, and returns the path that an ASCONF is to go to now.
func (s *Sender) NextPath() (int, bool) {
	if len(s.queue) > 0 {
		s.Begin()
	}
	if s.send && !s.maySendTo(s.path) {
		s.path = s.assoc.DataPath() // the old one is worse than it was
	}
	return s.path, s.send
}

// maySendTo reports whether an ASCONF may go to path i. It may go to an address that is not
// confirmed only if none is: both ends may be changing all their addresses at the same time.
func (s *Sender) maySendTo(i int) bool { return s.mute || s.assoc.MaySendTo(i) }

// Append appends the outstanding ASCONF, if it is to go to path i and fits into room bytes, and
// reports whether it did.
func (s *Sender) Append(b []byte, i, room int) ([]byte, bool) {
	if !s.DueTo(i) || len(s.chunk) > room || !s.maySendTo(i) {
		return b, false
	}
	s.send, s.sent = false, true
	return append(b, s.chunk...), true
}

// TakeSent reports, once, whether an ASCONF is in the packet that was built.
func (s *Sender) TakeSent() bool {
	sent := s.sent
	s.sent = false
	return sent
}

// Source returns the local address to send an ASCONF from to an IPv4 or IPv6 address, if it is not
// the usual one of the path: F6, none that is being deleted; and F1, a new one only for this. It
// takes turns, because either may be of no use.
func (s *Sender) Source(v4 bool) (netip.AddrPort, bool) {
	if !s.mute && s.tries%2 == 0 {
		return netip.AddrPort{}, false
	}
	for _, c := range s.changes {
		if ip := c.addr.Addr(); c.kind == wire.ParamAddIP && !ip.IsUnspecified() && ip.Is4() == v4 {
			return c.addr, true
		}
	}
	return netip.AddrPort{}, false
}

// Adding reports whether the peer was asked to add ip, which a wildcard may stand for. RFC 5061,
// Section 5.3, F14: while it is being added, data to an address "MUST NOT" be treated as out of the
// blue.
func (s *Sender) Adding(ip netip.Addr) bool {
	return slices.ContainsFunc(s.changes, func(c change) bool {
		return c.kind == wire.ParamAddIP && (c.addr.Addr() == ip || c.addr.Addr().IsUnspecified())
	})
}

// SendTo has the outstanding ASCONF sent again, to path i.
func (s *Sender) SendTo(i int) { s.send, s.path = true, i }

// Hold keeps the outstanding ASCONF from being sent.
func (s *Sender) Hold() { s.send = false }

// Retry has the outstanding ASCONF sent again, unchanged, after T4 expired (RFC 5061, Section 5.1,
// B1 to B5).
func (s *Sender) Retry() {
	if s.tries++; s.tries%2 == 0 {
		s.path = s.assoc.OtherPath(s.path)
	}
	if !s.maySendTo(s.path) {
		s.path = s.assoc.DataPath()
	}
	s.send = true
}
