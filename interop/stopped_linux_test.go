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
				f, stopped := stopRank(t, transport, ranks, tasks, victim)
				left := ranks
				if back > 0 {
					// A rank that a busy machine kept stopped for longer counts as dead
					// rightly.
					const tries = 10
					for try := 1; !f.goOn(victim, stopped, back, silence*3/4); try++ {
						if try == tries {
							t.Fatalf("the rank was stopped for more than %v, %d times", silence*3/4, tries)
						}
						f.kill()
						f, stopped = stopRank(t, transport, ranks, tasks, victim)
					}
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

// stopRank starts a farm, and stops one of its ranks in the middle of the work.
func stopRank(t *testing.T, transport string, ranks, tasks, victim int) (f *ftFarm, stopped time.Time) {
	t.Helper()
	f = startFTFarm(t, transport, ranks, tasks)
	if err := syscall.Kill(f.pids[victim], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return f, time.Now()
}

// goOn lets a rank that was stopped go on after some time, and reports whether it
// was stopped for less than most.
func (f *ftFarm) goOn(rank int, stopped time.Time, after, most time.Duration) bool {
	for time.Since(stopped) < after {
		time.Sleep(time.Millisecond)
	}
	_ = syscall.Kill(f.pids[rank], syscall.SIGCONT)
	return time.Since(stopped) < most
}
