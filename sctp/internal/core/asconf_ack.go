package core

import (
	"fmt"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

// handleAsconfAck takes in an ASCONF-ACK (RFC 5061, Section 5.1, A5 to A8).
func (a *Assoc) handleAsconfAck(now clock.Time, c wire.Chunk) {
	s := &a.asc
	x, err := wire.ParseAsconfAck(c)
	if err != nil {
		return
	}
	// F0: an ASCONF-ACK "that is greater than or equal to the next Sequence
	// Number to be used": abort; one of before is ignored.
	if !seq.TSN(x.Seq).Less(seq.TSN(s.nextSeq)) {
		a.abort(wire.AppendIllegalAsconfAck(nil))
		return
	}
	if len(s.chunk) == 0 || x.Seq != s.nextSeq-1 {
		return
	}
	outcome, ok := s.outcomes(x.Params)
	if !ok {
		return
	}
	a.timers.set(timerT4, 0)
	a.errors = 0
	a.pathAlive(s.path)
	ops := s.ops
	s.ops, s.chunk, s.send, s.mute = nil, s.chunk[:0], false, false
	added := false
	for i, op := range ops {
		added = a.applyOp(now, op, outcome[i]) || added
	}
	s.leaving = s.leaving[:0]
	a.rehome(added)
	for i, op := range ops {
		a.opDone(op, outcome[i])
	}
	a.beginAsconf()
}

// outcomes returns the error, or nil, of each of the outstanding changes. A7:
// "all TLVs with no response before the failed TLV are considered successful if
// not reported. All TLVs after the failed response are considered unsuccessful
// unless a specific success indication is present".
func (s *asconf) outcomes(params []byte) ([]error, bool) {
	list := make([]error, len(s.ops))
	told := make([]bool, len(s.ops))
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
		for i := range s.ops {
			if s.ops[i].corr == id {
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
func (s *asconf) refusal(x wire.AsconfError) error {
	it := wire.NewCauses(x.Causes)
	if !it.Next() {
		return requests.ErrDenied
	}
	switch code := it.Cause().Code; code {
	case wire.CauseUnrecognizedParams:
		for _, op := range s.ops {
			if op.corr == x.ID {
				s.noPrimary = s.noPrimary || op.kind == wire.ParamSetPrimary // F3b
				s.noAddrs = s.noAddrs || op.kind != wire.ParamSetPrimary     // F3a
			}
		}
		return requests.ErrNotSupported
	default:
		return fmt.Errorf("%w: %v", requests.ErrDenied, code)
	}
}

// applyOp does what the outcome of a change means for our addresses. It reports
// whether there is a new one.
func (a *Assoc) applyOp(now clock.Time, op asconfOp, err error) bool {
	switch {
	case op.kind == wire.ParamAddIP && err == nil:
		// F2: it "MAY begin using the added IP address as a source address".
		if !op.addr.Addr().IsUnspecified() && !a.hasLocal(op.addr.Addr()) {
			a.local = append(a.local, op.addr)
			return true
		}
	case op.kind == wire.ParamDeleteIP && err != nil:
		a.local = append(a.local, op.addr)
	case op.kind == wire.ParamDeleteIP:
		a.dropLocal(now, op.addr.Addr())
	}
	return false
}

// asconfUnknown ends the use of ASCONF: A9, the peer "did not recognize the
// ASCONF Chunk Type".
func (a *Assoc) asconfUnknown() {
	a.asc.noAsconf = true
	a.failAsconf(requests.ErrNotSupported)
	a.rehome(false)
}
