package mpi

import (
	"fmt"
	"time"

	"github.com/weftstack/weft/sctp"
)

const (
	// DefaultSilence is the default of WithSilence in a fault-tolerant job, which survives the
	// failure of a rank.
	DefaultSilence = 3 * time.Second
	// PatientSilence is the default of WithSilence in other jobs, which end with any of their
	// ranks: they survive a suspended machine or a switch that restarts.
	PatientSilence = time.Minute
	// unresponsiveNotice is how long a peer may not answer before that is reported.
	unresponsiveNotice = 3 * time.Second
	// LocalSilence is the default of WithSilence in RunLocal: its ranks are one process, and one
	// that does not answer waits for a processor.
	LocalSilence = 30 * time.Second
	// MinSilence is the least value of WithSilence.
	MinSilence = 500 * time.Millisecond
	// maxHeartbeat is the longest interval between heartbeats to an idle peer, except in large
	// jobs.
	maxHeartbeat = time.Second
	// heartbeatPerRank times the number of ranks is the least interval between heartbeats.
	heartbeatPerRank = 2 * time.Millisecond
	// firstRTO is the first retransmission timeout on a fast network.
	firstRTO = 200 * time.Millisecond
	// rtosPerTimeout is the failure-detection timeout divided by the longest retransmission
	// timeout. A peer is taken for failed only after so many lost packets, and after this process
	// has had the processor so many times.
	rtosPerTimeout = 6
	// pathRetransmits is the number of timeouts after which a peer with several addresses is probed
	// at the other addresses.
	pathRetransmits = 2
	// minInitRetransmits is the least bound of attempts to connect, which would end soon with short
	// timeouts. A context ends them, too.
	minInitRetransmits = 30
)

// WithFaultTolerance makes the job survive the failure of ranks: Finalize waits for the survivors
// only. In RunLocal, a rank whose function returns an error then counts as failed, and the others
// go on. All ranks must agree on it. `weft run -ft` sets it by WEFT_FT=1.
func WithFaultTolerance() Option {
	return func(o *options) error {
		o.tolerant = true
		return nil
	}
}

// WithSilence sets the failure-detection timeout: how long a peer may not answer before it is taken
// for failed (default [PatientSilence], with [WithFaultTolerance] [DefaultSilence], in RunLocal
// [LocalSilence]). The failure is detected after the timeout, and at most half as long again and a
// second after it; with several addresses perhaps a tenth sooner. An idle peer is probed by
// heartbeats.
//
// After 3 s `weft run` reports on standard error which rank does not answer, and when it answers
// again; under another launcher the rank does so itself.
//
// It is meant for hosts and networks that fail, and for launchers that do not report the end of a
// process, which is otherwise detected much sooner. A process that is stopped for so long counts as
// failed, except over TCP, where its system answers for it. With round trips longer than a sixth of
// the timeout, set a longer one. It returns ErrOption for less than [MinSilence]. Settings of
// [WithSCTP] take precedence.
func WithSilence(d time.Duration) Option {
	return func(o *options) error {
		if d < MinSilence {
			return fmt.Errorf("%w: silence of %v", ErrOption, d)
		}
		o.failureTimeout = d
		return nil
	}
}

// timeouts completes cfg so that an association of a job of size ranks ends when its peer has not
// answered for the failure-detection timeout. It counts timeouts, not time: what this process does
// not do while it has no processor is not held against the peer.
func (o *options) timeouts(cfg *sctp.Config, size int) {
	if cfg.HeartbeatInterval == 0 {
		cfg.HeartbeatInterval = max(min(o.failureTimeout/10, maxHeartbeat), time.Duration(size)*heartbeatPerRank)
		cfg.HeartbeatRetry = true
	}
	if cfg.RTOMax == 0 {
		longest := o.failureTimeout
		if o.local || o.defaultTimeout { // notices soon that a peer answers again
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
