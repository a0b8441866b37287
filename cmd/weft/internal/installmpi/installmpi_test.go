package installmpi

import (
	"runtime"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/cli"
)

func TestMain(m *testing.M) {
	clitest.Main(m, &cli.Program{Name: "weft", Commands: []cli.Command{{Name: "install-mpi", Run: Main}}}, nil)
}

func TestMisuse(t *testing.T) {
	for _, args := range [][]string{{}, {"a", "b"}, {"-color", "a"}} {
		clitest.WantMisused(t, "weft install-mpi", append([]string{"install-mpi"}, args...)...)
	}
}

// What is missing is said in one line, with what to do, before anything is built.
func TestNothingToBuildWith(t *testing.T) {
	if runtime.GOOS != "linux" {
		_, errs, status := clitest.Weft(t, "", "install-mpi", t.TempDir())
		if status != cli.ExitFail || !strings.Contains(errs, runtime.GOOS) {
			t.Errorf("status %d, want %d and that the library is built on Linux\n%s", status, cli.ExitFail, errs)
		}
		return
	}
	t.Setenv("CC", "no-such-compiler")
	dir := t.TempDir()
	_, errs, status := clitest.Weft(t, "", "install-mpi", dir)
	if status != cli.ExitFail || !strings.Contains(errs, "no-such-compiler") || strings.Count(errs, "\n") != 1 {
		t.Errorf("without a compiler: status %d\n%s", status, errs)
	}
	t.Setenv("CC", "go") // some program that exists
	_, errs, status = clitest.Weft(t, "", "install-mpi", "-source", dir, dir)
	if status != cli.ExitFail || !strings.Contains(errs, "go.mod") {
		t.Errorf("without a source: status %d\n%s", status, errs)
	}
}
