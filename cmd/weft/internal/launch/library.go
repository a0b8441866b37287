package launch

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// envLibrary names the directory of the C library, libmpi_abi.so.1, for programs in C
// and Fortran. Without it that is lib beside the directory of weft, as weft
// install-mpi has it.
const envLibrary = "WEFT_MPI_LIB"

// libraryPath returns LD_LIBRARY_PATH with the directory of the C library in front,
// so that the dynamic linker finds it also for a program that was built for another
// MPI with the same ABI. env is what the ranks get beyond this process's own. Without
// a library it returns nothing.
func libraryPath(env []string) []string {
	if runtime.GOOS != "linux" {
		return nil
	}
	get := func(name string) string {
		for _, v := range slices.Backward(env) {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return os.Getenv(name)
	}
	dir := get(envLibrary)
	if dir == "" {
		exe, err := os.Executable()
		if err == nil {
			exe, err = filepath.EvalSymlinks(exe)
		}
		if err != nil {
			return nil
		}
		dir = filepath.Join(filepath.Dir(filepath.Dir(exe)), "lib")
	}
	if _, err := os.Stat(filepath.Join(dir, "libmpi_abi.so.1")); err != nil {
		return nil
	}
	path := get("LD_LIBRARY_PATH")
	if slices.Contains(filepath.SplitList(path), dir) {
		return nil // where the user put it
	}
	if path != "" {
		dir += string(filepath.ListSeparator) + path
	}
	return []string{"LD_LIBRARY_PATH=" + dir}
}
