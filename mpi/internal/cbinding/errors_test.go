package cbinding

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// TestCodesOfGoErrors: every class of package mpi has one of the ABI.
func TestCodesOfGoErrors(t *testing.T) {
	for c := mpi.ClassSuccess; c <= mpi.ClassProcFailedPending; c++ {
		if c > lastClass && c < mpi.ClassRMAAccess {
			continue // no class
		}
		code := CodeOf(mpi.AddErrorCode(c, "x"))
		if code < 0 || code > lastClass || (code == 0) != (c == mpi.ClassSuccess) {
			t.Errorf("class %v has code %d", c, code)
		}
	}
	for err, want := range map[error]int{
		nil: 0, fmt.Errorf("sending: %w", mpi.ErrTag): abi.ErrTag, userCode(17000): 17000, errors.New("odd"): abi.ErrUnknown,
		ArgError(abi.ErrDims, "ndims", -1, "is negative"): abi.ErrDims,
	} {
		if got := CodeOf(err); got != want {
			t.Errorf("%v has code %d, want %d", err, got, want)
		}
	}
}
