package cbinding

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi"
)

// Errors of package mpi get the names that operators, elements and procedures have in MPI.
func TestWordsOfMPI(t *testing.T) {
	for _, tt := range []struct {
		err        error
		proc, want string
	}{
		{fmt.Errorf("%w: band of MPI_DOUBLE", mpi.ErrOp), "MPI_Reduce", "operator not allowed here: MPI_BAND of MPI_DOUBLE"},
		{fmt.Errorf("%w: nonsense of MPI_DOUBLE", mpi.ErrOp), "MPI_Reduce", "operator not allowed here: nonsense of MPI_DOUBLE"},
		{fmt.Errorf("%w: int32 and float64", mpi.ErrTypeMismatch), "MPI_Recv", "element types do not match: MPI_INT and MPI_DOUBLE"},
		{fmt.Errorf("opening file: %w: want one of FileRead and FileReadWrite", mpi.ErrMode), "MPI_File_open",
			"opening file: access mode of the file: want one of MPI_MODE_RDONLY and MPI_MODE_RDWR"},
		{errors.New("mpi: it failed (in bcast)"), "MPI_Bcast", "it failed"},
	} {
		if got := inC(tt.proc, tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
