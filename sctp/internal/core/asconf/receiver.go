package asconf

import (
	"encoding/binary"
	"net/netip"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/wire"
)

// MaxAcks is how many answers are kept for retransmissions.
const MaxAcks = 8

// Paths is what a [Receiver] asks of its association, for one ASCONF chunk: the paths to the addresses
// of the peer, and the address that the chunk came from.
type Paths interface {
	// From returns the address that the chunk came from.
	From() netip.Addr
	// Find returns the path to an address, or -1.
	Find(ip netip.Addr) int
	// Reaches reports whether packets to an address of this family can leave.
	Reaches(ip netip.Addr) bool
	// Len returns how many paths there are.
	Len() int
	// Add adds a path to an address, and has it verified.
	Add(ip netip.Addr)
	// Remove removes path i, RemoveOthers all the others.
	Remove(i int)
	RemoveOthers(i int)
	// Prefer makes path i the primary one as soon as its address is confirmed.
	Prefer(i int)
}

// Receiver carries out the peer's ASCONF chunks in the order of their numbers, each once, and keeps its
// last answers.
type Receiver struct {
	seq uint32 // Peer-Sequence-Number: of the last one
	// acks are the values of the last ASCONF-ACK chunks, to be sent again for a
	// retransmission.
	acks [MaxAcks]struct {
		seq   uint32
		value []byte
	}
	n, at int
}

// Open begins anew: the association was established or restarted. The peer's first ASCONF has the number
// of its initial TSN.
func (r *Receiver) Open(tsn uint32) { *r = Receiver{seq: tsn - 1} }

// Seq returns the number of the last ASCONF.
func (r *Receiver) Seq() uint32 { return r.seq }

// Handle takes an ASCONF chunk and returns the value of the ASCONF-ACK, of at most room bytes: the one
// that was sent before if the chunk is a retransmission, and nil if it is none that is to be answered
// now (RFC 5061, Section 5.2, E1 to E6). violation says what is wrong with a chunk that ends the
// association.
func (r *Receiver) Handle(x *wire.Asconf, room int, paths Paths) (value []byte, violation string) {
	switch d := int32(x.Seq - r.seq); {
	case d == 1: // E4
		if value, violation = answer(x, room, paths); violation != "" {
			return nil, violation
		}
		r.seq++ // V5
		r.keep(x.Seq, value)
		return value, ""
	case d <= 0: // E2
		return r.find(x.Seq), ""
	}
	return nil, "" // E5
}

// find returns the ASCONF-ACK for seq, nil if there is none.
func (r *Receiver) find(seq uint32) []byte {
	for i := range r.acks[:r.n] {
		if r.acks[i].seq == seq {
			return r.acks[i].value
		}
	}
	return nil
}

func (r *Receiver) keep(seq uint32, value []byte) {
	r.n = max(r.n, r.at+1)
	r.acks[r.at].seq, r.acks[r.at].value = seq, value
	r.at = (r.at + 1) % len(r.acks)
}

// response is the answer to one ASCONF chunk.
type response struct {
	out    []byte // value of the ASCONF-ACK
	room   int    // for it
	failed bool   // something was refused: successes must be told from now on
	closed bool   // F11: additions and deletions are refused from now on
	full   bool   // nothing can be told any more, and so nothing be done
}

