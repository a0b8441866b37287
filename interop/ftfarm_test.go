package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// ftFarm is a farm of eight ranks under `weft run -ft` that works long enough to
// lose one: ten tasks at a time, which take 20 ms, need about 2.5 s for 9000.
type ftFarm struct {
	t     testing.TB
	cmd   *exec.Cmd
	out   bytes.Buffer
	errs  lockedBuffer
	ended chan struct{} // closed when it has
	pids  map[int]int
}

const (
	farmRanks = 8
	farmTasks = 9000
)

// loseRank starts a farm, with more in its environment, and has it lose a rank in
// the middle of its work. It starts it again if it was over before.
func loseRank(t testing.TB, transport string, lose func(f *ftFarm), env ...string) (f *ftFarm, since time.Time) {
	t.Helper()
	const tries = 10
	for range tries {
		f = startFTFarm(t, transport, env)
		if since = time.Now(); f.over() {
			continue
		}
		if lose(f); !f.over() {
			return f, since
		}
	}
	t.Fatalf("the farm was over before it could lose a rank, %d times", tries)
	return nil, since
}

// startFTFarm starts a farm, and returns in the middle of its work.
func startFTFarm(t testing.TB, transport string, env []string) *ftFarm {
	t.Helper()
	f := &ftFarm{t: t, ended: make(chan struct{}),
		cmd: command(t, tool(t, "weft"), "run", "-v", "-ft", "-n", fmt.Sprint(farmRanks), "-transport", transport,
			tool(t, "farm"), "-json", "-tasks", fmt.Sprint(farmTasks), "-task", "4KB", "-pause", "20ms")}
	f.cmd.Env = append(os.Environ(), env...)
	f.cmd.Stdout, f.cmd.Stderr = &f.out, &f.errs
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { f.cmd.Wait(); close(f.ended) }()
	t.Cleanup(f.kill)
	f.pids = rankPids(t, f.cmd, &f.errs, farmRanks)
	awaitText(t, &f.errs, "have joined")
	time.Sleep(300 * time.Millisecond)
	return f
}

// kill ends what is left of the farm.
func (f *ftFarm) kill() {
	if f.over() {
		return
	}
	f.cmd.Process.Kill()
	for _, pid := range f.pids {
		if p, err := os.FindProcess(pid); err == nil {
			p.Kill() // one that is stopped does not see the end of the job
		}
	}
	<-f.ended
}

func (f *ftFarm) over() bool {
	select {
	case <-f.ended:
		return true
	default:
		return false
	}
}

// wantGoOn waits until left ranks have had the error of one that is gone since
// then, and go on in a communicator of their own. It returns how long that took.
func (f *ftFarm) wantGoOn(left int, since time.Time) time.Duration {
	f.t.Helper()
	for {
		n := strings.Count(f.errs.String(), fmt.Sprintf("; continuing with %d ranks", left))
		took := time.Since(since)
		if n >= left {
			f.t.Logf("%d ranks had the error and a communicator of their own after %v", left, took.Round(time.Millisecond))
			return took
		}
		if took > commandTime || f.over() {
			f.t.Fatalf("%d of %d ranks go on after %v:\n%s", n, left, took, f.errs.String())
		}
		time.Sleep(time.Millisecond)
	}
}

// wantResult waits for the end of the farm, which all the ranks that are left must
// have brought to its right result.
func (f *ftFarm) wantResult(left int) {
	f.t.Helper()
	select {
	case <-f.ended:
	case <-time.After(commandTime):
		f.t.Fatalf("the job does not end:\n%s", f.errs.String())
	}
	var res farmResult
	if err := json.Unmarshal(f.out.Bytes(), &res); err != nil || f.cmd.ProcessState.ExitCode() != 0 {
		f.t.Fatalf("status %d, %v\n%s", f.cmd.ProcessState.ExitCode(), err, f.errs.String())
	}
	if !res.Verified || res.Ranks != left || res.Tasks != farmTasks {
		f.t.Errorf("result %+v", res)
	}
}
