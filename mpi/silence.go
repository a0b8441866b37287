package mpi

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/sctp"
)

// silence is what a rank says about a peer that does not answer.
type silence struct {
	mu     sync.Mutex
	timer  *time.Timer // sets silent; nil while the peer answers
	silent bool        // to be said
	over   bool        // the peer has ended

	saying sync.Mutex // held while something is said
	said   bool       // what was said last is that the peer is silent; guarded by saying
}

// end ends what is said about a peer.
func (s *silence) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// hears notes whether p answers. If not, it has not done so for the time given.
func (w *World) hears(p *peer, answers bool, since time.Duration) {
	s := &p.silence
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
	case !answers && s.timer == nil:
		var t *time.Timer
		t = time.AfterFunc(max(silenceNotice-since, 0), func() {
			s.mu.Lock()
			s.silent = s.silent || s.timer == t
			s.mu.Unlock()
			w.saySilence(p)
		})
		s.timer = t
	case answers && s.timer != nil:
		s.timer.Stop()
		s.timer, s.silent = nil, false
		go w.saySilence(p) // which may wait for the launcher
	}
}

// saySilence says what has changed about p.
func (w *World) saySilence(p *peer) {
	s := &p.silence
	s.saying.Lock()
	defer s.saying.Unlock()
	s.mu.Lock()
	silent, over := s.silent, s.over
	s.mu.Unlock()
	if silent == s.said || over {
		return
	}
	if s.said = silent; silent {
		w.report(p, pmi.PeerSilent, fmt.Sprintf("no answer for %v; it is taken for dead after %v", silenceNotice, w.opts.silence))
	} else {
		w.report(p, pmi.PeerAnswered, "")
	}
}

// firstSilence returns how long a peer that is sent something has not answered when its
// path is down: after that number of timeouts, which double.
func firstSilence(cfg *sctp.Config) time.Duration {
	sum := time.Duration(0)
	rto := min(firstRTO, cfg.RTOMax)
	for range cfg.PathMaxRetransmits + 1 {
		sum += rto
		rto = min(2*rto, cfg.RTOMax)
	}
	return sum
}

// accuse tells the launcher of a fault tolerant job that p is taken for dead: if its
// process still runs it is only to be waited for as long as the others are there.
func (w *World) accuse(p *peer, why error) {
	if w.opts.tolerant && !p.bye.Load() && !p.reportedFailed.Load() && w.usable() == nil {
		w.report(p, pmi.PeerDead, why.Error())
	}
}

// report says something about a peer: to `weft run`, which hears the same from others
// and says it once, and else on standard error. Ranks of RunLocal say nothing.
func (w *World) report(p *peer, state pmi.PeerState, why string) {
	if f := w.opts.reported; f != nil {
		f(w.Rank(), p.rank, state)
		return
	}
	if c, ok := w.boot.(*pmi.Client); ok && c.CanWatch() {
		r := pmi.Report{Rank: p.rank, State: state, Why: why}
		if p.remote != nil {
			r.Job, r.Rank, ok = pmi.ParseProcessName(p.remote.launcherName)
		}
		if ok {
			_ = c.Report(r) // a launcher that is gone ends this process
		}
		return
	}
	if w.opts.local || state == pmi.PeerDead { // the program gets the error
		return
	}
	if state == pmi.PeerAnswered {
		why = "answers again"
	}
	fmt.Fprintf(os.Stderr, "mpi: rank %d: rank %d: %s\n", w.Rank(), p.rank, why)
}
