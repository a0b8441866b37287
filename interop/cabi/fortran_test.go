package cabi

import (
	"os"
	"path/filepath"
	"testing"
)

// Units of Fortran are written when a program aborts. An abort within a statement,
// which has a unit locked, ends the program nevertheless.
func TestFortranUnitsAtAbort(t *testing.T) {
	exe := compile(t, filepath.Join("testdata", "fortran", "abort.f90"))
	for _, tc := range []struct {
		name string
		args []string
	}{{"abort", nil}, {"fatal error within a statement", []string{"locked"}}} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			unit, screen := filepath.Join(dir, "unit"), filepath.Join(dir, "screen")
			// gfortran buffers what goes to a file.
			args := append([]string{"-c", `"$0" "$@" > ` + screen, exe, unit}, tc.args...)
			_, said, status := command(t, runTime, nil, "sh", args...)
			if status == 0 {
				t.Errorf("status 0 after an abort\n%s", said)
			}
			if tc.args != nil {
				return // with a unit locked, what others hold may be lost
			}
			if got, err := os.ReadFile(unit); err != nil || string(got) != "in a unit\n" {
				t.Errorf("the unit has %q, %v", got, err)
			}
			if got, err := os.ReadFile(screen); err != nil || string(got) != "on the screen\n" {
				t.Errorf("standard output has %q, %v", got, err)
			}
		})
	}
}
