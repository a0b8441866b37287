//go:build unix

package launch

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
)

func TestRunPassesSignalsOn(t *testing.T) {
	cmd := clitest.Command(t, "run", "-n", "2", os.Args[0], "sleep")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 2 {
		if !lines.Scan() {
			t.Fatal("the ranks did not start")
		}
	}
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	if got, want := cmd.ProcessState.ExitCode(), 128+int(syscall.SIGINT); got != want {
		t.Errorf("status = %d, want %d; said %q", got, want, errs.String())
	}
	if !strings.Contains(errs.String(), "was killed by signal") {
		t.Errorf("message %q does not say how the rank ended", errs.String())
	}
}

// waitStopped waits until a process that was sent SIGSTOP runs no longer: its threads stop a moment
// after kill has returned. Where /proc does not tell, that moment is 100 ms.
func waitStopped(pid int) {
	for range 500 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			return
		}
		if _, state, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(state, "T") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// The first SIGQUIT asks what the ranks wait for, a rank that is stopped does not say,
// and the second is passed on.
func TestQuitSaysWhoWaitsForWhom(t *testing.T) {
	cmd := clitest.Command(t, "run", "-v", "-n", "3", os.Args[0], "deadlock")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	for range 3 {
		if !lines.Scan() {
			t.Fatal("the ranks did not start")
		}
	}
	var said strings.Builder
	lines = bufio.NewScanner(errs)
	until := func(want string) string {
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), want) {
				return lines.Text()
			}
		}
		t.Fatalf("%q was not said, but\n%s", want, said.String())
		return ""
	}
	var pid int
	if _, err := fmt.Sscanf(until("rank 2 is pid"), "weft run: rank 2 is pid %d", &pid); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(pid, syscall.SIGSTOP)
	defer syscall.Kill(pid, syscall.SIGKILL)
	waitStopped(pid)
	cmd.Process.Signal(syscall.SIGQUIT)
	until("rank 0 is in Recv")
	until("rank 2 does not answer")
	stacksFile(t, until("stacks"))
	cmd.Process.Signal(syscall.SIGQUIT)
	until("SIGQUIT: quit") // of a Go program
}
