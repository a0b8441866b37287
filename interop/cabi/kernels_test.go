package cabi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// compareKernels asks for TestKernelsBesideOpenMPI, which says how long the kernels take: a matter of the machine.
const compareKernels = "WEFT_COMPARE_KERNELS"

// seconds returns the time that a kernel has printed.
func seconds(t *testing.T, out string) float64 {
	t.Helper()
	for line := range strings.Lines(out) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "seconds "); ok {
			s, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	t.Fatalf("no time in %q", out)
	return 0
}

// TestKernelsBesideOpenMPI runs larger kernels on 4 ranks by turns here and with Open MPI, and prints the ratios of the median
// times: of shared memory, and of SCTP to TCP.
func TestKernelsBesideOpenMPI(t *testing.T) {
	if os.Getenv(compareKernels) == "" {
		t.Skipf("set %s=1 on a quiet machine to compare times", compareKernels)
	}
	for _, name := range []string{"mpicc.openmpi", "mpirun.openmpi"} {
		if _, err := exec.LookPath(name); err != nil {
			testenv.Lacking(t, "%s not found: install Debian's openmpi-bin and libopenmpi-dev", name)
		}
	}
	weft := filepath.Join(prefix(t), "bin", "weft")
	const runs = 5
	for kernel, args := range map[string][]string{"lu": {"64", "120"}, "cg": {"14000", "30"}, "ft": {"128", "8"}} {
		source := filepath.Join("testdata", "kernel_"+kernel+".c")
		exe, theirs := compile(t, source, "-O2", "-lm"), filepath.Join(t.TempDir(), kernel)
		if _, said, status := command(t, compileTime, nil, "mpicc.openmpi", "-O2", "-o", theirs, source, "-lm"); status != 0 {
			t.Fatalf("mpicc.openmpi: status %d\n%s", status, said)
		}
		for transport, btl := range map[string]string{"shm": "vader,self", "sctp": "tcp,self"} {
			var took [2][]float64
			for range runs {
				for i, line := range [][]string{
					{weft, "run", "-n", "4", "-timeout", "50s", exe},
					{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "4", "--mca", "btl", btl, theirs},
				} {
					out, said, status := command(t, runTime, transports[transport], line[0], append(line[1:], args...)...)
					if status != 0 {
						t.Fatalf("%s: status %d\n%s", line, status, said)
					}
					took[i] = append(took[i], seconds(t, out))
				}
			}
			for i := range took {
				slices.Sort(took[i])
			}
			ours, other := took[0][runs/2], took[1][runs/2]
			fmt.Printf("%s over %s: %.3f s, Open MPI (%s) %.3f s, ratio %.2f\n", kernel, transport, ours, btl, other, ours/other)
		}
	}
}
