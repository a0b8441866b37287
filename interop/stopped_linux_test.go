package interop

import (
	"syscall"
	"testing"
	"time"
)

// Rank 5 of these farms is stopped with SIGSTOP, so that its sockets stay, but
// nobody answers.
const stoppedRank = 5

// A rank that is stopped for less than the silence that counts as death must be
// missed by nobody. That silence is long, so that a busy machine does not add much
// to what is left of it.
func TestFarmWithAStarvedRank(t *testing.T) {
	bounded(t)
	const silence, back = 16 * time.Second, 5 * time.Second
	for _, transport := range []string{"hybrid", "sctp"} {
		t.Run("transport="+transport, func(t *testing.T) {
			// A rank that was kept stopped for longer counts as dead rightly.
			const tries = 10
			for try := 1; ; try++ {
				f, stopped := loseRank(t, transport, stop, "WEFT_SILENCE="+silence.String())
				if f.goOn(stoppedRank, stopped, back, silence/2) {
					f.wantResult(farmRanks)
					return
				}
				if try == tries {
					t.Fatalf("the rank was stopped for more than %v, %d times", silence/2, tries)
				}
				f.kill()
			}
		})
	}
}

// When it does not come back, the other seven must know within that time and a
// half, and a second: the manager, which sends to it, like the workers, which do
// not. A busy machine makes it longer.
func TestFarmWithAStoppedRank(t *testing.T) {
	bounded(t)
	const silence, most = 3 * time.Second, 10 * time.Second // the default
	for _, transport := range []string{"hybrid", "sctp"} {
		t.Run("transport="+transport, func(t *testing.T) {
			const tries = 6
			for try := 1; ; try++ {
				f, stopped := loseRank(t, transport, stop)
				took := f.wantGoOn(farmRanks-1, stopped)
				_ = syscall.Kill(f.pids[stoppedRank], syscall.SIGKILL)
				f.wantResult(farmRanks - 1)
				if took < silence/2 { // the rank may not have had the processor for a while before
					t.Errorf("noticed after %v", took)
				}
				if took <= most {
					return
				}
				if try == tries {
					t.Fatalf("noticed after %v, and later than %v each time", took, most)
				}
			}
		})
	}
}

// stop stops a rank.
func stop(f *ftFarm) {
	if err := syscall.Kill(f.pids[stoppedRank], syscall.SIGSTOP); err != nil && !f.over() {
		f.t.Fatal(err)
	}
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
