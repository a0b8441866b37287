package asconf

import (
	"fmt"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// Answers reports whether an ASCONF-ACK chunk answers the outstanding ASCONF, with the outcome of each
// of its changes for [Sender.Finish]. F0: legal is false if its number "is greater than or equal to the
// next Sequence Number to be used", for which the association is aborted; one of before is ignored.
func (s *Sender) Answers(x *wire.AsconfAck) (outcome []error, ok, legal bool) {
	if !seq.TSN(x.Seq).Less(seq.TSN(s.nextSeq)) {
		return nil, false, false
	}
	if len(s.chunk) > 0 && x.Seq == s.nextSeq-1 {
		outcome, ok = s.outcomes(x.Params)
	}
	return outcome, ok, true
}

// Finish takes the outcome of the outstanding changes (RFC 5061, Section 5.1, A5 to A8), and begins
// what waits. Addresses that the peer has removed still take packets until late. T4 is to be stopped
// before.
func (s *Sender) Finish(outcome []error, late clock.Time) {
	list := s.changes
	s.changes, s.chunk, s.send, s.mute = nil, s.chunk[:0], false, false
	added := false
	for i, c := range list {
		added = s.apply(c, outcome[i], late) || added
	}
	s.assoc.LocalChanged(added)
	for i, c := range list {
		s.done(c, outcome[i])
	}
	s.Begin()
}

// outcomes returns the error, or nil, of each of the outstanding changes. A7:
// "all TLVs with no response before the failed TLV are considered successful if
// not reported. All TLVs after the failed response are considered unsuccessful
// unless a specific success indication is present".
func (s *Sender) outcomes(params []byte) ([]error, bool) {
	list := make([]error, len(s.changes))
	told := make([]bool, len(s.changes))
	it := wire.NewParams(params)
	for it.Next() {
		p := it.Param()
		var id uint32
		var err error
		switch p.Type {
		case wire.ParamSuccess:
			var bad error
			if id, bad = wire.ParseAsconfSuccess(p); bad != nil {
				return nil, false
			}
		case wire.ParamErrorCause:
			x, bad := wire.ParseAsconfError(p)
			if bad != nil {
				return nil, false
			}
			id, err = x.ID, s.refusal(x)
		default:
			continue
		}
		for i := range s.changes {
			if s.changes[i].corr == id {
				list[i], told[i] = err, true
			}
		}
	}
	if it.Err() != nil {
		return nil, false
	}
	failed := false
	for i := range list {
		if failed && !told[i] {
			list[i] = requests.ErrDenied
		}
		failed = failed || list[i] != nil
	}
	return list, true
}

// refusal returns the error that an Error Cause Indication means.
func (s *Sender) refusal(x wire.AsconfError) error {
	it := wire.NewCauses(x.Causes)
	if !it.Next() {
		return requests.ErrDenied
	}
	switch code := it.Cause().Code; code {
	case wire.CauseUnrecognizedParams:
		for _, c := range s.changes {
			if c.corr == x.ID {
				s.noPrimary = s.noPrimary || c.kind == wire.ParamSetPrimary // F3b
				s.noAddrs = s.noAddrs || c.kind != wire.ParamSetPrimary     // F3a
			}
		}
		return requests.ErrNotSupported
	default:
		return fmt.Errorf("%w: %v", requests.ErrDenied, code)
	}
}

// apply does what the outcome of a change means for our addresses. It reports whether there is a new
// one.
func (s *Sender) apply(c change, err error, late clock.Time) bool {
	switch {
	case c.kind == wire.ParamAddIP && err == nil:
		// F2: it "MAY begin using the added IP address as a source address".
		if !c.addr.Addr().IsUnspecified() && !s.local.Has(c.addr.Addr()) {
			s.local.Add(c.addr)
			return true
		}
	case c.kind == wire.ParamDeleteIP && err != nil:
		s.local.Stay(c.addr)
	case c.kind == wire.ParamDeleteIP:
		s.local.Remove(c.addr, late)
	}
	return false
}
