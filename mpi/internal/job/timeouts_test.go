package job

import (
	"testing"
	"time"

	"github.com/weftstack/weft/mpi/internal/transport/tcp"
	"github.com/weftstack/weft/sctp"
)

// Nothing below MPI ends a link sooner than MPI takes its peer for dead.
func TestLinksAreAsPatient(t *testing.T) {
	const patient = time.Minute
	for _, timeout := range []time.Duration{500 * time.Millisecond, DefaultSilence, 30 * time.Second, patient} {
		o := &Options{FailureTimeout: timeout, DefaultTimeout: timeout == patient}
		var cfg sctp.Config
		o.timeouts(&cfg, 8)
		ends := func(n int) (sum time.Duration) {
			for rto := firstRTO; n >= 0; n-- {
				sum += rto
				rto = min(2*rto, cfg.RTOMax)
			}
			return sum
		}
		if d := ends(cfg.MaxRetransmits); d < timeout {
			t.Errorf("timeout %v: an association ends after %v (RTO.max %v, %d retransmissions)", timeout, d, cfg.RTOMax, cfg.MaxRetransmits)
		}
		if d := ends(cfg.MaxInitRetransmits); d < timeout {
			t.Errorf("timeout %v: INITs are given up after %v", timeout, d)
		}
		if cfg.RTOMax > DefaultSilence && timeout == patient {
			t.Errorf("a peer that is back is noticed after %v", cfg.RTOMax)
		}
		k := tcp.KeepAlive(timeout)
		if d := k.Idle + time.Duration(k.Count)*k.Interval; d < timeout {
			t.Errorf("timeout %v: an idle TCP connection ends after %v", timeout, d)
		}
		if d := tcp.UserTimeoutFor(timeout); d < timeout {
			t.Errorf("timeout %v: TCP gives data up after %v", timeout, d)
		}
	}
}
