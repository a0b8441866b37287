package mpi

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weftstack/weft/sctp"
)

const (
	// DefaultSilence is the default of WithSilence in a fault tolerant job, which can do
	// without a rank that does not answer.
	DefaultSilence = 3 * time.Second
	// PatientSilence is the default of WithSilence in other jobs, which end with any of
	// their ranks: they live through a suspended machine or a switch that starts anew.
	PatientSilence = time.Minute
	// unresponsiveNotice is after how long without an answer a peer is reported.
	unresponsiveNotice = 3 * time.Second
	// LocalSilence is the default of WithSilence in RunLocal: its ranks are one process,
	// and one of them that does not answer waits for a processor.
	LocalSilence = 30 * time.Second
	// MinSilence is the least value of WithSilence.
	MinSilence = 500 * time.Millisecond
	// maxHeartbeat is the longest pause between probes of an idle peer.
	maxHeartbeat = time.Second
	// heartbeatPerRank stretches the pauses in large jobs.
	heartbeatPerRank = 2 * time.Millisecond
	// firstRTO is the timeout after which a packet on a fast network is first
	// sent again.
	firstRTO = 200 * time.Millisecond
	// rtosPerTimeout is the failure-detection timeout divided by the longest
	// retransmission timeout. A peer is taken for dead after so many lost packets, and
	// after this process has had the processor so many times.
	rtosPerTimeout = 6
	// pathRetransmits is after how many timeouts a peer with several addresses is probed
	// at the others.
	pathRetransmits = 2
	// minInitRetransmits is the least bound of attempts to connect, which with short
	// timeouts would be over soon. A context ends them, too.
	minInitRetransmits = 30
)

// WithFaultTolerance makes a job one that can do without some of its ranks:
// Finalize waits for those that are alive only. In RunLocal, a rank whose
// function returns an error is then taken for dead, without ending the others.
// All ranks must agree on it. `weft run -ft` sets it by WEFT_FT=1.
func WithFaultTolerance() Option {
	return func(o *options) error {
		o.tolerant = true
		return nil
	}
}

// WithSilence sets after how long without an answer a peer is taken for dead:
// not before, and at most half as long again and a second after (default
// PatientSilence, with WithFaultTolerance DefaultSilence, in RunLocal LocalSilence);
// with several addresses perhaps a tenth sooner. After 3 s `weft run` says on standard
// error who is silent, as does the rank itself under another launcher, and says when
// it answers again. An idle peer is probed for it. It is for hosts and networks that fail, and launchers that do not tell when a process ends; the end of a
// process is otherwise noticed much sooner. A process that is stopped for so
// long counts as dead, but not over TCP, where its system answers for it. With
// round trips longer than a sixth of it, give more. What WithSCTP sets has
// precedence.
func WithSilence(d time.Duration) Option {
	return func(o *options) error {
		if d < MinSilence {
			return fmt.Errorf("%w: silence of %v", ErrOption, d)
		}
		o.failureTimeout = d
		return nil
	}
}

// timeouts completes cfg so that an association of a job of size ranks ends
// when its peer has not answered for the failure-detection timeout. Timeouts count, not time: what this process
// does not do while it has no processor is not held against the peer.
func (o *options) timeouts(cfg *sctp.Config, size int) {
	if cfg.HeartbeatInterval == 0 {
		cfg.HeartbeatInterval = max(min(o.failureTimeout/10, maxHeartbeat), time.Duration(size)*heartbeatPerRank)
		cfg.HeartbeatRetry = true
	}
	if cfg.RTOMax == 0 {
		longest := o.failureTimeout
		if o.local || o.defaultTimeout { // who is back after a while is noticed soon
			longest = min(longest, DefaultSilence)
		}
		cfg.RTOMax = max(longest/rtosPerTimeout, firstRTO)
	}
	if cfg.MaxRetransmits == 0 {
		n := 0
		for rto, sum := firstRTO, time.Duration(0); sum < o.failureTimeout; n++ {
			sum += rto
			rto = min(2*rto, cfg.RTOMax)
		}
		cfg.MaxRetransmits = n - 1
	}
	if cfg.PathMaxRetransmits == 0 {
		cfg.PathMaxRetransmits = min(pathRetransmits, cfg.MaxRetransmits)
	}
	if cfg.MaxInitRetransmits == 0 {
		cfg.MaxInitRetransmits = max(minInitRetransmits, cfg.MaxRetransmits)
	}
}

// errKilled is what links of a rank that is taken for dead end with.
var errKilled = errors.New("mpi: this rank has died")

// die makes a rank of this process look dead to the others.
func (w *World) die(why error) {
	w.record(slog.LevelWarn, "this rank ends as failed", cause(why))
	w.end(fmt.Errorf("%w: %w", errKilled, why))
	for _, p := range w.eng.all() {
		if p.link != nil {
			p.link.abort("died")
		}
	}
}

// peerDown is what the parts of a World do when a peer is gone.
func (w *World) peerDown(p *peer, err error) {
	p.liveness.end()
	failed := p.failed.Load()
	w.recordDown(p, failed)
	w.reportDead(p, failed)
	w.ft.down()
	if d := w.rma.open.Load(); d != nil && !p.disconnected.Load() {
		d.rankDown(int(p.handle), err)
		d.mu.Lock()
		bulk := d.bulk
		d.mu.Unlock()
		if bulk != nil {
			bulk.rankDown(p)
		}
	}
	w.eng.remoteDown(p)
}

// exitGrace is how long a program has to notice that its launcher is gone.
const exitGrace = 5 * time.Second

// rankDied is called when the launcher says that a rank has died. It reports
// false if the links are not up yet.
func (w *World) rankDied(rank int, why string) bool {
	if !w.joined.Load() {
		return false
	}
	w.eng.peers[rank].markFailed(why)
	return true
}

// launcherLost is called when the connection to `weft run` has ended. Like its
// other children the process is not to outlive it.
func (w *World) launcherLost(err error) {
	w.record(slog.LevelError, "launcher is gone", cause(err))
	w.end(fmt.Errorf("%w: %w", ErrAborted, err))
	for _, p := range w.eng.all() {
		if w.joined.Load() && p.link != nil {
			p.link.abort("the launcher is gone")
		}
	}
	time.AfterFunc(exitGrace, func() {
		fmt.Fprintf(os.Stderr, "mpi: rank %d: %v\n", w.Rank(), err)
		os.Exit(1)
	})
}
