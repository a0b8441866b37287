package onesided

import (
	"context"
	"errors"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A window is an MPI_Win.
type window struct {
	cbinding.Object
	*mpi.Window
	session *cbinding.Session // of the communicator that it was made of
	base    uintptr           // of the caller's memory
	epoch   epoch

	// The values of predefined attributes, to which C programs get pointers.
	size                int64 // an MPI_Aint
	unit, flavor, model int32
}

// winFlavors are the flavors of the ABI by those of package mpi.
var windows = cbinding.NewTable[window](cbinding.WinKind)

func winOf(h abi.Handle) (*window, error) { return windows.Lookup(h) }

func init() {
	cbinding.HaveHandlers(cbinding.OfWin, func(h abi.Handle) (*cbinding.Object, error) {
		w, err := winOf(h)
		if err != nil {
			return nil, err
		}
		return &w.Object, nil
	})
}

var winFlavors = [...]int32{mpi.WinFlavorCreate: abi.WinFlavorCreate, mpi.WinFlavorAllocate: abi.WinFlavorAllocate,
	mpi.WinFlavorDynamic: abi.WinFlavorDynamic, mpi.WinFlavorShared: abi.WinFlavorShared}

// predefinedAttr returns a pointer to the value of a predefined attribute, and whether the key is one.
func (w *window) predefinedAttr(key int) (uintptr, bool) {
	switch key {
	case abi.WinSize:
		return uintptr(unsafe.Pointer(&w.size)), true
	case abi.WinDispUnit:
		return uintptr(unsafe.Pointer(&w.unit)), true
	case abi.WinCreateFlavor:
		return uintptr(unsafe.Pointer(&w.flavor)), true
	case abi.WinModel:
		return uintptr(unsafe.Pointer(&w.model)), true
	}
	return 0, false
}

// winComm returns the communicator of a window that is to be made, and the error of an argument: then
// the communicator is nil if its handle is bad. size is that of the memory, 0 for a dynamic window.
func winComm(comm, hints abi.Handle, size, unit int, win uintptr) (*cbinding.Communicator, []mpi.WinOption, error) {
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case c.IsInter():
		err = cbinding.ArgError(abi.ErrComm, "comm", c.Comm, "is an intercommunicator")
	case size < 0:
		err = cbinding.ArgError(abi.ErrSize, "size", size, "is negative")
	case unit < 1 || unit > 1<<31-1:
		err = cbinding.ArgError(abi.ErrDisp, "disp_unit", unit, "is no positive int")
	default:
		if err = cbinding.Out("win", win); err == nil {
			err = windows.Room()
		}
	}
	if err != nil {
		return c, nil, err
	}
	list, err := cbinding.HintsOf(hints)
	return c, []mpi.WinOption{mpi.WithInfo(list)}, err
}

// doneWin ends a call that makes a window: if it has failed, the handle at p is the null handle.
func doneWin(c *cbinding.Communicator, proc string, p uintptr, err error) int {
	if err != nil && p != 0 {
		cbinding.SetHandle(p, abi.WinNull)
	}
	if c == nil {
		return cbinding.Fail(proc, err)
	}
	return c.Done(proc, err)
}

// refuseWin is doneWin of a call with an error in the arguments of this rank: it takes part with a size that package
// mpi refuses, so that the others, which wait for it, get an error too.
func refuseWin(c *cbinding.Communicator, proc string, p uintptr, err error,
	allocate func(context.Context, *mpi.Comm, int, int, ...mpi.WinOption) (*mpi.Window, error)) int {
	if !c.IsInter() {
		err = c.Refuse(err, func() { _, _ = allocate(cbinding.Background, c.Comm, -1, 1) })
	}
	return doneWin(c, proc, p, err)
}

// newWin stores the handle of a window at p.
func newWin(c *cbinding.Communicator, p uintptr, w *mpi.Window) (*window, error) {
	o := &window{Window: w, session: c.Session, flavor: winFlavors[w.Flavor()], model: abi.WinUnified,
		size: int64(w.Size(c.Rank())), unit: int32(w.Unit(c.Rank()))}
	o.Kind = cbinding.OfWin
	if mem := w.Base(); len(mem) > 0 {
		o.base = uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	}
	h, err := windows.Put(o)
	if err != nil {
		return nil, errors.Join(err, w.Free(cbinding.Background))
	}
	o.Handle = h
	cbinding.SetHandle(p, h)
	return o, nil
}

// infoError gives the error of a hint that makes no sense its class.
func infoError(err error) error {
	if errors.Is(err, mpi.ErrOption) {
		return cbinding.WithClass(err, abi.ErrInfoValue)
	}
	return err
}

// WinCreate is MPI_Win_create.
func WinCreate(base uintptr, size, dispUnit int, info, comm abi.Handle, win uintptr) int {
	const proc = "MPI_Win_create"
	c, opts, err := winComm(comm, info, size, dispUnit, win)
	if c == nil {
		return doneWin(c, proc, win, err)
	}
	if err == nil && size > 0 && base < cbinding.LowestAddress {
		err = cbinding.ArgError(abi.ErrBase, "base", base, "is no address")
	}
	if err != nil {
		return refuseWin(c, proc, win, err, mpi.WindowAllocate)
	}
	w, err := mpi.WindowCreate(cbinding.Background, c.Comm, cbinding.Array[byte](base, size), dispUnit, opts...)
	if err == nil {
		var o *window
		if o, err = newWin(c, win, w); err == nil {
			o.base = base
		}
	}
	return doneWin(c, proc, win, infoError(err))
}

