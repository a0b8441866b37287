package cabi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// source writes a file of a project in a directory of its own.
func source(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const (
	cMain       = "#include <mpi.h>\n#include <stdio.h>\nint main(int c, char **v) { MPI_Init(&c, &v); MPI_Finalize(); puts(\"ok\"); return 0; }\n"
	fortranMain = "program p\nuse mpi_f08\ncall MPI_Init()\ncall MPI_Finalize()\nprint '(a)', 'ok'\nend program\n"
)

// TestCMakeFindsMPI builds a project with CMake's FindMPI, which asks the wrapper compilers.
func TestCMakeFindsMPI(t *testing.T) {
	dir := prefix(t)
	for _, name := range []string{"cmake", "make", "g++", "gfortran"} {
		if _, err := exec.LookPath(name); err != nil {
			testenv.Lacking(t, "%s not found: install Debian's %[1]s", name)
		}
	}
	project := t.TempDir()
	source(t, project, "c.c", cMain)
	source(t, project, "x.cc", cMain)
	source(t, project, "f.f90", fortranMain)
	source(t, project, "CMakeLists.txt", `cmake_minimum_required(VERSION 3.18)
project(p C CXX Fortran)
find_package(MPI REQUIRED)
message(STATUS "standard ${MPI_C_VERSION} ${MPI_CXX_VERSION}")
add_executable(c c.c)
target_link_libraries(c MPI::MPI_C)
add_executable(x x.cc)
target_link_libraries(x MPI::MPI_CXX)
add_executable(f f.f90)
target_link_libraries(f MPI::MPI_Fortran)
`)
	env := []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")}
	out, said, status := command(t, compileTime, env, "cmake", "-S", project, "-B", filepath.Join(project, "build"))
	if status != 0 || !strings.Contains(out, "standard 5.0 5.0") || !strings.Contains(out, filepath.Join(dir, "lib")) {
		t.Fatalf("cmake: status %d, want 0, MPI 5.0 and the library below %s\n%s%s", status, dir, out, said)
	}
	if out, said, status := command(t, compileTime, env, "cmake", "--build", filepath.Join(project, "build")); status != 0 {
		t.Fatalf("cmake --build: status %d\n%s%s", status, out, said)
	}
	for _, name := range []string{"c", "x", "f"} {
		if out, said, status := command(t, runTime, nil, filepath.Join(project, "build", name)); status != 0 || out != "ok\n" {
			t.Errorf("%s: status %d\n%s%s", name, status, out, said)
		}
	}
}

// TestPkgConfig compiles with the flags that pkg-config has, also after the installation was moved.
func TestPkgConfig(t *testing.T) {
	dir := prefix(t)
	if _, err := exec.LookPath("pkg-config"); err != nil {
		testenv.Lacking(t, "pkg-config not found: install Debian's pkgconf")
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Symlink(dir, moved); err != nil {
		t.Fatal(err)
	}
	project := t.TempDir()
	source(t, project, "c.c", cMain)
	for _, at := range []string{dir, moved} {
		env := []string{"PKG_CONFIG_PATH=" + filepath.Join(at, "lib", "pkgconfig")}
		flags, said, status := command(t, compileTime, env, "pkg-config", "--cflags", "--libs", "weft-mpi")
		if status != 0 || !strings.Contains(flags, at) {
			t.Fatalf("pkg-config: status %d, want flags with %s\n%s%s", status, at, flags, said)
		}
		exe := filepath.Join(project, "c")
		if _, said, status := command(t, compileTime, nil, "gcc", append([]string{filepath.Join(project, "c.c"), "-o", exe}, strings.Fields(flags)...)...); status != 0 {
			t.Fatalf("gcc %s: status %d\n%s", flags, status, said)
		}
		if out, said, status := command(t, runTime, nil, exe); status != 0 || out != "ok\n" {
			t.Errorf("status %d\n%s%s", status, out, said)
		}
	}
}

// TestHeaderStandsAlone compiles mpi.h as the only header, in C and C++, by standards since C90
// and C++98, with all warnings.
func TestHeaderStandsAlone(t *testing.T) {
	header := filepath.Join(prefix(t), "include", "mpi.h")
	for compiler, standards := range map[string][]string{"gcc": {"c90", "gnu90", "iso9899:199409", "c99", "gnu17"}, "g++": {"c++98", "c++11", "c++20"}} {
		if _, err := exec.LookPath(compiler); err != nil {
			testenv.Lacking(t, "%s not found: install Debian's %[1]s", compiler)
		}
		language := map[string]string{"gcc": "c", "g++": "c++"}[compiler]
		for _, std := range standards {
			_, said, status := command(t, compileTime, nil, compiler, "-std="+std, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only",
				"-x", language, header)
			if status != 0 || said != "" {
				t.Errorf("%s -std=%s: status %d\n%s", compiler, std, status, said)
			}
		}
	}
}
