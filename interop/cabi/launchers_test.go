package cabi

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestHydra starts C programs by the launcher of MPICH, which numbers the ranks by PMI.
func TestHydra(t *testing.T) {
	prefix(t)
	hydra, err := exec.LookPath("mpiexec.hydra")
	if err != nil {
		testenv.Lacking(t, "mpiexec.hydra not found: install Debian's mpich")
	}
	for _, name := range []string{"hello.c", "ring.c"} {
		t.Run(name, func(t *testing.T) {
			plan{}.check(t, nil, hydra, "-n", "4", compile(t, filepath.Join("testdata", name)))
		})
	}
}

// TestMpiexec runs a program by the installed name of weft run.
func TestMpiexec(t *testing.T) {
	plan{}.check(t, nil, filepath.Join(prefix(t), "bin", "mpiexec"), "-n", "2", compile(t, filepath.Join("testdata", "hello.c")))
}

// TestProgramOfAnotherMPI runs a program that has no path to weft's library, as one that was
// compiled for the ABI with another MPI: weft run finds the library for it.
func TestProgramOfAnotherMPI(t *testing.T) {
	dir := prefix(t)
	exe := filepath.Join(scratch, "foreign")
	if _, said, status := command(t, compileTime, nil, "gcc", "-I", filepath.Join(dir, "include"), "testdata/hello.c", "-o", exe,
		"-L", filepath.Join(dir, "lib"), "-lmpi_abi"); status != 0 {
		t.Fatalf("gcc: status %d\n%s", status, said)
	}
	if _, said, status := command(t, runTime, []string{"LD_LIBRARY_PATH="}, exe); status == 0 {
		t.Fatalf("the program runs without a path to the library\n%s", said)
	}
	plan{}.check(t, []string{"LD_LIBRARY_PATH="}, filepath.Join(dir, "bin", "weft"), "run", "-n", "2", exe)
	// A weft that is not installed is told where the library is.
	plan{}.check(t, []string{"LD_LIBRARY_PATH=", "WEFT_MPI_LIB=" + filepath.Join(dir, "lib")}, filepath.Join(scratch, "weft"),
		"run", "-n", "2", exe)
}

// TestSingleton runs a program without a launcher: a job of one rank (MPI-5.0, 11.8.2).
func TestSingleton(t *testing.T) {
	plan{}.check(t, nil, compile(t, filepath.Join("testdata", "hello.c")))
}