// WinAllocate is MPI_Win_allocate.
func WinAllocate(size, dispUnit int, info, comm abi.Handle, baseptr, win uintptr) int {
	const proc = "MPI_Win_allocate"
	c, opts, err := winComm(comm, info, size, dispUnit, win)
	if c == nil {
		return doneWin(c, proc, win, err)
	}
	if err == nil {
		err = cbinding.Out("baseptr", baseptr)
	}
	if err != nil {
		return refuseWin(c, proc, win, err, mpi.WindowAllocate)
	}
	w, err := mpi.WindowAllocate(cbinding.Background, c.Comm, size, dispUnit, opts...)
	if err == nil {
		err = newWinAt(c, win, baseptr, w)
	}
	return doneWin(c, proc, win, infoError(err))
}

// newWinAt is newWin that stores the address of the memory, too.
func newWinAt(c *cbinding.Communicator, p, baseptr uintptr, w *mpi.Window) error {
	o, err := newWin(c, p, w)
	if err == nil {
		*cbinding.At[uintptr](baseptr) = o.base
	}
	return err
}

// WinAllocateShared is MPI_Win_allocate_shared.
func WinAllocateShared(size, dispUnit int, info, comm abi.Handle, baseptr, win uintptr) int {
	const proc = "MPI_Win_allocate_shared"
	c, opts, err := winComm(comm, info, size, dispUnit, win)
	if c == nil {
		return doneWin(c, proc, win, err)
	}
	if err == nil {
		err = cbinding.Out("baseptr", baseptr)
	}
	if err != nil {
		return refuseWin(c, proc, win, err, mpi.WindowAllocateShared)
	}
	w, err := mpi.WindowAllocateShared(cbinding.Background, c.Comm, size, dispUnit, opts...)
	if err == nil {
		err = newWinAt(c, win, baseptr, w)
	} else if errors.Is(err, mpi.ErrWindow) {
		err = cbinding.WithClass(err, abi.ErrRmaShared)
	}
	return doneWin(c, proc, win, infoError(err))
}

// WinCreateDynamic is MPI_Win_create_dynamic.
func WinCreateDynamic(info, comm abi.Handle, win uintptr) int {
	const proc = "MPI_Win_create_dynamic"
	c, opts, err := winComm(comm, info, 0, 1, win)
	if c == nil {
		return doneWin(c, proc, win, err)
	}
	if err != nil {
		return refuseWin(c, proc, win, err, mpi.WindowAllocate)
	}
	w, err := mpi.WindowCreateDynamic(cbinding.Background, c.Comm, opts...)
	if err == nil {
		_, err = newWin(c, win, w)
	}
	return doneWin(c, proc, win, infoError(err))
}

// dynamic returns the error of a window that memory cannot be attached to.
func (w *window) dynamic() error {
	if w.Flavor() != mpi.WinFlavorDynamic {
		return cbinding.ArgError(abi.ErrRmaFlavor, "win", &w.Object, "is not dynamic")
	}
	return nil
}

// WinAttach is MPI_Win_attach.
func WinAttach(win abi.Handle, base uintptr, size int) int {
	const proc = "MPI_Win_attach"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	err = w.dynamic()
	switch {
	case err != nil:
	case size < 0:
		err = cbinding.ArgError(abi.ErrSize, "size", size, "is negative")
	case size > 0 && base < cbinding.LowestAddress:
		err = cbinding.ArgError(abi.ErrRmaAttach, "base", base, "is no address")
	default:
		if base < cbinding.LowestAddress {
			base = 0 // no memory: a small value is no pointer of Go
		}
		if _, err = w.Attach(unsafe.Slice((*byte)(cbinding.Pointer(base)), size)); err != nil {
			err = cbinding.WithClass(err, abi.ErrRmaAttach)
		}
	}
	return w.Done(proc, err)
}

// WinDetach is MPI_Win_detach.
func WinDetach(win abi.Handle, base uintptr) int {
	const proc = "MPI_Win_detach"
	w, err := winOf(win)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if err = w.dynamic(); err == nil {
		if err = w.Detach(int(base)); err != nil {
			err = cbinding.WithClass(err, abi.ErrRmaAttach)
		}
	}
	return w.Done(proc, err)
}

// WinFree is MPI_Win_free.
func WinFree(win uintptr) int {
	const proc = "MPI_Win_free"
	if win == 0 {
		return cbinding.Fail(proc, cbinding.NullError("win"))
	}
	w, err := winOf(*cbinding.At[abi.Handle](win))
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	if err = w.epoch.free(); err == nil {
		err = w.Attrs.Drop(w.Handle)
	}
	if err != nil {
		return w.Done(proc, err)
	}
	err = w.Free(cbinding.Background)
	windows.Delete(w.Handle)
	cbinding.SetHandle(win, abi.WinNull)
	return w.Done(proc, err)
}
