package interop

import (
	"os"
	"runtime"
	"testing"
)

// TestFarmSurvivesAKill kills one of eight ranks with signal 9: the others must
// get an error at once, make a smaller communicator and finish.
func TestFarmSurvivesAKill(t *testing.T) {
	bounded(t)
	if runtime.GOOS == "windows" {
		t.Skip("a killed process looks like one that failed here")
	}
	for _, transport := range []string{"hybrid", "sctp", "tcp"} {
		for victim, name := range map[int]string{5: "worker", 0: "manager"} {
			t.Run("transport="+transport+"/"+name, func(t *testing.T) {
				f, since := loseRank(t, transport, func(f *ftFarm) {
					p, err := os.FindProcess(f.pids[victim])
					if err != nil || p.Kill() != nil && !f.over() {
						t.Fatalf("rank %d cannot be killed", victim)
					}
				})
				f.wantGoOn(farmRanks-1, since)
				f.wantResult(farmRanks - 1)
			})
		}
	}
}
