package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestMPIPrograms runs the MPI test program, and the examples, as jobs of
// processes on every transport.
func TestMPIPrograms(t *testing.T) {
	bounded(t)
	check := mainPackage(t, "mpicheck", "../mpi/internal/mpicheck")
	for _, transport := range []string{"hybrid", "sctp", "tcp"} {
		for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 16} {
			t.Run(fmt.Sprintf("check/transport=%s/ranks=%d", transport, n), func(t *testing.T) {
				out, errs, status := weft(t, "run", "-n", strconv.Itoa(n), "-transport", transport, check)
				want := fmt.Sprintf("%d ranks over %s: all verified", n, transport)
				if status != 0 || !strings.Contains(out, want) || strings.Count(out, "verified ") != 17 {
					t.Errorf("status %d\n%s%s", status, out, errs)
				}
			})
		}
	}
	for _, n := range []int{2, 8} {
		t.Run(fmt.Sprintf("check/unshared/ranks=%d", n), func(t *testing.T) {
			t.Setenv("WEFT_SHARED", "0")
			out, errs, status := weft(t, "run", "-n", strconv.Itoa(n), check)
			if status != 0 || !strings.Contains(out, fmt.Sprintf("%d ranks over hybrid: all verified", n)) {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
		})
	}
	for _, method := range []string{"write", "read"} {
		t.Run("check/rendezvous="+method, func(t *testing.T) {
			t.Setenv("WEFT_RENDEZVOUS", method)
			t.Setenv("WEFT_EAGER", "256")
			out, errs, status := weft(t, "run", "-n", "4", "-transport", "hybrid", check)
			if status != 0 || !strings.Contains(out, "4 ranks over hybrid: all verified") {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
		})
	}
	for i, e := range []struct{ name, want string }{
		{"pi", "pi is about 3.1415926536"},
		{"halo", "mean temperature is 13.178147"},
		{"matrix", "checksum -173208, trace -141"},
		{"sort", "checksum 5ca63f8a1098962e"},
		{"tasks", "17984 primes below 200000"},
		{"kmeans", "centre at (1.00, 1.00)"},
	} {
		path := mainPackage(t, e.name, "../mpi/examples/"+e.name)
		for j, n := range []int{1, 3, 8} {
			transport := []string{"hybrid", "sctp", "tcp"}[(i+j)%3]
			t.Run(fmt.Sprintf("%s/transport=%s/ranks=%d", e.name, transport, n), func(t *testing.T) {
				out, errs, status := weft(t, "run", "-n", strconv.Itoa(n), "-transport", transport, path)
				if status != 0 || !strings.Contains(out, e.want) {
					t.Errorf("status %d\n%s%s", status, out, errs)
				}
			})
		}
	}
}

// TestHydra runs the MPI test program under the launcher of MPICH, which also
// spawns.
func TestHydra(t *testing.T) {
	bounded(t)
	hydra, err := exec.LookPath("mpiexec.hydra")
	if err != nil {
		testenv.Lacking(t, "mpiexec.hydra not found: install Debian's mpich")
	}
	check := mainPackage(t, "mpicheck", "../mpi/internal/mpicheck")
	for _, transport := range []string{"hybrid", "sctp", "tcp"} {
		t.Run("transport="+transport, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(within(t), commandTime)
			defer cancel()
			cmd := commandIn(ctx, hydra, "-n", "3", check)
			cmd.Env = append(os.Environ(), "WEFT_TRANSPORT="+transport)
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Count(string(out), "verified ") != 17 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// mainPackage builds the program in a directory of this module.
func mainPackage(t *testing.T, name, dir string) string {
	t.Helper()
	path := filepath.Join(tools.dir, name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if said, err := command(t, "go", "build", "-o", path, dir).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", dir, err, said)
	}
	return path
}
