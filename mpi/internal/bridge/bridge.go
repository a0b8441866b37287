// Package bridge lets the C face of package mpi, which is below mpi/internal, reach what programs in
// Go have no use for. Package mpi sets the variables when it is initialized.
package bridge

import "github.com/weftstack/weft/mpi/internal/fileio"

// RegisterDatarep makes a data representation of items of all datatypes known to a *mpi.World by a name
// (MPI_Register_datarep). It returns mpi.ErrDatarep for a name that is taken, and mpi.ErrOption for one
// that is empty or too long.
var RegisterDatarep func(world any, name string, rep *fileio.Items) error

// CheckOption returns why MPI_Init would refuse a value of an environment variable of the library, or nil.
var CheckOption func(name, value string) error

// ParseSize reads a number of bytes as environment variables have it, with an optional suffix K, M or G.
var ParseSize func(string) (int, error)

// CallName returns the name in MPI of a call that a program in C or Fortran is in, from the name of
// its entry in the stack of a goroutine, or "" for any other name. The C face sets it; nil without.
var CallName func(entry string) string

// SkipCollective uses up the turn of a collective of a kind, a coll.Kind, on a *mpi.Comm: of one that the caller
// refuses for its arguments while the other ranks may have begun it, so that later ones match those of the others
// (MPI-4.1, Section 6.1). blocks tells the blocking form from the nonblocking one.
var SkipCollective func(comm any, kind int, blocks bool)

// OpReturns marks a mpi.ItemOp of a function that always returns: it neither panics nor ends its goroutine. Nonblocking
// reductions may call it on any goroutine of the program that is in a call of MPI.
var OpReturns func(op any)
