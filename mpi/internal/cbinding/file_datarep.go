package cbinding

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/bridge"
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
	n, code := CallDatarepExtent(u.extentFn, h, u.extra)
	if code != abi.Success {
		return 0, conversionError("dtype_file_extent_fn", code)
	}
	return n, nil
}

// convert calls a conversion function for n elements of items, from the first on.
func (u *userDatarep) convert(fn uintptr, file []byte, items layouts.Buffer, n int) error {
	if !u.large && n > math.MaxInt32 {
		return argError(abi.ErrCount, "count", n, "is too large for the conversion function, which has no _c form")
	}
	h, free, err := handleOf(items.Type)
	if err != nil {
		return err
	}
	defer free()
	code := CallDatarepConvert(fn, items.Mem.Addr(), h, n, uintptr(unsafe.Pointer(unsafe.SliceData(file))), 0, u.extra,
		u.large)
	runtime.KeepAlive(file)
	if code != abi.Success {
		return conversionError("conversion function", code)
	}
	return nil
}

// conversionError is the error of a function that returned a code.
func conversionError(what string, code int) error {
	return argError(abi.ErrConversion, "the "+what, codeText(code), fmt.Sprintf("was returned, code %d", code))
}

// handleOf returns a handle of a datatype, for functions of C, that is good until free is called.
func handleOf(t *layouts.Type) (h Handle, free func(), err error) {
	if n := t.Named(); n != nil && t.Contents().Combiner == layouts.CombinerNamed {
		return Handle(n.ABI), func() {}, nil
	}
	goType, ok := t.Handle.(*mpi.Datatype)
	if !ok {
		return 0, nil, &callError{class: abi.ErrIntern, text: fmt.Sprintf("%v has no handle", t)}
	}
	temporary := &datatype{Datatype: goType}
	temporary.committed.Store(true)
	types.each(func(h Handle, d *datatype) bool {
		if d.Datatype != goType {
			return true
		}
		temporary = d
		return false
	})
	if temporary.handle != 0 {
		return temporary.handle, func() {}, nil
	}
	// The program has freed its handle meanwhile.
	if temporary.handle, err = types.put(temporary); err != nil {
		return 0, nil, err
	}
	return temporary.handle, func() { types.delete(temporary.handle) }, nil
}
