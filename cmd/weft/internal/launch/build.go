package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// executable returns the path of the program of a section: a Go package directory or file is
// built into dir, anything else is looked up.
func executable(ctx context.Context, dir string, s section) (string, error) {
	name := s.argv[0]
	info, err := os.Stat(name)
	if err == nil && (info.IsDir() || strings.HasSuffix(name, ".go")) {
		return build(ctx, dir, name)
	}
	return lookUp(name, s.wdir, s.path)
}

// lookUp returns the absolute path of a program. A relative path is one from the working
// directory dir of the ranks, or else from the current one. A name alone is looked up in the
// directories of path, a list, in $PATH, and in the working directory.
func lookUp(name, dir, path string) (string, error) {
	bare := filepath.Base(name) == name
	var tries, places []string
	if bare {
		for _, d := range filepath.SplitList(path) {
			tries, places = append(tries, filepath.Join(d, name)), append(places, d)
		}
		tries, places = append(tries, name), append(places, "$PATH")
	}
	if filepath.IsAbs(name) {
		tries, places = append(tries, name), append(places, filepath.Dir(name))
	} else {
		for _, d := range slices.Compact([]string{dir, "."}) {
			if d, err := filepath.Abs(d); err == nil {
				tries, places = append(tries, filepath.Join(d, name)), append(places, d)
			}
		}
	}
	var denied error
	for _, t := range tries {
		found, err := exec.LookPath(t)
		if err == nil {
			return filepath.Abs(found)
		}
		if errors.Is(err, os.ErrPermission) && denied == nil {
			denied = fmt.Errorf("program %s: it is not executable", t)
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fmt.Errorf("program %s: %w in %s", name, errNoProgram, strings.Join(slices.Compact(places), " or "))
}

// errNoProgram is the error of a program that is not found.
var errNoProgram = errors.New("not found")

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
