package launch

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// foreignLibrary returns the library of another MPI among those that a program is linked with if its
// ranks cannot find each other under this launcher, and "" otherwise. Libraries of MPICH speak
// PMI-1, as weft run does; those of Open MPI do not.
func foreignLibrary(needed []string) string {
	if slices.ContainsFunc(needed, func(l string) bool { return strings.HasPrefix(l, "libmpi_abi.so") }) {
		return ""
	}
	i := slices.IndexFunc(needed, func(l string) bool {
		for _, name := range []string{"libmpi.so.40", "libmpi.so.20", "libmpi_mpifh.so", "libmpi_usempif08.so"} {
			if strings.HasPrefix(l, name) {
				return true
			}
		}
		return false
	})
	if i < 0 {
		return ""
	}
	return needed[i]
}

// warnOfForeign writes a line to w for each program that was built with a library of Open MPI: its
// ranks would run as jobs of one rank each, without a word.
func warnOfForeign(w io.Writer, programs []rankProgram) {
	said := make(map[string]bool)
	for _, p := range programs {
		if len(programs) == 1 || said[p.path] {
			continue
		}
		said[p.path] = true
		f, err := elf.Open(p.path)
		if err != nil {
			continue // a script, or not of this system
		}
		needed, _ := f.ImportedLibraries()
		f.Close()
		if l := foreignLibrary(needed); l != "" {
			fmt.Fprintf(w, "weft run: %s is linked with %s of Open MPI, whose ranks do not find each other under this launcher: "+
				"each is a job of its own; compile it with the mpicc or mpifort of weft\n", p.path, l)
		}
	}
}

// formatHint says what a file is that the system does not execute.
func formatHint(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return "it is neither a program nor a script that begins with #!"
	}
	defer f.Close()
	own := runtime.GOARCH
	if self, err := os.Executable(); err == nil {
		if s, err := elf.Open(self); err == nil {
			own = s.Machine.String()
			s.Close()
		}
	}
	return fmt.Sprintf("it is a program for %v, and this machine is %s", f.Machine, own)
}
