package launch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// executable returns the path of the program that name stands for: a Go package
// directory or file is built into dir, anything else is looked up as a shell
// would.
func executable(ctx context.Context, dir, name string) (string, error) {
	info, err := os.Stat(name)
	if err == nil && (info.IsDir() || strings.HasSuffix(name, ".go")) {
		return build(ctx, dir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// build compiles a main package as `go run` would.
func build(ctx context.Context, dir, pkg string) (string, error) {
	abs, err := filepath.Abs(pkg)
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, strings.TrimSuffix(filepath.Base(abs), ".go"))
	if runtime.GOOS == "windows" {
		out += ".exe"
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, ".")
	if strings.HasSuffix(abs, ".go") {
		cmd.Args[len(cmd.Args)-1] = filepath.Base(abs)
		abs = filepath.Dir(abs)
	}
	cmd.Dir = abs
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, bytes.TrimSpace(said))
	}
	if isArchive(out) {
		return "", fmt.Errorf("%s is not a program: its package is not main", pkg)
	}
	return out, nil
}

// isArchive reports whether the compiler wrote a library.
func isArchive(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, len("!<arch>"))
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == "!<arch>"
}
