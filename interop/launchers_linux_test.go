package interop

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestOpenMPILauncher starts an MPI program of weft by Open MPI's mpirun, which offers
// PMIx only. Each rank says so and fails: as jobs of one they would compute something
// else, and succeed.
func TestOpenMPILauncher(t *testing.T) {
	bounded(t)
	mpirun, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		testenv.Lacking(t, "mpirun.openmpi not found: install Debian's openmpi-bin")
	}
	check := mainPackage(t, "mpicheck", "../mpi/internal/mpicheck")
	run := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(within(t), commandTime)
		defer cancel()
		said, err := commandIn(ctx, mpirun, append([]string{"--allow-run-as-root", "--oversubscribe"}, args...)...).CombinedOutput()
		return string(said), err
	}
	out, err := run("-n", "2", check)
	if err == nil || !strings.Contains(out, "Open MPI's mpirun started 2 ranks") || !strings.Contains(out, "weft run") || strings.Contains(out, "verified") {
		t.Errorf("two ranks: %v\n%s", err, out)
	}
	if out, err := run("-n", "1", check); err != nil || !strings.Contains(out, "1 ranks over hybrid: all verified") {
		t.Errorf("one rank: %v\n%s", err, out)
	}
	if out, err := run("-n", "2", "-x", "WEFT_SINGLETON=1", check); err != nil || strings.Count(out, "1 ranks over hybrid: all verified") != 2 {
		t.Errorf("two jobs on purpose: %v\n%s", err, out)
	}
}
