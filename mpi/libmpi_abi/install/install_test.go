package install

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestSourceIsThisModule(t *testing.T) {
	dir, err := Source(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := isSource(dir); err != nil {
		t.Error(err)
	}
	if err := isSource(t.TempDir()); err == nil {
		t.Error("an empty directory is taken for the source")
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "go.mod"), []byte("module example.com/other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := isSource(other); err == nil || !strings.Contains(err.Error(), "example.com/other") {
		t.Errorf("another module: %v, want its name", err)
	}
}

func TestFilesAreReplacedAsAWhole(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the C library is built on Linux; links need a right here")
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	for _, text := range []string{"long text", "short"} {
		if err := replace(name, 0o755, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	l := filepath.Join(dir, "l")
	for _, target := range []string{"f", "g"} {
		if err := link(target, l); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(l); err != nil || got != target {
			t.Errorf("the link leads to %q, %v, want %q", got, err, target)
		}
	}
	// What runs may be what is installed already.
	if err := link("f", l); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(l, name, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(name); string(got) != "short" {
		t.Errorf("a file copied to itself holds %q", got)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v are left, want f and l", left, err)
	}
}

func TestMissingTools(t *testing.T) {
	t.Setenv("CC", "no-such-compiler -m64")
	if err := haveTools(); err == nil || !strings.Contains(err.Error(), "no-such-compiler") {
		t.Errorf("without a C compiler: %v, want its name", err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := haveTools(); err == nil || !strings.Contains(err.Error(), "Go tool") {
		t.Errorf("without the Go tool: %v", err)
	}
}

func TestPkgConfigVersion(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "\nVersion: 1.2.3\n", "": "\nVersion: 0\n"} {
		if got := pkgConfig(version); !strings.Contains(got, want) {
			t.Errorf("version %q: %q, want %q", version, got, want)
		}
	}
}
