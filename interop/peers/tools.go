package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed csrc
var csrc embed.FS

// tools are the programs that the experiments run, built for them.
type tools struct {
	root string // of the repository
	dir  string // of what was built; removed at the end
	weft string
	self string
	have map[string]string // C programs by name
	miss map[string]error  // and why others are not there
}

func newTools(ctx context.Context) (*tools, error) {
	t := &tools{have: map[string]string{}, miss: map[string]error{}}
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("the go command: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(filepath.Dir(mod)) != "peers" {
		return nil, errors.New("run this in the directory interop/peers of the repository")
	}
	t.root = filepath.Dir(filepath.Dir(filepath.Dir(mod)))
	if t.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if t.dir, err = os.MkdirTemp("", "weft-peers-"); err != nil {
		return nil, err
	}
	t.weft = filepath.Join(t.dir, "weft")
	for _, name := range []string{"weft", "farm"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(t.dir, name), "./cmd/"+name)
		cmd.Dir = t.root
		if said, err := cmd.CombinedOutput(); err != nil {
			t.close()
			return nil, fmt.Errorf("building %s: %w: %s", name, err, said)
		}
	}
	return t, nil
}

func (t *tools) close() { os.RemoveAll(t.dir) }

// farm returns the path of cmd/farm.
func (t *tools) farm() string { return filepath.Join(t.dir, "farm") }

// compile builds csrc/SOURCE.c once with a compiler, and returns the program.
func (t *tools) compile(ctx context.Context, name, source, compiler string, flags ...string) (string, error) {
	if path, ok := t.have[name]; ok {
		return path, nil
	}
	if err, ok := t.miss[name]; ok {
		return "", err
	}
	path, err := t.build(ctx, name, source, compiler, flags)
	if err != nil {
		t.miss[name] = err
		return "", err
	}
	t.have[name] = path
	return path, nil
}

func (t *tools) build(ctx context.Context, name, source, compiler string, flags []string) (string, error) {
	if _, err := exec.LookPath(compiler); err != nil {
		return "", fmt.Errorf("%s is not installed", compiler)
	}
	for _, f := range []string{source + ".c", "common.h"} {
		text, err := csrc.ReadFile("csrc/" + f)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(t.dir, f), text, 0o644); err != nil {
			return "", err
		}
	}
	path := filepath.Join(t.dir, name)
	args := append([]string{"-O2", "-o", path, filepath.Join(t.dir, source+".c")}, flags...)
	if said, err := exec.CommandContext(ctx, compiler, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s %s.c: %w: %.300s", compiler, source, err, said)
	}
	return path, nil
}
