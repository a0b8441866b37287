// Package terminal recognizes terminals.
package terminal

import (
	"os"

	"golang.org/x/term"
)

// Is reports whether f is a terminal.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
