//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/weftstack/weft/internal/pmi"
)

func TestRunPassesSignalsOn(t *testing.T) {
	cmd := exec.Command(os.Args[0], "run", "-n", "2", os.Args[0], "sleep")
	cmd.Env = append(os.Environ(), envRole+"=weft", pmi.EnvFD+"=", pmi.EnvPort+"=")
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
