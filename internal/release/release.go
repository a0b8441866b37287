package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// allPlatforms are those that a release is built for.
var allPlatforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// documents go into every archive.
var documents = []string{"LICENSE", "README.md", "CHANGELOG.md"}

// checksums is the file with the digests of the archives, in the format of sha256sum.
const checksums = "SHA256SUMS"

// release is one release of the module in dir.
type release struct {
	dir       string
	version   string // with its v
	commands  []string
	platforms []platform
	dist      string // made by cut; must not exist
	out       io.Writer

	commit string    // set by check
	time   time.Time // of the commit: modification time of all files in the archives
}

// versionPattern is a semantic version without build metadata, which Go modules do not have.
var versionPattern = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// check reports what stands in the way of the release: a malformed version, an existing tag
// or directory, uncommitted changes, or no section in the changelog.
func (r *release) check(ctx context.Context) error {
	if !versionPattern.MatchString(r.version) {
		return fmt.Errorf("version %q: want the form v1.2.3 or v1.2.3-rc.1", r.version)
	}
	status, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		return fmt.Errorf("the work tree has uncommitted changes:\n%s", status)
	}
	tag, err := r.git(ctx, "tag", "--list", r.version)
	if err != nil {
		return err
	}
	if tag != "" {
		return fmt.Errorf("tag %s exists", r.version)
	}
	if _, err := os.Lstat(r.dist); err == nil {
		return fmt.Errorf("%s exists: remove it, or name another directory with -o", r.dist)
	}
	log, err := os.ReadFile(filepath.Join(r.dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	heading := regexp.MustCompile(`(?m)^## \[?v?` + regexp.QuoteMeta(r.version[1:]) + `\]?(\s|$)`)
	if !heading.Match(log) {
		return fmt.Errorf("CHANGELOG.md has no section \"## %s\"", r.version[1:])
	}
	if r.commit, err = r.git(ctx, "rev-parse", "HEAD"); err != nil {
		return err
	}
	date, err := r.git(ctx, "show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return err
	}
	r.time, err = time.Parse(time.RFC3339, date)
	return err
}

// printPlan prints the commands and files of the release.
func (r *release) printPlan() {
	fmt.Fprintf(r.out, "git tag -a %s %s\n", r.version, r.commit)
	for _, p := range r.platforms {
		for _, c := range r.commands {
			fmt.Fprintf(r.out, "GOOS=%s GOARCH=%s go build ./cmd/%s\n", p.os, p.arch, c)
		}
		fmt.Fprintf(r.out, "write %s\n", filepath.Join(r.dist, r.archiveName(p)))
	}
	fmt.Fprintf(r.out, "write %s\n", filepath.Join(r.dist, checksums))
}

// cut makes the release after check has passed. The tag comes first, since go build takes
// the version of the binaries from it; if anything fails, the tag and the directory are
// removed.
func (r *release) cut(ctx context.Context) (err error) {
	if _, err := r.git(ctx, "tag", "-a", r.version, "-m", "weft "+r.version, r.commit); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(r.dist)
			_, undo := r.git(context.WithoutCancel(ctx), "tag", "-d", r.version)
			err = errors.Join(err, undo)
		}
	}()
	tmp, err := os.MkdirTemp("", "weft-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	// Built in a directory apart: files in dist would make the work tree a modified one.
	var sums bytes.Buffer
	var archives []string
	for _, p := range r.platforms {
		files, err := r.build(ctx, filepath.Join(tmp, p.os+"-"+p.arch), p)
		if err != nil {
			return err
		}
		for _, name := range documents {
			files = append(files, file{name: name, path: filepath.Join(r.dir, name), mode: 0o644})
		}
		name := r.archiveName(p)
		b, err := archive(name, r.baseName(p), r.time, files)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(tmp, name), b, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(b), name)
		archives = append(archives, name)
	}
	if err := os.WriteFile(filepath.Join(tmp, checksums), sums.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.Mkdir(r.dist, 0o755); err != nil {
		return err
	}
	for _, name := range append(archives, checksums) {
		b, err := os.ReadFile(filepath.Join(tmp, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.dist, name), b, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.out, "done; publish it by: git push origin %s\n", r.version)
	return nil
}

// build builds the commands for a platform into dir.
func (r *release) build(ctx context.Context, dir string, p platform) (files []file, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	for _, c := range r.commands {
		name := c
		if p.os == "windows" {
			name += ".exe"
		}
		path := filepath.Join(dir, name)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-o", path, "./cmd/"+c)
		cmd.Dir = r.dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOOS="+p.os, "GOARCH="+p.arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building %s for %v: %w\n%s", c, p, err, bytes.TrimSpace(out))
		}
		files = append(files, file{name: name, path: path, mode: 0o755})
	}
	return files, nil
}

// baseName is the directory within the archive of a platform.
func (r *release) baseName(p platform) string {
	return fmt.Sprintf("weft-%s-%s-%s", r.version[1:], p.os, p.arch)
}

func (r *release) archiveName(p platform) string {
	if p.os == "windows" {
		return r.baseName(p) + ".zip"
	}
	return r.baseName(p) + ".tar.gz"
}

// git runs git in the module's directory and returns its output without the final newline.
func (r *release) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", args[0], err, bytes.TrimSpace(errs.Bytes()))
	}
	return strings.TrimRight(string(out), "\n"), nil
}
