package fortran

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Library is the file name of the library that the bindings are, and its soname.
const Library = "libmpi_abi_fortran.so.1"

// Config says where the bindings go and who compiles them.
type Config struct {
	// Prefix is the directory of an installation that has include/mpi.h and
	// lib/libmpi_abi.so.
	Prefix string
	CC     string // the C compiler; empty: cc
	// FC is the Fortran compiler, one with the conventions of gfortran. If it is
	// empty, gfortran is taken if it is there. Without one the installation gets
	// mpif.h and the library, but no modules.
	FC string
}

// Result says what Install has done.
type Result struct {
	Compiler string   // the Fortran compiler; empty if there was none, and so no modules
	Files    []string // installed, relative to the prefix
}

// Install compiles the bindings and copies them into the prefix. It takes some
// seconds, which ctx can end.
func (c Config) Install(ctx context.Context) (Result, error) {
	if c.CC == "" {
		c.CC = "cc"
	}
	fc := c.FC
	if fc == "" {
		fc = "gfortran"
	}
	path, err := exec.LookPath(fc)
	if err != nil && (c.FC != "" || !errors.Is(err, exec.ErrNotFound)) {
		return Result{}, fmt.Errorf("fortran: compiler %s: %w", fc, err)
	}
	c.FC = path
	dir, err := os.MkdirTemp("", "weft-fortran-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	b := build{Config: c, dir: dir}
	if err := b.compile(ctx); err != nil {
		return Result{}, err
	}
	return b.install(ctx)
}

// build is the compilation of the bindings in a directory of its own.
type build struct {
	Config
	dir     string
	objects []string
}

func (b *build) compile(ctx context.Context) error {
	sources, err := Sources()
	if err != nil {
		return err
	}
	for _, s := range sources { // headers may be included by any
		if err := os.WriteFile(filepath.Join(b.dir, s.Name), []byte(s.Text), 0o644); err != nil {
			return err
		}
	}
	include := "-I" + filepath.Join(b.Prefix, "include")
	descriptors := ""
	if b.FC != "" {
		// Behind all others: only ISO_Fortran_binding.h is to come from here.
		out, err := b.run(ctx, b.FC, "-print-file-name=include")
		if err != nil {
			return err
		}
		descriptors = "-idirafter" + strings.TrimSpace(out)
	}
	for _, s := range sources {
		if s.Fortran && b.FC == "" {
			continue
		}
		object := s.Name + ".o"
		switch filepath.Ext(s.Name) {
		case ".c":
			args := []string{"-O2", "-fPIC", "-I.", include, "-c", s.Name, "-o", object}
			if s.Fortran {
				args = append(args, descriptors)
			}
			_, err = b.run(ctx, b.CC, args...)
		case ".f90":
			_, err = b.run(ctx, b.FC, "-O2", "-fPIC", "-c", s.Name, "-o", object)
		default:
			continue
		}
		if err != nil {
			return err
		}
		b.objects = append(b.objects, object)
	}
	return nil
}

// install links the library and copies what a program needs.
func (b *build) install(ctx context.Context) (Result, error) {
	lib := filepath.Join(b.Prefix, "lib")
	args := append([]string{"-shared", "-o", Library, "-Wl,-soname," + Library, "-Wl,-rpath,$ORIGIN"}, b.objects...)
	if _, err := b.run(ctx, b.CC, append(args, "-L"+lib, "-lmpi_abi", "-lpthread")...); err != nil {
		return Result{}, err
	}
	r := Result{Compiler: b.FC}
	files, err := os.ReadDir(b.dir)
	if err != nil {
		return r, err
	}
	for _, f := range files {
		var to string
		switch {
		case f.Name() == Library:
			to = filepath.Join("lib", Library)
		case f.Name() == "mpif.h", filepath.Ext(f.Name()) == ".mod":
			to = filepath.Join("include", f.Name())
		default:
			continue
		}
		if err := copyFile(filepath.Join(b.Prefix, to), filepath.Join(b.dir, f.Name())); err != nil {
			return r, err
		}
		r.Files = append(r.Files, to)
	}
	link := strings.TrimSuffix(Library, ".1")
	if err := os.Remove(filepath.Join(lib, link)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	r.Files = append(r.Files, filepath.Join("lib", link))
	return r, os.Symlink(Library, filepath.Join(lib, link))
}

// copyFile replaces a file, so that a process that has it mapped keeps the old one.
func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// run runs a compiler in the directory of the build and returns its output.
func (b *build) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = b.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("fortran: %s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out), nil
}

// CompileFlags returns what mpifort passes to a Fortran compiler. Calls of one
// procedure with buffers of different types are an error to gfortran in programs that
// include mpif.h, unless it is told otherwise.
func CompileFlags(prefix, compiler string) []string {
	flags := []string{"-I" + filepath.Join(prefix, "include")}
	if strings.Contains(filepath.Base(compiler), "gfortran") {
		flags = append(flags, "-fallow-argument-mismatch")
	}
	return flags
}

// LinkFlags returns what mpifort passes to the compiler when it links, behind the
// program's own objects.
func LinkFlags(prefix string) []string {
	lib := filepath.Join(prefix, "lib")
	return []string{"-L" + lib, "-Wl,-rpath," + lib, "-lmpi_abi_fortran", "-lmpi_abi"}
}
