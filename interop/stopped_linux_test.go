package interop

import (
	"syscall"
	"testing"
	"time"
)

// TestFarmWithAStoppedRank stops one of eight ranks with SIGSTOP, so that its
// sockets stay, but nobody answers. For less than the silence that counts as
// death it must be missed by nobody; when it does not come back, the other
// seven must know within that time and a half, the manager, which sends to it,
// like the workers, which do not.
func TestFarmWithAStoppedRank(t *testing.T) {
	const ranks, tasks, victim = 8, 9000, 5
	const silence = 3 * time.Second // the default
	for _, transport := range []string{"hybrid", "sctp"} {
		for name, back := range map[string]time.Duration{"starved": silence / 2, "dead": 0} {
			t.Run("transport="+transport+"/"+name, func(t *testing.T) {
				f := startFTFarm(t, transport, ranks, tasks)
				if err := syscall.Kill(f.pids[victim], syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				stopped := time.Now()
				left := ranks
				if back > 0 {
					for time.Since(stopped) < back {
						time.Sleep(time.Millisecond)
					}
					if away := time.Since(stopped); away > silence*3/4 {
						t.Skipf("the rank was stopped for %v", away)
					}
					_ = syscall.Kill(f.pids[victim], syscall.SIGCONT)
				} else {
					left--
					took := f.wantGoOn(left, stopped, time.Minute)
					if took < silence-100*time.Millisecond || took > 10*time.Second {
						t.Errorf("noticed after %v", took)
					}
					_ = syscall.Kill(f.pids[victim], syscall.SIGKILL)
				}
				f.wantResult(left)
			})
		}
	}
}
