package environment_test

import (
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/communicator"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
	"github.com/weftstack/weft/mpi/internal/cbinding/environment"
)

func TestErrorHandlersOfC(t *testing.T) {
	ctest.Returning(t)
	var calls []string
	cbinding.CallErrhandler = func(fn uintptr, object abi.Handle, code int) int {
		calls = append(calls, fmt.Sprintf("%#x %d", fn, code))
		return code
	}
	defer func() { cbinding.CallErrhandler = nil }()
	b := ctest.NewBox()
	ctest.Must(t, environment.CommCreateErrhandler(0x1000, ctest.Addr(&b.Handle)))
	e := b.Handle
	ctest.Must(t, communicator.CommDup(abi.CommWorld, ctest.Addr(&b.Handle)))
	c := b.Handle
	ctest.Must(t, environment.CommSetErrhandler(c, e))
	ctest.Must(t, environment.CommGetErrhandler(c, ctest.Addr(&b.Handle)))
	if b.Handle != e {
		t.Errorf("handler %#x, want %#x", b.Handle, e)
	}
	ctest.Must(t, b.Free(environment.ErrhandlerFree, e)) // the one that was got
	ctest.Must(t, b.Free(environment.ErrhandlerFree, e))
	if b.Handle != abi.ErrhandlerNull {
		t.Errorf("freed handle %#x", b.Handle)
	}
	ctest.Must(t, communicator.CommDup(c, ctest.Addr(&b.Handle))) // the duplicate has the handler, too
	d := b.Handle
	if code := communicator.CommSplit(d, -1, 0, ctest.Addr(&b.Handle)); code != abi.ErrArg {
		t.Errorf("code %d", code)
	}
	ctest.Must(t, environment.CommCallErrhandler(c, abi.ErrOther))
	if got := fmt.Sprint(calls); got != fmt.Sprintf("[0x1000 %d 0x1000 %d]", abi.ErrArg, abi.ErrOther) {
		t.Errorf("calls %s", got)
	}
	ctest.Must(t, environment.CommGetErrhandler(d, ctest.Addr(&b.Handle))) // under a new handle
	ctest.Must(t, environment.CommSetErrhandler(c, b.Handle))
	ctest.Must(t, b.Free(environment.ErrhandlerFree, b.Handle))

	ctest.WantError(t, environment.CommSetErrhandler(abi.CommSelf, e), abi.ErrErrhandler, "freed")
	ctest.WantError(t, environment.CommSetErrhandler(abi.CommSelf, abi.ErrhandlerNull), abi.ErrErrhandler, "null handle")
	ctest.Must(t, environment.WinCreateErrhandler(0x1000, ctest.Addr(&b.Handle)))
	ctest.WantError(t, environment.CommSetErrhandler(abi.CommSelf, b.Handle), abi.ErrArg, "was made for a window")
	ctest.WantError(t, environment.CommCreateErrhandler(0, ctest.Addr(&b.Handle)), abi.ErrArg, "NULL")
	ctest.Must(t, environment.CommGetErrhandler(abi.CommWorld, ctest.Addr(&b.Handle)))
	if b.Handle != abi.ErrorsReturn {
		t.Errorf("handler of the world %#x", b.Handle)
	}
	ctest.Must(t, environment.FileGetErrhandler(abi.FileNull, ctest.Addr(&b.Handle)))
	if b.Handle != abi.ErrorsReturn {
		t.Errorf("default handler of files %#x", b.Handle)
	}
}
