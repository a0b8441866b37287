package cabi

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestPreloadedTool puts the functions of a tool in front of those of the library, by LD_PRELOAD.
func TestPreloadedTool(t *testing.T) {
	dir := prefix(t)
	tool := filepath.Join(scratch, "libcounting.so")
	if _, said, status := command(t, compileTime, nil, filepath.Join(dir, "bin", "mpicc"), "-shared", "-fPIC", "testdata/tools/counting.c",
		"-o", tool); status != 0 {
		t.Fatalf("mpicc: status %d\n%s", status, said)
	}
	exe := compile(t, "testdata/ring.c")
	// ring.c goes around for 8 lengths: 0, 1, 8, … 262144.
	plan{says: []string{"tool: rank 0: 8 sends, 0 receives", "tool: rank 1: 8 sends, 8 receives"}}.check(t, nil,
		filepath.Join(dir, "bin", "mpiexec"), "-n", "2", "-x", "LD_PRELOAD="+tool, exe)
}

// TestLoadedAtRunTime has a program load the library by dlopen.
func TestLoadedAtRunTime(t *testing.T) {
	dir := prefix(t)
	exe := filepath.Join(scratch, "loader")
	if _, said, status := command(t, compileTime, nil, "gcc", "-I", filepath.Join(dir, "include"), "testdata/tools/loader.c", "-o", exe,
		"-ldl"); status != 0 {
		t.Fatalf("gcc: status %d\n%s", status, said)
	}
	plan{}.check(t, nil, filepath.Join(dir, "bin", "mpiexec"), "-n", "2", exe)
}

// TestSymbols checks that the library shows names of MPI only, each function with its two names.
func TestSymbols(t *testing.T) {
	out, said, status := command(t, runTime, nil, "nm", "-D", "--defined-only", filepath.Join(prefix(t), "lib", "libmpi_abi.so.1"))
	if status != 0 {
		t.Fatalf("nm: status %d\n%s", status, said)
	}
	kinds := map[string]string{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		kinds[f[2]] = f[1]
	}
	functions := 0
	for name, kind := range kinds {
		switch {
		case strings.HasPrefix(name, "PMPI_") && kind == "T":
			functions++
			if other := name[1:]; kinds[other] != "W" {
				t.Errorf("%s is of kind %q, want a weak name of %s", other, kinds[other], name)
			}
		case !strings.HasPrefix(name, "MPI_") || kinds["P"+name] != "T":
			t.Errorf("%s %s is no function of MPI", kind, name)
		}
	}
	if want := 531 + 159; functions != want {
		t.Errorf("%d functions, want %d", functions, want)
	}
}

// TestPython runs a client in Python that calls the library by ctypes.
func TestPython(t *testing.T) {
	dir := prefix(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		testenv.Lacking(t, "python3 not found: install Debian's python3")
	}
	for _, n := range []string{"1", "2", "4"} {
		plan{}.check(t, nil, filepath.Join(dir, "bin", "mpiexec"), "-n", n, python, "testdata/tools/client.py",
			filepath.Join(dir, "include", "mpi.h"), t.TempDir())
	}
}
