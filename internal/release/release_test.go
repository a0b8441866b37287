package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// module makes a repository with a module that has one command, and returns a release of it
// for the platform that the test runs on.
func module(t *testing.T) (*release, *bytes.Buffer) {
	t.Helper()
	for _, tool := range []string{"git", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			testenv.Lacking(t, "a release needs %s: %v", tool, err)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/prog\n\ngo 1.26\n", "cmd/prog/main.go": "package main\n\nfunc main() { println(\"hello\") }\n",
		"LICENSE": "licence\n", "README.md": "readme\n", "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-01-02)\n\n- all\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+kind+"_NAME", "Test")
		t.Setenv("GIT_"+kind+"_EMAIL", "test@example.com")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	t.Setenv("GOWORK", "off")
	out := new(bytes.Buffer)
	r := &release{
		dir: dir, version: "v1.2.3", commands: []string{"prog"}, dist: filepath.Join(t.TempDir(), "dist"), out: out,
		platforms: []platform{{runtime.GOOS, runtime.GOARCH}},
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "first"}} {
		if _, err := r.git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	return r, out
}

// unpack returns the content of the files in an archive.
func unpack(t *testing.T, name string) map[string][]byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	if strings.HasSuffix(name, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			if files[f.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		return files
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// A release of one platform has a tag, an archive whose binary knows the version, and
// checksums that fit.
func TestCut(t *testing.T) {
	r, out := module(t)
	if err := r.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.cut(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tagged, err := r.git(t.Context(), "rev-parse", "v1.2.3^{commit}"); err != nil || tagged != r.commit {
		t.Errorf("the tag is %s, %v; want %s", tagged, err, r.commit)
	}
	if !strings.Contains(out.String(), "git push origin v1.2.3") {
		t.Errorf("output %q does not say how to publish the release", out)
	}
	name := filepath.Join(r.dist, r.archiveName(r.platforms[0]))
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(r.dist, checksums))
	if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(b), filepath.Base(name)); err != nil || string(sums) != want {
		t.Errorf("checksums %q, %v; want %q", sums, err, want)
	}
	files, base := unpack(t, name), r.baseName(r.platforms[0])+"/"
	for _, doc := range documents {
		if len(files[base+doc]) == 0 {
			t.Errorf("the archive lacks %s", base+doc)
		}
	}
	prog := "prog"
	if runtime.GOOS == "windows" {
		prog += ".exe"
	}
	info, err := buildinfo.Read(bytes.NewReader(files[base+prog]))
	if err != nil {
		t.Fatalf("%s: %v; the archive has %d files", base+prog, err, len(files))
	}
	if info.Main.Version != "v1.2.3" {
		t.Errorf("the binary is of version %q, want v1.2.3", info.Main.Version)
	}
}

// A release that does not build leaves neither a tag nor a directory.
func TestCutThatFailsIsUndone(t *testing.T) {
	r, _ := module(t)
	if err := r.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.commands = []string{"nothing"}
	if err := r.cut(t.Context()); err == nil || !strings.Contains(err.Error(), "building nothing") {
		t.Errorf("error %v, want one of the build", err)
	}
	if tag, err := r.git(t.Context(), "tag", "--list"); err != nil || tag != "" {
		t.Errorf("tag %q is left, %v", tag, err)
	}
	if _, err := os.Stat(r.dist); err == nil {
		t.Error("the directory is left")
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		change     func(r *release)
	}{
		{"version", "want the form", func(r *release) { r.version = "1.2.3" }},
		{"metadata", "want the form", func(r *release) { r.version = "v1.2.3+x" }},
		{"changelog", `no section "## 1.2.4"`, func(r *release) { r.version = "v1.2.4" }},
		{"changes", "uncommitted", func(r *release) { os.WriteFile(filepath.Join(r.dir, "new"), nil, 0o644) }},
		{"directory", "exists", func(r *release) { os.Mkdir(r.dist, 0o755) }},
		{"tag", "tag v1.2.3 exists", func(r *release) { r.git(t.Context(), "tag", "v1.2.3") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := module(t)
			tt.change(r)
			if err := r.check(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// The plan names a build and an archive for each of the six platforms.
func TestPlan(t *testing.T) {
	var out bytes.Buffer
	r := &release{version: "v1.2.3", commit: "abc", commands: []string{"weft", "farm"}, platforms: allPlatforms, dist: "dist", out: &out}
	r.printPlan()
	plan := filepath.ToSlash(out.String())
	for _, want := range []string{
		"git tag -a v1.2.3 abc\n", "GOOS=linux GOARCH=arm64 go build ./cmd/farm\n", "write dist/weft-1.2.3-darwin-arm64.tar.gz\n",
		"write dist/weft-1.2.3-windows-amd64.zip\n", "write dist/SHA256SUMS\n",
	} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan lacks %q:\n%s", want, plan)
		}
	}
	if got, want := strings.Count(plan, "go build"), 2*3*2; got != want {
		t.Errorf("%d builds, want %d", got, want)
	}
}
