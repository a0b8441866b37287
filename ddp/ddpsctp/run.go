package ddpsctp

import (
	"encoding/binary"
	"sync"

	"github.com/weftstack/weft/sctp"
)

// maxRun bounds the segments of a run.
const maxRun = 64

// run is segments of one session, with numbers that follow one another: what is done
// for each of them alone takes more than half as long as to copy its payload.
type run struct {
	s    *Session
	ssn  uint16 // of the first
	n    int
	segs [maxRun][]byte
}

var runs = sync.Pool{New: func() any { return new(run) }}

// Receive takes a piece of what the peer sent. A segment may wait for the pieces that
// follow at once: its memory is valid as long. It is called by the lower layer, one call at a time,
// with no lock held.
func (a *Association) Receive(p *sctp.Piece) {
	whole := p.Begin && p.End
	if whole && p.PPID == PPIDSegment && a.collect(p.Stream, p.Data, p.More) {
		return
	}
	a.endRun()
	if whole {
		a.receive(p.Stream, p.PPID, p.Data)
	} else {
		a.fragment(p)
	}
}

// collect makes a segment part of a run, and ends that if no more comes at once. It
// reports false for one that is for receive.
func (a *Association) collect(sid uint16, msg []byte, more bool) bool {
	if int(sid) >= len(a.sessions) || len(msg) < ssnLen {
		return false
	}
	s := a.sessions[sid].Load()
	if s == nil {
		return false
	}
	ssn := binary.BigEndian.Uint16(msg)
	if r := a.run; r != nil && (r.s != s || r.ssn+uint16(r.n) != ssn) {
		a.endRun()
	}
	if a.run == nil {
		if !more {
			return false
		}
		a.run = runs.Get().(*run)
		a.run.s, a.run.ssn = s, ssn
	}
	r := a.run
	r.segs[r.n] = msg[ssnLen:]
	r.n++
	if !more || r.n == maxRun {
		a.endRun()
	}
	return true
}

// endRun has the session take the run, if there is one.
func (a *Association) endRun() {
	r := a.run
	if r == nil {
		return
	}
	a.run = nil
	r.s.segments(r.ssn, r.segs[:r.n])
	clear(r.segs[:r.n])
	r.s, r.n = nil, 0
	runs.Put(r)
}
