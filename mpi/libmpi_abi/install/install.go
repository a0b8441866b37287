package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/weftstack/weft/mpi/internal/fortran"
)

// Names of what is installed. The ABI (MPI-5.0, 20.1) gives the first to the library
// of every MPI, so that a program finds it whatever it was compiled with.
const (
	Library     = "libmpi_abi.so.1"
	LinkLibrary = "libmpi_abi.so" // what -lmpi_abi finds
)

// Wrappers are the names of the commands that are installed next to weft, each of
// them a link to it: compilers, and two names of weft run.
var Wrappers = []string{"mpicc", "mpicxx", "mpic++", "mpiCC", "mpifort", "mpif90", "mpif77", "mpiexec", "mpirun"}

// Options say what to install.
type Options struct {
	Prefix  string                           // directory that gets bin, include, lib and share
	Source  string                           // directory of weft's source; empty: [Source]
	Weft    string                           // executable of weft, which is copied to bin
	Version string                           // of weft, for pkg-config
	Step    func(format string, args ...any) // called before each step, which may take a minute; nil: not called
	Output  io.Writer                        // what the Go tool prints; nil: only in errors
}

// Installed says what was installed.
type Installed struct {
	Prefix  string   `json:"prefix"`
	Source  string   `json:"source"`
	Library string   `json:"library"`
	Header  string   `json:"header"`
	Config  string   `json:"pkgconfig"`
	Fortran string   `json:"fortran"` // compiler of the modules; empty: there are none
	Tools   []string `json:"tools"`
}

// Install builds the library and installs it with mpi.h, the wrapper compilers,
// mpiexec and a file for pkg-config. It replaces what an earlier call has installed;
// each file appears as a whole, so that programs may run meanwhile. An error names
// the step, and what a tool has said.
func Install(ctx context.Context, o Options) (Installed, error) {
	var done Installed
	if runtime.GOOS != "linux" {
		return done, fmt.Errorf("the C library is built on Linux, and this is %s", runtime.GOOS)
	}
	if o.Step == nil {
		o.Step = func(string, ...any) {}
	}
	prefix, err := filepath.Abs(o.Prefix)
	if err != nil {
		return done, err
	}
	if err := haveTools(); err != nil {
		return done, err
	}
	if o.Source == "" {
		if o.Source, err = Source(ctx, o.Version); err != nil {
			return done, err
		}
	} else {
		if o.Source, err = filepath.Abs(o.Source); err == nil {
			err = isSource(o.Source)
		}
		if err != nil {
			return done, err
		}
	}
	done = Installed{
		Prefix: prefix, Source: o.Source,
		Library: filepath.Join(prefix, "lib", Library),
		Header:  filepath.Join(prefix, "include", "mpi.h"),
		Config:  filepath.Join(prefix, "lib", "pkgconfig", "weft-mpi.pc"),
	}
	for _, dir := range []string{"bin", "include", "lib/pkgconfig", "share/doc/weft", "share/weft"} {
		if err := os.MkdirAll(filepath.Join(prefix, dir), 0o755); err != nil {
			return done, err
		}
	}

	o.Step("building %s from %s", done.Library, o.Source)
	if err := build(ctx, o, done.Library); err != nil {
		return done, err
	}
	if err := link(Library, filepath.Join(prefix, "lib", LinkLibrary)); err != nil {
		return done, err
	}
	o.Step("installing mpi.h, wrapper compilers and mpiexec below %s", prefix)
	if err := copyFile(filepath.Join(o.Source, "mpi/libmpi_abi/include/mpi.h"), done.Header, 0o644); err != nil {
		return done, err
	}
	if err := copyFile(filepath.Join(o.Source, "LICENSE"), filepath.Join(prefix, "share/doc/weft/LICENSE"), 0o644); err != nil {
		return done, err
	}
	if err := copyFile(filepath.Join(o.Source, "mpi/libmpi_abi/gdb.py"), filepath.Join(prefix, "share/weft/gdb.py"), 0o644); err != nil {
		return done, err
	}
	o.Step("installing the Fortran bindings")
	f, err := fortran.Config{Prefix: prefix, CC: Compiler(), FC: os.Getenv("FC")}.Install(ctx)
	if err != nil {
		return done, err
	}
	if done.Fortran = f.Compiler; done.Fortran == "" {
		o.Step("no modules for use mpi and use mpi_f08: there is no gfortran (Debian: apt install gfortran), and FC is not set")
	}
	weft := filepath.Join(prefix, "bin", "weft")
	if err := copyFile(o.Weft, weft, 0o755); err != nil {
		return done, err
	}
	done.Tools = []string{weft}
	for _, name := range Wrappers {
		path := filepath.Join(prefix, "bin", name)
		if err := link("weft", path); err != nil {
			return done, err
		}
		done.Tools = append(done.Tools, path)
	}
	if err := replace(done.Config, 0o644, strings.NewReader(pkgConfig(o.Version))); err != nil {
		return done, err
	}
	return done, nil
}

