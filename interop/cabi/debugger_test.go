package cabi

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestDebuggerShowsCallers stops a program in a call of MPI, where it sleeps and where it polls: with the
// installed script gdb shows the line of the program.
func TestDebuggerShowsCallers(t *testing.T) {
	dir := prefix(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("the script knows the stacks of x86-64")
	}
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		testenv.Lacking(t, "gdb not found: install Debian's gdb")
	}
	exe := compile(t, "testdata/tools/waits.c", "-g")
	for _, spin := range []string{"0", "1m"} {
		t.Run("WEFT_SPIN="+spin, func(t *testing.T) {
			t.Parallel()
			out, errs, _ := command(t, runTime, []string{"WEFT_SPIN=" + spin}, gdb, "-nx", "-batch", "-x",
				filepath.Join(dir, "share/weft/gdb.py"), "-ex", "handle SIGALRM stop", "-ex", "run",
				"-ex", "thread 1", "-ex", "backtrace", exe)
			if !strings.Contains(out, "waits.c:10\n") {
				t.Errorf("no line of the program\n%s%s", out, errs)
			}
		})
	}
}
