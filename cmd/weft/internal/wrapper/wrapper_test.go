package wrapper

import (
	"errors"
	"strings"
	"testing"
)

func newWrapper(name string, env map[string]string, installed ...string) *wrapper {
	return &wrapper{
		name: name, language: languages[name], prefix: "/opt/weft",
		getenv: func(v string) string { return env[v] },
		lookPath: func(name string) (string, error) {
			for _, i := range installed {
				if i == name {
					return "/usr/bin/" + name, nil
				}
			}
			return "", errors.New("not found")
		},
	}
}

const (
	inc  = "-I/opt/weft/include"
	link = "-L/opt/weft/lib -Wl,-rpath,/opt/weft/lib -Wl,--enable-new-dtags -lmpi_abi"
)

func TestCommandLines(t *testing.T) {
	fortranLink := strings.Replace(link, "-lmpi_abi", "-lmpi_abi_fortran -lmpi_abi", 1)
	for _, tt := range []struct {
		name, args string
		env        map[string]string
		want       string
		run        bool
	}{
		{"mpicc", "-O2 x.c -o x", nil, "cc " + inc + " -O2 x.c -o x " + link, true},
		{"mpicc", "-c x.c", nil, "cc " + inc + " -c x.c", true},
		{"mpicc", "-E -", nil, "cc " + inc + " -E -", true},
		{"mpicc", "-x c -", nil, "cc " + inc + " -x c - " + link, true},
		{"mpicc", "--version", nil, "cc " + inc + " --version", true},
		{"mpicc", "-o x", nil, "cc " + inc + " -o x", true}, // the compiler says that there is no input
		{"mpicc", "-show x.o", nil, "cc " + inc + " x.o " + link, false},
		{"mpicc", "-show -c x.c", nil, "cc " + inc + " -c x.c", false},
		{"mpicc", "-show", nil, "cc " + inc + " " + link, false},
		{"mpicc", "--showme", nil, "cc " + inc + " " + link, false},
		{"mpicc", "-showme:compile", nil, inc, false},
		{"mpicc", "--showme:link", nil, link, false},
		{"mpicc", "-showme:incdirs", nil, "/opt/weft/include", false},
		{"mpicc", "-showme:libdirs", nil, "/opt/weft/lib", false},
		{"mpicc", "-showme:libs", nil, "mpi_abi", false},
		{"mpicc", "-showme:command", nil, "cc", false},
		{"mpicc", "-compile_info", nil, "cc " + inc + " -c", false},
		{"mpicc", "-link-info", nil, "cc " + inc + " " + link, false},
		{"mpicc", "-c x.c", map[string]string{"OMPI_CC": "icx"}, "icx " + inc + " -c x.c", true},
		{"mpicc", "-c x.c", map[string]string{"OMPI_CC": "icx", "WEFT_CC": "ccache gcc"}, "ccache gcc " + inc + " -c x.c", true},
		{"mpicc", "-cc=clang -c x.c", map[string]string{"MPICH_CC": "icx"}, "clang " + inc + " -c x.c", true},
		{"mpic++", "x.cc", nil, "g++ " + inc + " x.cc " + link, true},
		{"mpifort", "x.f90", nil, "gfortran " + inc + " -fallow-argument-mismatch x.f90 " + fortranLink, true},
		{"mpif77", "-c x.f", map[string]string{"MPICH_F77": "ifx"}, "ifx " + inc + " -c x.f", true},
	} {
		w := newWrapper(tt.name, tt.env, "cc", "gcc", "g++", "gfortran")
		line, run, err := w.command(strings.Fields(tt.args))
		if got := strings.Join(line, " "); err != nil || got != tt.want || run != tt.run {
			t.Errorf("%s %s: %q, run %v, %v; want %q, run %v", tt.name, tt.args, got, run, err, tt.want, tt.run)
		}
	}
}

func TestNoCompiler(t *testing.T) {
	_, _, err := newWrapper("mpifort", nil, "cc").command([]string{"x.f90"})
	if err == nil || !strings.Contains(err.Error(), "gfortran") || !strings.Contains(err.Error(), "WEFT_FC") {
		t.Errorf("without a Fortran compiler: %v; want what to install, and what to set", err)
	}
}

func TestHelpNamesTheCompilerVariable(t *testing.T) {
	line, run, err := newWrapper("mpicxx", nil, "c++").command([]string{"-showme:help"})
	if err != nil || run {
		t.Fatalf("-showme:help: %q, run %v, %v", line, run, err)
	}
	for _, want := range []string{"$WEFT_CXX", inc, link, "-show,", "-showme:libs", "-compile_info"} {
		if !strings.Contains(line[0], want) {
			t.Errorf("-showme:help lacks %q:\n%s", want, line[0])
		}
	}
}
