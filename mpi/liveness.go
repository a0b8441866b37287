package mpi

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/sctp"
)

// noteLiveness notes whether p answers. If not, since is how long it has not done so.
func (w *World) noteLiveness(p *p2p.Peer, answers bool, since time.Duration) {
	p.Liveness.Note(answers, unresponsiveNotice-since, func() { w.reportLiveness(p) })
}

// reportLiveness reports what has changed about p.
func (w *World) reportLiveness(p *p2p.Peer) {
	p.Liveness.Report(func(unresponsive bool) {
		if unresponsive {
			w.recordPeer(slog.LevelWarn, "peer does not answer", p,
				slog.Duration("for", unresponsiveNotice), slog.Duration("timeout", w.opts.failureTimeout))
			w.report(p, pmi.PeerSilent, fmt.Sprintf("no answer for %v; it is taken for dead after %v", unresponsiveNotice, w.opts.failureTimeout))
		} else {
			w.recordPeer(slog.LevelInfo, "peer answers again", p)
			w.report(p, pmi.PeerAnswered, "")
		}
	})
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
func (w *World) reportDead(p *p2p.Peer, why error) {
	if w.opts.tolerant && !w.endedWell(p, why) && !p.ReportedFailed.Load() {
		w.report(p, pmi.PeerDead, why.Error())
	}
}

// endedWell reports whether the end of the link to p is no failure: p has finalized, this
// World has ended, or Finalize waits for p, which may close the link before its last message
// is sent.
func (w *World) endedWell(p *p2p.Peer, why error) bool {
	return p.Disconnected.Load() || w.usable() != nil || w.finalizing.Load() && cleanEnd(why)
}

// cleanEnd reports whether why, the error of a peer that has failed, names no reason.
func cleanEnd(why error) bool {
	re, ok := why.(*RankError)
	return ok && re.Err == nil
}

// report reports the state of a peer to `weft run`, which prints what several ranks report
// once, and under another launcher on standard error. Ranks of RunLocal report nothing.
func (w *World) report(p *p2p.Peer, state pmi.PeerState, why string) {
	if f := w.opts.reported; f != nil {
		f(w.Rank(), p.Rank, state)
		return
	}
	if c, ok := w.boot.(*pmi.Client); ok && c.CanWatch() {
		r := pmi.Report{Rank: p.Rank, State: state, Why: why}
		if p.Remote != nil {
			r.Job, r.Rank, ok = pmi.ParseProcessName(p.Remote.LauncherName)
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
	fmt.Fprintf(os.Stderr, "mpi: rank %d: rank %d: %s\n", w.Rank(), p.Rank, why)
}
