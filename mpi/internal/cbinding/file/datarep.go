package file

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/bridge"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	layouts "github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/fileio"
)

// A userDatarep is a data representation of C functions (MPI-4.1, Section 14.5.3).
type userDatarep struct {
	readFn, writeFn, extentFn uintptr
	extra                     uintptr
	large                     bool // the conversion functions are those of the _c form
}

func registerDatarep(w *mpi.World, name string, u *userDatarep) error {
	rep := &fileio.Items{Extent: u.extent}
	if u.readFn != abi.ConversionFnNull {
		rep.Read = func(file []byte, items layouts.Buffer, n int) error { return u.convert(u.readFn, file, items, n) }
	}
	if u.writeFn != abi.ConversionFnNull {
		rep.Write = func(file []byte, items layouts.Buffer, n int) error { return u.convert(u.writeFn, file, items, n) }
	}
	return bridge.RegisterDatarep(w, name, rep)
}

// extent returns the bytes of a predefined datatype in the file.
func (u *userDatarep) extent(t *layouts.Type) (int, error) {
	h, free, err := handleOf(t)
	if err != nil {
		return 0, err
	}
	defer free()
	n, code := cbinding.CallDatarepExtent(u.extentFn, h, u.extra)
	if code != abi.Success {
		return 0, conversionError("dtype_file_extent_fn", code)
	}
	return n, nil
}

// convert calls a conversion function for n elements of items, from the first on.
func (u *userDatarep) convert(fn uintptr, file []byte, items layouts.Buffer, n int) error {
	if !u.large && n > math.MaxInt32 {
		return cbinding.ArgError(abi.ErrCount, "count", n, "is too large for the conversion function, which has no _c form")
	}
	h, free, err := handleOf(items.Type)
	if err != nil {
		return err
	}
	defer free()
	code := cbinding.CallDatarepConvert(fn, items.Mem.Addr(), h, n,
		uintptr(unsafe.Pointer(unsafe.SliceData(file))), 0, u.extra, u.large)
	runtime.KeepAlive(file)
	if code != abi.Success {
		return conversionError("conversion function", code)
	}
	return nil
}

// conversionError is the error of a function that returned a code.
func conversionError(what string, code int) error {
	return cbinding.ArgError(abi.ErrConversion, "the "+what, cbinding.CodeText(code), fmt.Sprintf("was returned, code %d", code))
}

// handleOf returns a handle of a datatype, for functions of C, that is good until free is called.
func handleOf(t *layouts.Type) (h abi.Handle, free func(), err error) {
	if n := t.Named(); n != nil && t.Contents().Combiner == layouts.CombinerNamed {
		return abi.Handle(n.ABI), func() {}, nil
	}
	goType, ok := t.Handle.(*mpi.Datatype)
	if !ok {
		return 0, nil, &cbinding.CallError{Class: abi.ErrIntern, Text: fmt.Sprintf("%v has no handle", t)}
	}
	temporary := &cbinding.Datatype{Datatype: goType}
	temporary.Committed.Store(true)
	cbinding.Types.Each(func(h abi.Handle, d *cbinding.Datatype) bool {
		if d.Datatype != goType {
			return true
		}
		temporary = d
		return false
	})
	if temporary.Handle != 0 {
		return temporary.Handle, func() {}, nil
	}
	// The program has freed its handle meanwhile.
	if temporary.Handle, err = cbinding.Types.Put(temporary); err != nil {
		return 0, nil, err
	}
	return temporary.Handle, func() { cbinding.Types.Delete(temporary.Handle) }, nil
}