// answer carries out the requests of an ASCONF in order and returns the value of the ASCONF-ACK (V1 to
// V4).
func answer(x *wire.Asconf, room int, paths Paths) (value []byte, violation string) {
	r := response{out: binary.BigEndian.AppendUint32(nil, x.Seq), room: room}
	it := wire.NewParams(x.Params)
	for it.Next() && !r.full {
		p := it.Param()
		req, err := wire.ParseAsconfRequest(p)
		known := p.Type == wire.ParamAddIP || p.Type == wire.ParamDeleteIP || p.Type == wire.ParamSetPrimary
		switch {
		case err == wire.ErrType && known:
			// The address is a host name or something else that is none.
			r.refuse(correlation(p), wire.AppendUnresolvableAddress(nil, addrParam(p)))
			r.closed = r.closed || p.Type != wire.ParamSetPrimary
			continue
		case err == wire.ErrType:
			// V2: as the two high bits of the type ask, save for what we know and
			// has no place here: "the parameter MUST be ignored" (Section 4.2).
			switch p.Type {
			case wire.ParamErrorCause, wire.ParamSuccess, wire.ParamAdaptation:
				continue
			}
			if len(p.Value) >= 4 && p.Type.Reported() {
				r.refuse(correlation(p), wire.AppendUnrecognizedParams(nil, p.Raw))
			}
			if p.Type.StopsChunk() {
				return r.out, ""
			}
			continue
		case err != nil:
			return nil, "malformed ASCONF parameter"
		}
		if r.failed && len(r.out)+successLen > r.room {
			r.full = true // its success could not be told
			continue
		}
		if cause := r.change(paths, p, req); cause != nil {
			r.refuse(req.ID, cause)
			// F11: "once a receiver begins failing any ADD or DELETE request, it must
			// fail all subsequent ADD or DELETE requests contained in that single
			// ASCONF."
			r.closed = r.closed || req.Type != wire.ParamSetPrimary
		} else if r.failed {
			r.append(wire.AppendAsconfSuccess(nil, req.ID))
		}
	}
	if it.Err() != nil {
		return nil, "malformed ASCONF"
	}
	return r.out, ""
}

// successLen is the length of a Success Indication.
const successLen = 8

// correlation returns the correlation ID of a request, 0 if it is too short for
// one.
func correlation(p wire.Param) uint32 {
	if len(p.Value) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(p.Value)
}

// refuse reports a failed request. If there is no room it is taken for failed
// all the same, because another one failed before it; and nothing is done from
// then on, because its success could not be told.
func (r *response) refuse(id uint32, cause []byte) {
	b := wire.AppendAsconfError(nil, wire.AsconfError{ID: id, Causes: cause})
	if len(r.out)+len(b) > r.room {
		b = wire.AppendAsconfError(nil, wire.AsconfError{ID: id, Causes: wire.AppendOutOfResource(nil)}) // in short
	}
	r.append(b)
	r.failed = true
}

func (r *response) append(b []byte) {
	if len(r.out)+len(b) <= r.room {
		r.out = append(r.out, b...)
	} else {
		r.full = true
	}
}

// change carries out one request. It returns the cause to refuse it with, or nil.
func (r *response) change(paths Paths, p wire.Param, req wire.AsconfRequest) []byte {
	from := paths.From()
	ip, any := req.Addr.Unmap(), req.Addr.IsUnspecified()
	if any {
		ip = from
	}
	if !address.Usable(ip) {
		return wire.AppendUnresolvableAddress(nil, addrParam(p))
	}
	i := paths.Find(ip)
	switch req.Type {
	case wire.ParamAddIP:
		switch {
		case r.closed:
			return wire.AppendRefused(nil, wire.CauseResourceShortage, p)
		case i >= 0: // it is there already
		case !paths.Reaches(ip):
			return wire.AppendUnresolvableAddress(nil, addrParam(p))
		case paths.Len() >= address.MaxPeer: // F9
			return wire.AppendRefused(nil, wire.CauseResourceShortage, p)
		default:
			paths.Add(ip)
		}
	case wire.ParamDeleteIP:
		switch {
		case r.closed:
			return wire.AppendRefused(nil, wire.CauseResourceShortage, p)
		case any:
			// Section 4.2.2: "all addresses of the peer except the source address
			// of the packet MUST be deleted."
			if i < 0 {
				return wire.AppendRefused(nil, wire.CauseDeleteLastIP, p)
			}
			paths.RemoveOthers(i)
		case i < 0: // it is gone already
		case paths.Len() == 1: // F7
			return wire.AppendRefused(nil, wire.CauseDeleteLastIP, p)
		case ip == from: // F8
			return wire.AppendRefused(nil, wire.CauseDeleteSourceIP, p)
		default: // F13
			paths.Remove(i)
		}
	case wire.ParamSetPrimary:
		// Section 5.4: "If a request arrives that asks the receiver to set an
		// address as primary that does not exist, the receiver SHOULD NOT honor
		// the request".
		if i < 0 {
			return wire.AppendUnresolvableAddress(nil, addrParam(p))
		}
		paths.Prefer(i)
	}
	return nil
}

// addrParam returns the address parameter inside a request.
func addrParam(p wire.Param) wire.Param {
	it := wire.NewParams(p.Value[4:])
	it.Next()
	return it.Param()
}
