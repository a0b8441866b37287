package cabi

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
)

const (
	installTime = 5 * time.Minute // two processors without a build cache
	compileTime = time.Minute
	runTime     = time.Minute
)

// scratch is removed when the tests have ended.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "weft-cabi-"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(scratch)
	os.Exit(status)
}

// command runs a program to its end, within a time, and returns what it said.
func command(t testing.TB, limit time.Duration, env []string, name string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%q does not end within %v\n%s%s", cmd.Args, limit, &out, &errs)
	case err != nil && !errors.As(err, &exit):
		t.Fatalf("%q: %v", cmd.Args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// prefix is where the library is installed, once for all tests.
var installed struct {
	once   sync.Once
	prefix string
	failed string
}

// prefix installs the library. A test that needs it is skipped where it cannot be built.
func prefix(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the C library is built on Linux")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		testenv.Lacking(t, "gcc not found: install Debian's gcc and libc6-dev")
	}
	testenv.Slow(t, "the C library is built and its programs are compiled")
	installed.once.Do(func() {
		weft, dir := filepath.Join(scratch, "weft"), filepath.Join(scratch, "prefix")
		installed.failed = "weft was not built"
		root, err := filepath.Abs("../..")
		if err != nil {
			t.Fatal(err)
		}
		if _, said, status := command(t, installTime, nil, "go", "build", "-pgo=off", "-o", weft, root+"/cmd/weft"); status != 0 {
			t.Fatalf("building weft: status %d\n%s", status, said)
		}
		start := time.Now()
		out, said, status := command(t, installTime, nil, weft, "install-mpi", dir)
		installed.failed = said
		if status != 0 {
			t.Fatalf("weft install-mpi: status %d\n%s", status, said)
		}
		t.Logf("weft install-mpi took %.1f s:\n%s%s", time.Since(start).Seconds(), said, out)
		installed.prefix, installed.failed = dir, ""
	})
	if installed.failed != "" {
		t.Fatalf("the library was not installed: %s", installed.failed)
	}
	return installed.prefix
}

// wrappers maps the endings of sources to the wrapper that compiles them, and to the
// compiler that it needs.
var wrappers = map[string][2]string{
	".c": {"mpicc", "gcc"}, ".cc": {"mpicxx", "g++"}, ".f90": {"mpifort", "gfortran"}, ".f": {"mpifort", "gfortran"},
}

// compile returns the executable of a source in testdata.
func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	dir := prefix(t)
	w := wrappers[filepath.Ext(source)]
	if _, err := exec.LookPath(w[1]); err != nil {
		testenv.Lacking(t, "%s not found: install Debian's %[1]s", w[1])
	}
	exe := filepath.Join(scratch, strings.ReplaceAll(filepath.Base(source), ".", "_"))
	args := append([]string{"-O0", "-g", source, "-o", exe}, flags...)
	if w[0] == "mpifort" {
		args = append([]string{"-J", scratch}, args...) // modules of the program
	} else {
		args = append([]string{"-Wall", "-Werror", "-Wno-deprecated-declarations"}, args...)
	}
	if _, said, status := command(t, compileTime, nil, filepath.Join(dir, "bin", w[0]), args...); status != 0 {
		t.Fatalf("%s %q: status %d\n%s", w[0], args, status, said)
	}
	return exe
}
