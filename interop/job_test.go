package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// tools builds a command of this module once per test run.
var tools = struct {
	dir string
	mu  sync.Mutex
}{}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weft-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	tools.dir = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// playRole has this test binary do f with the value of an environment variable, and
// nothing else, if that is set: for tests that start it as another process.
func playRole(env string, f func(value string) error) {
	value := os.Getenv(env)
	if value == "" {
		return
	}
	// While packages are initialized the main goroutine is locked to its thread, which would take
	// part in each of its waits.
	done := make(chan error)
	go func() { done <- f(value) }()
	if err := <-done; err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// tool returns the path of a command of this module, built if need be.
func tool(t testing.TB, name string) string {
	t.Helper()
	tools.mu.Lock()
	defer tools.mu.Unlock()
	path := filepath.Join(tools.dir, name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if said, err := command(t, "go", "build", "-o", path, "../cmd/"+name).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, said)
	}
	return path
}

// input is the file that the farm works on: the go command itself.
func input(t testing.TB) (path, digest string) {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return path, hex.EncodeToString(sum[:])
}

// commandTime bounds what takes some seconds, on a machine that may be busy and
// slow, and may stand still for a minute.
const commandTime = 5 * time.Minute

// weft runs the command with a time limit.
func weft(t testing.TB, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(within(t), commandTime)
	defer cancel()
	cmd := commandIn(ctx, tool(t, "weft"), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// farmResult is what the farm prints as JSON.
type farmResult struct {
	Ranks, Tasks int
	Bytes        int64
	Seconds      float64
	Verified     bool
	SHA256       string
}

// farm runs the farm and checks its result.
func farm(t testing.TB, runFlags, farmFlags []string) farmResult {
	t.Helper()
	args := append([]string{"run"}, runFlags...)
	args = append(append(args, tool(t, "farm"), "-json"), farmFlags...)
	out, errs, status := weft(t, args...)
	var res farmResult
	if err := json.Unmarshal([]byte(out), &res); err != nil || status != 0 || !res.Verified {
		t.Fatalf("weft %q: status %d, %v\n%s%s", args, status, err, out, errs)
	}
	return res
}

func TestFarmVerifiesItsResult(t *testing.T) {
	bounded(t)
	path, digest := input(t)
	for _, transport := range []string{"hybrid", "sctp", "tcp"} {
		for _, n := range []int{1, 2, 4, 8} {
			t.Run(fmt.Sprintf("transport=%s/ranks=%d", transport, n), func(t *testing.T) {
				res := farm(t, []string{"-n", strconv.Itoa(n), "-transport", transport}, []string{"-input", path})
				if res.Ranks != n || res.SHA256 != digest {
					t.Errorf("ranks %d, sha256 %s; want %d, %s", res.Ranks, res.SHA256, n, digest)
				}
				t.Logf("%d tasks, %.0f MB/s", res.Tasks, float64(res.Bytes)/1e6/res.Seconds)
			})
		}
	}
}

func TestFarmOptions(t *testing.T) {
	bounded(t)
	for _, flags := range [][]string{
		{"-tasks", "1"}, {"-tasks", "500", "-fanout", "10", "-task", "300KB"}, {"-tasks", "100", "-tags", "1", "-outstanding", "1"},
		{"-tasks", "50", "-task", "1"}, {"-tasks", "3", "-task", "5MiB"},
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			farm(t, []string{"-n", "3"}, flags)
		})
	}
}

func TestFarmRefuses(t *testing.T) {
	bounded(t)
	for _, tt := range []struct {
		name   string
		flags  []string
		status int
		want   string
	}{
		{"wrong flag", []string{"-bogus"}, 2, "farm: flag provided but not defined: -bogus\n`farm -h` explains how it is used.\n"},
		{"no work", nil, 2, "give -input FILE or -tasks N"},
		{"bad size", []string{"-tasks", "1", "-task", "lots"}, 2, "not a number of bytes"},
		{"no tags", []string{"-tasks", "1", "-tags", "0"}, 2, "-tags 0"},
		{"missing file", []string{"-input", "no-such-file"}, 1, "no-such-file"},
		{"directory", []string{"-input", "."}, 1, "not a regular file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, errs, status := weft(t, append([]string{"run", "-n", "3", tool(t, "farm")}, tt.flags...)...)
			if status != tt.status || !strings.Contains(errs, tt.want) {
				t.Errorf("status %d, want %d; message lacks %q:\n%s", status, tt.status, tt.want, errs)
			}
			if n := strings.Count(errs, "farm: "); status == 2 && n != 1 || strings.Contains(errs, "usage:") {
				t.Errorf("it is said %d times what is wrong:\n%s", n, errs)
			}
		})
	}
}

// TestKilledRankEndsTheJob kills one worker while it works.
func TestKilledRankEndsTheJob(t *testing.T) {
	bounded(t)
	cmd := command(t, tool(t, "weft"), "run", "-v", "-n", "4", tool(t, "farm"), "-tasks", "1000000", "-task", "300KB")
	var errs lockedBuffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	pids := rankPids(t, cmd, &errs, 4)
	time.Sleep(500 * time.Millisecond) // into the middle of the work
	if p, err := os.FindProcess(pids[2]); err != nil || p.Kill() != nil {
		t.Fatal("rank 2 cannot be killed")
	}
	select {
	case <-ended:
	case <-time.After(commandTime):
		cmd.Process.Kill()
		t.Fatalf("the job goes on after %v:\n%s", commandTime, errs.String())
	}
	if cmd.ProcessState.ExitCode() == 0 {
		t.Error("status 0 of a job that lost a rank")
	}
	if want := fmt.Sprintf("rank 2 (pid %d)", pids[2]); !strings.Contains(errs.String(), want) {
		t.Errorf("message lacks %q:\n%s", want, errs.String())
	}
	for rank, pid := range pids {
		if alive(pid) {
			t.Errorf("rank %d (pid %d) was left behind", rank, pid)
		}
	}
}

// rankPids waits until `weft run -v` has told the process ids of n ranks.
func rankPids(t testing.TB, cmd *exec.Cmd, errs *lockedBuffer, n int) map[int]int {
	t.Helper()
	pids := make(map[int]int)
	pattern := regexp.MustCompile(`rank (\d+) is pid (\d+)`)
	for deadline := time.Now().Add(commandTime); len(pids) < n; {
		for _, m := range pattern.FindAllStringSubmatch(errs.String(), -1) {
			rank, _ := strconv.Atoi(m[1])
			pids[rank], _ = strconv.Atoi(m[2])
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatalf("the ranks did not start:\n%s", errs.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	return pids
}

// lockedBuffer may be read while a process writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// awaitText waits until a program has said something.
func awaitText(t testing.TB, said *lockedBuffer, text string) {
	t.Helper()
	for deadline := time.Now().Add(commandTime); !strings.Contains(said.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q is not said: %q", text, said.String())
		}
	}
}
