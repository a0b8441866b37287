package job

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
func (j *Job) noteLiveness(p *p2p.Peer, answers bool, since time.Duration) {
	p.Liveness.Note(answers, unresponsiveNotice-since, func() { j.reportLiveness(p) })
}

// reportLiveness reports what has changed about p.
func (j *Job) reportLiveness(p *p2p.Peer) {
	p.Liveness.Report(func(unresponsive bool) {
		if unresponsive {
			j.recordPeer(slog.LevelWarn, "peer does not answer", p,
				slog.Duration("for", unresponsiveNotice), slog.Duration("timeout", j.Options.FailureTimeout))
			j.report(p, pmi.PeerSilent, fmt.Sprintf("no answer for %v; it is taken for dead after %v", unresponsiveNotice, j.Options.FailureTimeout))
		} else {
			j.recordPeer(slog.LevelInfo, "peer answers again", p)
			j.report(p, pmi.PeerAnswered, "")
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
func (j *Job) reportDead(p *p2p.Peer) {
	if j.Options.Tolerant && !p.ReportedFailed.Load() {
		j.report(p, pmi.PeerDead, p.Failure().Error())
	}
}

// report reports the state of a peer to `weft run`, which prints what several ranks report
// once, and under another launcher on standard error. Ranks of RunLocal report nothing.
func (j *Job) report(p *p2p.Peer, state pmi.PeerState, why string) {
	if f := j.Options.Reported; f != nil {
		f(j.Rank(), p.Rank, state)
		return
	}
	if c, ok := j.Launcher.(*pmi.Client); ok && c.CanWatch() {
		r := pmi.Report{Rank: p.Rank, State: state, Why: why}
		if p.Remote != nil {
			r.Job, r.Rank, ok = pmi.ParseProcessName(p.Remote.LauncherName)
		}
		if ok {
			_ = c.Report(r) // a launcher that is gone ends this process
		}
		return
	}
	if j.Options.Local || state == pmi.PeerDead { // the program gets the error
		return
	}
	if state == pmi.PeerAnswered {
		why = "answers again"
	}
	fmt.Fprintf(os.Stderr, "mpi: rank %d: rank %d: %s\n", j.Rank(), p.Rank, why)
}