// Compiler returns the C compiler that the Go tool uses: $CC, or gcc.
func Compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

// haveTools says what is missing to build.
func haveTools() error {
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("the Go tool is needed to build the library (https://go.dev/dl): %w", err)
	}
	cc, _, _ := strings.Cut(Compiler(), " ")
	if _, err := exec.LookPath(cc); err != nil {
		return fmt.Errorf("a C compiler is needed to build the library (Debian: apt install gcc libc6-dev; or set CC): %w", err)
	}
	return nil
}

// build compiles the library.
func build(ctx context.Context, o Options, library string) error {
	partial := library + ".partial"
	defer os.Remove(partial)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildmode=c-shared",
		"-pgo="+filepath.Join(o.Source, "cmd/weft/default.pgo"), // the hot paths are those of the command
		// A signal that preempts goroutines would interrupt system calls of the program (EINTR).
		"-ldflags", "-X runtime.godebugDefault=asyncpreemptoff=1 '-extldflags=-Wl,-soname,"+Library+
			" -Wl,--wrap=pthread_create"+ // monitor.c
			" -Wl,--version-script="+filepath.Join(o.Source, "mpi/libmpi_abi/symbols.map")+"'",
		"-o", partial, "./mpi/libmpi_abi")
	cmd.Dir = o.Source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=", "GOWORK=off")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if o.Output != nil {
		cmd.Stdout = io.MultiWriter(&said, o.Output)
		cmd.Stderr = cmd.Stdout
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s by %s in %s: %w\n%s", Library, strings.Join(cmd.Args[:5], " "), o.Source, err, bytes.TrimSpace(said.Bytes()))
	}
	// c-shared writes a header of its own beside the library, which no program needs.
	if err := os.Remove(strings.TrimSuffix(partial, ".partial") + ".h"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(partial, library)
}

// link makes name a symbolic link to target, whatever it was.
func link(target, name string) error {
	partial := name + ".partial"
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, partial); err != nil {
		return err
	}
	return os.Rename(partial, name)
}

// copyFile copies a file, which may be the one that runs.
func copyFile(from, to string, mode os.FileMode) error {
	a, err := os.Stat(from)
	if err != nil {
		return err
	}
	if b, err := os.Stat(to); err == nil && os.SameFile(a, b) {
		return nil
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return replace(to, mode, f)
}

// replace gives a file a new content at once.
func replace(name string, mode os.FileMode, content io.Reader) error {
	partial := name + ".partial"
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err := errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		os.Remove(partial)
		return err
	}
	return os.Rename(partial, name)
}

// pkgConfig returns weft-mpi.pc, which holds wherever the prefix is moved to.
func pkgConfig(version string) string {
	version = strings.TrimPrefix(version, "v")
	if version == "" {
		version = "0"
	}
	return `prefix=${pcfiledir}/../..
includedir=${prefix}/include
libdir=${prefix}/lib

Name: weft-mpi
Description: MPI over SCTP and iWARP, with the ABI of MPI-5.0
Version: ` + version + `
Cflags: -I${includedir}
Libs: -L${libdir} -Wl,-rpath,${libdir} -lmpi_abi
`
}
