package environment_test

import (
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
	"github.com/weftstack/weft/mpi/internal/cbinding/environment"
)

func TestErrorCodes(t *testing.T) {
	ctest.Returning(t)
	b := ctest.NewBox()
	ctest.Must(t, environment.AddErrorClass(ctest.Addr(&b.N)))
	class := int(b.N)
	ctest.Must(t, environment.AddErrorCode(class, ctest.Addr(&b.N)))
	code := int(b.N)
	if class <= abi.ErrLastcode || code <= class {
		t.Errorf("class %d, code %d", class, code)
	}
	ctest.Must(t, environment.AddErrorString(class, ctest.CString("disk")))
	ctest.Must(t, environment.AddErrorString(code, ctest.CString("disk full")))
	ctest.Must(t, environment.ErrorClass(code, ctest.Addr(&b.N)))
	ctest.Must(t, environment.ErrorString(code, ctest.Addr(&b.Text), ctest.Addr(&b.Flag)))
	if int(b.N) != class || b.String() != "disk full" || b.Flag != 9 {
		t.Errorf("class %d, text %q of %d", b.N, b.String(), b.Flag)
	}
	ctest.WantError(t, environment.RemoveErrorClass(class), abi.ErrArg, "has 1 codes")
	ctest.WantError(t, environment.RemoveErrorCode(code), abi.ErrArg, `has a string that was not removed: "disk full"`)
	ctest.Must(t, environment.RemoveErrorString(code))
	ctest.Must(t, environment.RemoveErrorCode(code))
	ctest.WantError(t, environment.RemoveErrorClass(class), abi.ErrArg, `has a string that was not removed: "disk"`)
	ctest.Must(t, environment.RemoveErrorString(class))
	ctest.Must(t, environment.RemoveErrorClass(class))
	ctest.WantError(t, environment.ErrorClass(code, ctest.Addr(&b.N)), abi.ErrArg, "is no error code")
	ctest.WantError(t, environment.RemoveErrorCode(abi.ErrArg), abi.ErrArg, "was not added")
	ctest.WantError(t, environment.AddErrorString(abi.ErrArg, ctest.CString("x")), abi.ErrArg, "was not added")
	for class := range abi.ErrAbi + 1 {
		ctest.Must(t, environment.ErrorClass(class, ctest.Addr(&b.N)))
		if int(b.N) != class || cbinding.ClassText(class) == "" {
			t.Errorf("class %d: %d, %q", class, b.N, cbinding.ClassText(class))
		}
	}
}
