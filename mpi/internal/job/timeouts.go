package job

import (
	"time"

	"github.com/weftstack/weft/sctp"
)

const (
	// DefaultSilence is the failure-detection timeout of a fault-tolerant job.
	DefaultSilence = 3 * time.Second
	// unresponsiveNotice is how long a peer may not answer before that is reported.
	unresponsiveNotice = 3 * time.Second
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

// timeouts completes cfg so that an association of a job of size ranks ends when its peer has not
// answered for the failure-detection timeout. It counts timeouts, not time: what this process does
// not do while it has no processor is not held against the peer.
func (o *Options) timeouts(cfg *sctp.Config, size int) {
	if cfg.HeartbeatInterval == 0 {
		cfg.HeartbeatInterval = max(min(o.FailureTimeout/10, maxHeartbeat), time.Duration(size)*heartbeatPerRank)
		cfg.HeartbeatRetry = true
	}
	if cfg.RTOMax == 0 {
		longest := o.FailureTimeout
		if o.Local || o.DefaultTimeout { // notices soon that a peer answers again
			longest = min(longest, DefaultSilence)
		}
		cfg.RTOMax = max(longest/rtosPerTimeout, firstRTO)
	}
	if cfg.MaxRetransmits == 0 {
		n := 0
		for rto, sum := firstRTO, time.Duration(0); sum < o.FailureTimeout; n++ {
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
