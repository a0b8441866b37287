package cbinding

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

func TestErrorHandlersOfC(t *testing.T) {
	returning(t)
	var calls []string
	CallErrhandler = func(fn uintptr, object Handle, code int) int {
		calls = append(calls, fmt.Sprintf("%#x %d", fn, code))
		return code
	}
	defer func() { CallErrhandler = nil }()
	b := newBox()
	must(t, CommCreateErrhandler(0x1000, addr(&b.handle)))
	e := b.handle
	must(t, CommDup(abi.CommWorld, addr(&b.handle)))
	c := b.handle
	must(t, CommSetErrhandler(c, e))
	must(t, CommGetErrhandler(c, addr(&b.handle)))
	if b.handle != e {
		t.Errorf("handler %#x, want %#x", b.handle, e)
	}
	must(t, b.free(ErrhandlerFree, e)) // the one that was got
	must(t, b.free(ErrhandlerFree, e))
	if b.handle != abi.ErrhandlerNull {
		t.Errorf("freed handle %#x", b.handle)
	}
	must(t, CommDup(c, addr(&b.handle))) // the duplicate has the handler, too
	d := b.handle
	if code := CommSplit(d, -1, 0, addr(&b.handle)); code != abi.ErrArg {
		t.Errorf("code %d", code)
	}
	must(t, CommCallErrhandler(c, abi.ErrOther))
	if got := fmt.Sprint(calls); got != fmt.Sprintf("[0x1000 %d 0x1000 %d]", abi.ErrArg, abi.ErrOther) {
		t.Errorf("calls %s", got)
	}
	must(t, CommGetErrhandler(d, addr(&b.handle))) // under a new handle
	must(t, CommSetErrhandler(c, b.handle))
	must(t, b.free(ErrhandlerFree, b.handle))

	wantError(t, CommSetErrhandler(abi.CommSelf, e), abi.ErrErrhandler, "freed")
	wantError(t, CommSetErrhandler(abi.CommSelf, abi.ErrhandlerNull), abi.ErrErrhandler, "null handle")
	must(t, WinCreateErrhandler(0x1000, addr(&b.handle)))
	wantError(t, CommSetErrhandler(abi.CommSelf, b.handle), abi.ErrArg, "was made for a window")
	wantError(t, CommCreateErrhandler(0, addr(&b.handle)), abi.ErrArg, "NULL")
	must(t, CommGetErrhandler(abi.CommWorld, addr(&b.handle)))
	if b.handle != abi.ErrorsReturn {
		t.Errorf("handler of the world %#x", b.handle)
	}
	must(t, FileGetErrhandler(abi.FileNull, addr(&b.handle)))
	if b.handle != abi.ErrorsReturn {
		t.Errorf("default handler of files %#x", b.handle)
	}
}

func TestErrorCodes(t *testing.T) {
	returning(t)
	b := newBox()
	must(t, AddErrorClass(addr(&b.n)))
	class := int(b.n)
	must(t, AddErrorCode(class, addr(&b.n)))
	code := int(b.n)
	if class <= abi.ErrLastcode || code <= class {
		t.Errorf("class %d, code %d", class, code)
	}
	must(t, AddErrorString(class, cstring("disk")))
	must(t, AddErrorString(code, cstring("disk full")))
	must(t, ErrorClass(code, addr(&b.n)))
	must(t, ErrorString(code, addr(&b.text), addr(&b.flag)))
	if int(b.n) != class || b.string() != "disk full" || b.flag != 9 {
		t.Errorf("class %d, text %q of %d", b.n, b.string(), b.flag)
	}
	wantError(t, RemoveErrorClass(class), abi.ErrArg, "has 1 codes")
	wantError(t, RemoveErrorCode(code), abi.ErrArg, `has a string that was not removed: "disk full"`)
	must(t, RemoveErrorString(code))
	must(t, RemoveErrorCode(code))
	wantError(t, RemoveErrorClass(class), abi.ErrArg, `has a string that was not removed: "disk"`)
	must(t, RemoveErrorString(class))
	must(t, RemoveErrorClass(class))
	wantError(t, ErrorClass(code, addr(&b.n)), abi.ErrArg, "is no error code")
	wantError(t, RemoveErrorCode(abi.ErrArg), abi.ErrArg, "was not added")
	wantError(t, AddErrorString(abi.ErrArg, cstring("x")), abi.ErrArg, "was not added")
	for class := range classTexts {
		must(t, ErrorClass(class, addr(&b.n)))
		if int(b.n) != class || classTexts[class] == "" {
			t.Errorf("class %d: %d, %q", class, b.n, classTexts[class])
		}
	}
}

// TestCodesOfGoErrors: every class of package mpi has one of the ABI.
func TestCodesOfGoErrors(t *testing.T) {
	for c := mpi.ClassSuccess; c <= mpi.ClassDupDatarep; c++ {
		code := codeOf(mpi.AddErrorCode(c, "x"))
		if code < 0 || code >= len(classTexts) || (code == 0) != (c == mpi.ClassSuccess) {
			t.Errorf("class %v has code %d", c, code)
		}
	}
	for err, want := range map[error]int{
		nil: 0, fmt.Errorf("sending: %w", mpi.ErrTag): abi.ErrTag, userCode(17000): 17000, errors.New("odd"): abi.ErrUnknown,
		argError(abi.ErrDims, "ndims", -1, "is negative"): abi.ErrDims,
	} {
		if got := codeOf(err); got != want {
			t.Errorf("%v has code %d, want %d", err, got, want)
		}
	}
}
