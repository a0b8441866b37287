package mpi

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/sctp"
)

// livenessReporter reports when a peer stops answering, and when it answers again.
type livenessReporter struct {
	mu           sync.Mutex
	timer        *time.Timer // sets unresponsive; nil while the peer answers
	unresponsive bool        // the peer has not answered for unresponsiveNotice
	over         bool        // the peer has ended

	reporting sync.Mutex // held during a report
	reported  bool       // unresponsive as last reported; guarded by reporting
}

// end ends the reports about a peer.
func (s *livenessReporter) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// noteLiveness notes whether p answers. If not, since is how long it has not done so.
func (w *World) noteLiveness(p *peer, answers bool, since time.Duration) {
	s := &p.liveness
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
	case !answers && s.timer == nil:
		var t *time.Timer
		t = time.AfterFunc(max(unresponsiveNotice-since, 0), func() {
			s.mu.Lock()
			s.unresponsive = s.unresponsive || s.timer == t
			s.mu.Unlock()
			w.reportLiveness(p)
		})
		s.timer = t
	case answers && s.timer != nil:
		s.timer.Stop()
		s.timer, s.unresponsive = nil, false
		go w.reportLiveness(p) // which may wait for the launcher
	}
}

// reportLiveness reports what has changed about p.
func (w *World) reportLiveness(p *peer) {
	s := &p.liveness
	s.reporting.Lock()
	defer s.reporting.Unlock()
	s.mu.Lock()
	unresponsive, over := s.unresponsive, s.over
	s.mu.Unlock()
	if unresponsive == s.reported || over {
		return
	}
	if s.reported = unresponsive; unresponsive {
		w.recordPeer(slog.LevelWarn, "peer does not answer", p,
			slog.Duration("for", unresponsiveNotice), slog.Duration("timeout", w.opts.failureTimeout))
		w.report(p, pmi.PeerSilent, fmt.Sprintf("no answer for %v; it is taken for dead after %v", unresponsiveNotice, w.opts.failureTimeout))
	} else {
		w.recordPeer(slog.LevelInfo, "peer answers again", p)
		w.report(p, pmi.PeerAnswered, "")
	}
}

// pathDownDelay returns how long a peer has not answered when its path is marked inactive:
// the sum of the retransmission timeouts until then, each twice the one before.
func pathDownDelay(cfg *sctp.Config) time.Duration {
	sum := time.Duration(0)
	rto := min(firstRTO, cfg.RTOMax)
	for range cfg.PathMaxRetransmits + 1 {
		sum += rto
		rto = min(2*rto, cfg.RTOMax)
	}
	return sum
}

// reportDead tells the launcher of a fault-tolerant job that p has failed. If the process
// of p still runs, the launcher waits for it only as long as the other ranks run.
func (w *World) reportDead(p *peer, why *RankError) {
	if w.opts.tolerant && !w.endedWell(p, why) && !p.reportedFailed.Load() {
		w.report(p, pmi.PeerDead, why.Error())
	}
}

// endedWell reports whether the end of the link to p is no failure: p has finalized, this
// World has ended, or Finalize waits for p, which may close the link before its last message
// is sent.
func (w *World) endedWell(p *peer, why *RankError) bool {
	return p.disconnected.Load() || w.usable() != nil || w.finalizing.Load() && why.Err == nil
}

// report reports the state of a peer to `weft run`, which prints what several ranks report
// once, and under another launcher on standard error. Ranks of RunLocal report nothing.
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
