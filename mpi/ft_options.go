package mpi

import (
	"fmt"
	"time"

	"github.com/weftstack/weft/mpi/internal/job"
)

const (
	// DefaultSilence is the default of WithSilence in a fault-tolerant job, which survives the
	// failure of a rank.
	DefaultSilence = job.DefaultSilence // 3 s
	// PatientSilence is the default of WithSilence in other jobs, which end with any of their
	// ranks: they survive a suspended machine or a switch that restarts.
	PatientSilence = time.Minute
	// LocalSilence is the default of WithSilence in RunLocal: its ranks are one process, and one
	// that does not answer waits for a processor.
	LocalSilence = 30 * time.Second
	// MinSilence is the least value of WithSilence.
	MinSilence = 500 * time.Millisecond
)

// WithFaultTolerance makes the job survive the failure of ranks: Finalize waits for the survivors
// only. In RunLocal, a rank whose function returns an error then counts as failed, and the others
// go on. All ranks must agree on it. `weft run -ft` sets it by WEFT_FT=1.
func WithFaultTolerance() Option {
	return func(o *options) error {
		o.Tolerant = true
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
		o.FailureTimeout = d
		return nil
	}
}
