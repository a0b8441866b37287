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

// Signals are passed on to the ranks. The second one that asks them to end kills them, whichever of the two it is.
func TestRunPassesSignalsOn(t *testing.T) {
	for _, tt := range []struct {
		what    string
		signals []syscall.Signal
		by      syscall.Signal // the ranks are killed by it
	}{
		{"sleep", []syscall.Signal{syscall.SIGINT}, syscall.SIGINT},
		{"sleep", []syscall.Signal{syscall.SIGTERM}, syscall.SIGTERM},
		{"stubborn", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, syscall.SIGKILL},
		{"stubborn", []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM}, syscall.SIGKILL},
		{"stubborn", []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}, syscall.SIGKILL},
	} {
		t.Run(fmt.Sprint(tt.what, tt.signals), func(t *testing.T) {
			cmd := clitest.Command(t, "run", "-n", "2", os.Args[0], tt.what)
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
			ended := make(chan struct{})
			go func() {
				cmd.Wait()
				close(ended)
			}()
			cmd.Process.Signal(tt.signals[0])
			for more := tt.signals[1:]; len(more) > 0; { // again and again: two that are pending are one
				select {
				case <-ended:
					more = nil
				case <-time.After(200 * time.Millisecond):
					cmd.Process.Signal(more[0])
				}
			}
			<-ended
			if got, want := cmd.ProcessState.ExitCode(), 128+int(tt.by); got != want {
				t.Errorf("status = %d, want %d; said %q", got, want, errs.String())
			}
			if !strings.Contains(errs.String(), "was killed by signal") {
				t.Errorf("message %q does not say how the rank ended", errs.String())
			}
		})
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
