// Package include has the header of the C library, for the command that installs it.
package include

import _ "embed"

// Header is mpi.h.
//
//go:embed mpi.h
var Header []byte
