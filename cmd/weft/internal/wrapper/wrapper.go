// Package wrapper is the compiler wrappers of the C library: mpicc, mpicxx and
// mpifort run the compiler of the system with the flags that MPI programs need. They
// are weft itself under another name, in the bin directory of an installation
// (weft install-mpi).
package wrapper

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// language is what a wrapper compiles.
type language struct {
	name      string
	compilers []string // the first that is installed is used
	env       []string // variables that name another, the first that is set
	option    string   // what MPICH's wrappers take for the same: -cc=NAME
	library   []string
}

var (
	c = language{
		name: "C", compilers: []string{"cc", "gcc", "clang"}, env: []string{"WEFT_CC", "MPICH_CC", "OMPI_CC"}, option: "-cc=",
		library: []string{"-lmpi_abi"},
	}
	cxx = language{
		name: "C++", compilers: []string{"c++", "g++", "clang++"}, env: []string{"WEFT_CXX", "MPICH_CXX", "OMPI_CXX"}, option: "-cxx=",
		library: []string{"-lmpi_abi"},
	}
	fortran = language{
		name: "Fortran", compilers: []string{"gfortran", "flang"}, option: "-fc=",
		env:     []string{"WEFT_FC", "MPICH_FC", "MPICH_F90", "MPICH_F77", "OMPI_FC", "OMPI_F90", "OMPI_F77"},
		library: []string{"-lmpi_abi_fortran", "-lmpi_abi"},
	}
)

// languages has the wrappers by their names.
var languages = map[string]language{
	"mpicc": c, "mpicxx": cxx, "mpic++": cxx, "mpiCC": cxx, "mpifort": fortran, "mpif90": fortran, "mpif77": fortran,
}

// Is reports whether a program of this name is a wrapper.
func Is(name string) bool { _, ok := languages[name]; return ok }

// Main runs the wrapper compiler of this name with args. Prefix is the directory that the
// library was installed in. It returns the exit status.
func Main(name, prefix string, args []string) int {
	w := wrapper{name: name, language: languages[name], prefix: prefix, getenv: os.Getenv, lookPath: exec.LookPath}
	line, run, err := w.command(args)
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	case !run:
		fmt.Println(line[0])
		return 0
	case slices.Contains(args, "--help"):
		w.usage(os.Stdout)
		fmt.Printf("\nOptions of the compiler, %s:\n\n", line[0])
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode()
	}
	fmt.Fprintf(os.Stderr, "%s: %s: %v\n", name, line[0], err)
	return 1
}

type wrapper struct {
	language
	name     string
	prefix   string
	getenv   func(string) string
	lookPath func(string) (string, error)
}

func (w *wrapper) include() string { return filepath.Join(w.prefix, "include") }
func (w *wrapper) lib() string     { return filepath.Join(w.prefix, "lib") }

// compileFlags are those that every compilation gets.
func (w *wrapper) compileFlags(compiler string) []string {
	flags := []string{"-I" + w.include()}
	if strings.Contains(filepath.Base(compiler), "gfortran") {
		// Buffers of many types go to the same procedure of mpif.h (MPI-5.0, 19.1.3).
		flags = append(flags, "-fallow-argument-mismatch")
	}
	return flags
}

// linkFlags are those that a link gets. The path in the program can be overridden by
// LD_LIBRARY_PATH.
func (w *wrapper) linkFlags() []string {
	flags := []string{"-L" + w.lib(), "-Wl,-rpath," + w.lib(), "-Wl,--enable-new-dtags"}
	return append(flags, w.library...)
}

// compiler returns the command of the compiler, which may have arguments.
func (w *wrapper) compiler(given string) ([]string, error) {
	for _, v := range w.env {
		given = cmp.Or(given, w.getenv(v))
	}
	if f := strings.Fields(given); len(f) > 0 {
		return f, nil
	}
	for _, name := range w.compilers {
		if _, err := w.lookPath(name); err == nil {
			return []string{name}, nil
		}
	}
	return nil, fmt.Errorf("no %s compiler: none of %s is installed, and %s is not set", w.language.name, strings.Join(w.compilers, ", "), w.env[0])
}

// guess returns the compiler that is run if no option names another, for the usage.
func (w *wrapper) guess() string {
	if c, err := w.compiler(""); err == nil {
		return c[0]
	}
	return w.compilers[0]
}

