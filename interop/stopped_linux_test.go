package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
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
				if err := syscall.Kill(pids[victim], syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				stopped := time.Now()
				left := ranks
				noticed := func() int { return strings.Count(errs.String(), "; going on with 7 ranks") }
				if back > 0 {
					for time.Since(stopped) < back {
						time.Sleep(time.Millisecond)
					}
					if away := time.Since(stopped); away > silence*3/4 {
						t.Skipf("the rank was stopped for %v", away)
					}
					_ = syscall.Kill(pids[victim], syscall.SIGCONT)
				} else {
					left--
					for noticed() < left {
						if time.Since(stopped) > time.Minute || len(ended) > 0 {
							cmd.Process.Kill()
							t.Fatalf("%d of %d ranks go on after %v:\n%s", noticed(), left, time.Since(stopped), errs.String())
						}
						time.Sleep(time.Millisecond)
					}
					took := time.Since(stopped)
					t.Logf("seven ranks had the error and a communicator of their own %v after the stop", took.Round(time.Millisecond))
					if took < silence-100*time.Millisecond || took > 10*time.Second {
						t.Errorf("noticed after %v", took)
					}
					_ = syscall.Kill(pids[victim], syscall.SIGKILL)
				}
				select {
				case <-ended:
				case <-time.After(time.Minute):
					cmd.Process.Kill()
					t.Fatalf("the job does not end:\n%s", errs.String())
				}
				var res farmResult
				if err := json.Unmarshal(out.Bytes(), &res); err != nil || cmd.ProcessState.ExitCode() != 0 {
					t.Fatalf("status %d, %v\n%s", cmd.ProcessState.ExitCode(), err, errs.String())
				}
				if !res.Verified || res.Ranks != left || res.Tasks != tasks {
					t.Errorf("result %+v", res)
				}
			})
		}
	}
}
