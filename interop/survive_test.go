package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
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
				// Eight ranks of ten tasks at a time need about 2.5 s.
				cmd := exec.Command(tool(t, "weft"), "run", "-v", "-ft", "-n", fmt.Sprint(ranks), "-transport", transport,
					tool(t, "farm"), "-json", "-tasks", fmt.Sprint(tasks), "-task", "4KB", "-pause", "20ms")
				var errs lockedBuffer
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				pids := rankPids(t, cmd, &errs, ranks)
				awaitText(t, &errs, "have joined")
				time.Sleep(300 * time.Millisecond) // into the middle of the work
				p, err := os.FindProcess(pids[victim])
				if err != nil || p.Kill() != nil {
					t.Fatalf("rank %d cannot be killed", victim)
				}
				killed := time.Now()
				noticed := func() int { return strings.Count(errs.String(), "; going on with 7 ranks") }
				for noticed() < ranks-1 {
					if time.Since(killed) > 10*time.Second || len(ended) > 0 {
						cmd.Process.Kill()
						t.Fatalf("%d of %d ranks go on after %v:\\n%s", noticed(), ranks-1, time.Since(killed), errs.String())
					}
					time.Sleep(time.Millisecond)
				}
				took := time.Since(killed)
				select {
				case <-ended:
				case <-time.After(time.Minute):
					cmd.Process.Kill()
					t.Fatalf("the job does not end:\\n%s", errs.String())
				}
				var res farmResult
				if err := json.Unmarshal(out.Bytes(), &res); err != nil || cmd.ProcessState.ExitCode() != 0 {
					t.Fatalf("status %d, %v\\n%s", cmd.ProcessState.ExitCode(), err, errs.String())
				}
				if !res.Verified || res.Ranks != ranks-1 || res.Tasks != tasks {
					t.Errorf("result %+v", res)
				}
				t.Logf("seven ranks had the error and a communicator of their own %v after the kill; %d tasks verified", took.Round(time.Millisecond), res.Tasks)
			})
		}
	}
}