// command returns the command line to run, or with run false the line to print.
func (w *wrapper) command(args []string) (line []string, run bool, err error) {
	show, given := "", ""
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		value, isCompiler := strings.CutPrefix(a, w.option)
		switch {
		case isCompiler:
			given = value
			return true
		case question(a) != "":
			show = question(a)
			return true
		}
		return false
	})
	compiler, err := w.compiler(given)
	if err != nil {
		return nil, false, err
	}
	compile, link := w.compileFlags(compiler[0]), w.linkFlags()
	switch show {
	case "compile":
		return []string{strings.Join(compile, " ")}, false, nil
	case "link":
		return []string{strings.Join(link, " ")}, false, nil
	case "compile_info":
		return []string{strings.Join(append(append(compiler, compile...), "-c"), " ")}, false, nil
	case "link_info":
		return []string{strings.Join(slices.Concat(compiler, compile, link), " ")}, false, nil
	case "command":
		return []string{strings.Join(compiler, " ")}, false, nil
	case "incdirs":
		return []string{w.include()}, false, nil
	case "libdirs":
		return []string{w.lib()}, false, nil
	case "libs":
		var names []string
		for _, l := range w.library {
			names = append(names, strings.TrimPrefix(l, "-l"))
		}
		return []string{strings.Join(names, " ")}, false, nil
	case "version":
		return []string{fmt.Sprintf("%s: weft, ABI of MPI-5.0 (Language: %s)", w.name, w.language.name)}, false, nil
	case "help":
		var b strings.Builder
		w.usage(&b)
		return []string{strings.TrimSuffix(b.String(), "\n")}, false, nil
	}
	line = append(compiler, compile...)
	line = append(line, args...)
	if show == "all" && len(args) == 0 || links(args) {
		line = append(line, link...)
	}
	if show == "all" {
		return []string{strings.Join(line, " ")}, false, nil
	}
	return line, true, nil
}

// questions maps arguments that ask for flags to what they ask for: those of Open
// MPI's wrappers and of MPICH's.
var questions = map[string]string{
	"-show": "all", "-showme": "all", "-showme:compile": "compile", "-showme:link": "link", "-showme:command": "command",
	"-showme:incdirs": "incdirs", "-showme:libdirs": "libdirs", "-showme:libs": "libs", "-showme:version": "version",
	"-showme:help": "help", "-help": "help", "-compile_info": "compile_info", "-compile-info": "compile_info", "-link_info": "link_info",
	"-link-info": "link_info",
}

// question returns what an argument asks for; empty: it is for the compiler.
func question(arg string) string {
	if strings.HasPrefix(arg, "--show") {
		arg = arg[1:]
	}
	return questions[arg]
}

// links reports whether the compiler will link: it has something to work on, and is
// not told to stop before.
func links(args []string) bool {
	input := false
	for i, a := range args {
		switch a {
		case "-c", "-S", "-E", "-M", "-MM", "-fsyntax-only":
			return false
		}
		if a == "-" || !strings.HasPrefix(a, "-") && (i == 0 || !takesValue[args[i-1]]) {
			input = true
		}
	}
	return input
}

// takesValue are the flags of compilers that take the next argument as their value: it is no input file.
var takesValue = map[string]bool{"-o": true, "-x": true, "-I": true, "-L": true, "-D": true, "-U": true, "-include": true,
	"-isystem": true, "-MF": true, "-MT": true, "-MQ": true, "-J": true, "-Xlinker": true, "-T": true, "-u": true, "-arch": true}

func (w *wrapper) usage(b io.Writer) {
	fmt.Fprintf(b, `usage: %s [flags of the compiler] FILE...

%[1]s runs the %[2]s compiler with the flags that MPI programs need, and the flags
given. $%[3]s or %[4]sNAME names another compiler. It adds:

  to compile  %[5]s
  to link     %[6]s

Its own options, all others are the compiler's (--version and -v print its version):

  -show, -showme       print the command line instead of running it
  -showme:compile      print the flags to compile with
  -showme:link         print the flags to link with
  -showme:command      print the compiler
  -showme:incdirs      print the directories of headers
  -showme:libdirs      print the directories of libraries
  -showme:libs         print the names of the libraries
  -showme:version      print the version
  -compile_info, -link_info  print the command lines to compile and to link
  -showme:help         print this
`, w.name, w.language.name, w.env[0], w.option, strings.Join(w.compileFlags(w.guess()), " "), strings.Join(w.linkFlags(), " "))
}
