package interop

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// TestFarmSurvivesAKill kills one of eight ranks with signal 9: the others must
// get an error at once, make a smaller communicator and finish.
func TestFarmSurvivesAKill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed process looks like one that failed here")
	}
	const ranks, tasks = 8, 9000
	for _, transport := range []string{"hybrid", "sctp", "tcp"} {
		for victim, name := range map[int]string{5: "worker", 0: "manager"} {
			t.Run("transport="+transport+"/"+name, func(t *testing.T) {
				f := startFTFarm(t, transport, ranks, tasks)
				p, err := os.FindProcess(f.pids[victim])
				if err != nil || p.Kill() != nil {
					t.Fatalf("rank %d cannot be killed", victim)
				}
				f.wantGoOn(ranks-1, time.Now(), 10*time.Second)
				f.wantResult(ranks - 1)
			})
		}
	}
}
