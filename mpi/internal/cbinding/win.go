package cbinding

import (
	"errors"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A window is an MPI_Win.
type window struct {
	object
	*mpi.Window
	session *session // of the communicator that it was made of
	base    uintptr  // of the caller's memory
	epoch   epoch

	// The values of predefined attributes, to which C programs get pointers.
	size                int64 // an MPI_Aint
	unit, flavor, model int32
}

// winFlavors are the flavors of the ABI by those of package mpi.
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
func winComm(comm, hints Handle, size, unit int, win uintptr) (*communicator, []mpi.WinOption, error) {
	c, err := commOf(comm)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case c.IsInter():
		err = argError(abi.ErrComm, "comm", c.Comm, "is an intercommunicator")
	case size < 0:
		err = argError(abi.ErrSize, "size", size, "is negative")
	case unit < 1 || unit > 1<<31-1:
		err = argError(abi.ErrDisp, "disp_unit", unit, "is no positive int")
	default:
		err = out("win", win)
	}
	if err != nil {
		return c, nil, err
	}
	list, err := hintsOf(hints)
	return c, []mpi.WinOption{mpi.WithInfo(list)}, err
}

// doneWin ends a call that makes a window: if it has failed, the handle at p is the null handle.
func (c *communicator) doneWin(proc string, p uintptr, err error) int {
	if err != nil && p != 0 {
		setHandle(p, abi.WinNull)
	}
	if c == nil {
		return fail(proc, err)
	}
	return c.done(proc, err)
}

// newWin stores the handle of a window at p.
func (c *communicator) newWin(p uintptr, w *mpi.Window) (*window, error) {
	o := &window{Window: w, session: c.session, flavor: winFlavors[w.Flavor()], model: abi.WinUnified,
		size: int64(w.Size(c.Rank())), unit: int32(w.Unit(c.Rank()))}
	o.what = ofWin
	if mem := w.Base(); len(mem) > 0 {
		o.base = uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	}
	h, err := windows.put(o)
	if err != nil {
		return nil, errors.Join(err, w.Free(background))
	}
	o.handle = h
	setHandle(p, h)
	return o, nil
}

// infoError gives the error of a hint that makes no sense its class.
func infoError(err error) error {
	if errors.Is(err, mpi.ErrOption) {
		return withClass(err, abi.ErrInfoValue)
	}
	return err
}

// WinCreate is MPI_Win_create.
func WinCreate(base uintptr, size, dispUnit int, info, comm Handle, win uintptr) int {
	const proc = "MPI_Win_create"
	c, opts, err := winComm(comm, info, size, dispUnit, win)
	if c == nil {
		return c.doneWin(proc, win, err)
	}
	if err == nil && size > 0 && base < lowestAddress {
		err = argError(abi.ErrBase, "base", base, "is no address")
	}
	if err != nil {
		return c.doneWin(proc, win, err)
	}
	w, err := mpi.WindowCreate(background, c.Comm, array[byte](base, size), dispUnit, opts...)
	if err == nil {
		var o *window
		if o, err = c.newWin(win, w); err == nil {
			o.base = base
		}
	}
	return c.doneWin(proc, win, infoError(err))
}

// WinAllocate is MPI_Win_allocate.
func WinAllocate(size, dispUnit int, info, comm Handle, baseptr, win uintptr) int {
	const proc = "MPI_Win_allocate"
	c, opts, err := winComm(comm, info, size, dispUnit, win)
	if c == nil {
		return c.doneWin(proc, win, err)
	}
	if err == nil {
		err = out("baseptr", baseptr)
	}
	if err != nil {
		return c.doneWin(proc, win, err)
	}
	w, err := mpi.WindowAllocate(background, c.Comm, size, dispUnit, opts...)
	if err == nil {
		err = c.newWinAt(win, baseptr, w)
	}
	return c.doneWin(proc, win, infoError(err))
}

// newWinAt is newWin that stores the address of the memory, too.
func (c *communicator) newWinAt(p, baseptr uintptr, w *mpi.Window) error {
	o, err := c.newWin(p, w)
	if err == nil {
		*at[uintptr](baseptr) = o.base
	}
	return err
}

// WinAllocateShared is MPI_Win_allocate_shared.
func WinAllocateShared(size, dispUnit int, info, comm Handle, baseptr, win uintptr) int {
	const proc = "MPI_Win_allocate_shared"
	c, opts, err := winComm(comm, info, size, dispUnit, win)
	if c == nil {
		return c.doneWin(proc, win, err)
	}
	if err == nil {
		err = out("baseptr", baseptr)
	}
	if err != nil {
		return c.doneWin(proc, win, err)
	}
	w, err := mpi.WindowAllocateShared(background, c.Comm, size, dispUnit, opts...)
	if err == nil {
		err = c.newWinAt(win, baseptr, w)
	} else if errors.Is(err, mpi.ErrWindow) {
		err = withClass(err, abi.ErrRmaShared)
	}
	return c.doneWin(proc, win, infoError(err))
}

// WinCreateDynamic is MPI_Win_create_dynamic.
func WinCreateDynamic(info, comm Handle, win uintptr) int {
	const proc = "MPI_Win_create_dynamic"
	c, opts, err := winComm(comm, info, 0, 1, win)
	if c == nil {
		return c.doneWin(proc, win, err)
	}
	if err != nil {
		return c.doneWin(proc, win, err)
	}
	w, err := mpi.WindowCreateDynamic(background, c.Comm, opts...)
	if err == nil {
		_, err = c.newWin(win, w)
	}
	return c.doneWin(proc, win, infoError(err))
}

// dynamic returns the error of a window that memory cannot be attached to.
func (w *window) dynamic() error {
	if w.Flavor() != mpi.WinFlavorDynamic {
		return argError(abi.ErrRmaFlavor, "win", &w.object, "is not dynamic")
	}
	return nil
}

// WinAttach is MPI_Win_attach.
func WinAttach(win Handle, base uintptr, size int) int {
	const proc = "MPI_Win_attach"
	w, err := winOf(win)
	if err != nil {
		return fail(proc, err)
	}
	err = w.dynamic()
	switch {
	case err != nil:
	case size < 0:
		err = argError(abi.ErrSize, "size", size, "is negative")
	case size > 0 && base < lowestAddress:
		err = argError(abi.ErrRmaAttach, "base", base, "is no address")
	default:
		if base < lowestAddress {
			base = 0 // no memory: a small value is no pointer of Go
		}
		if _, err = w.Attach(unsafe.Slice((*byte)(pointer(base)), size)); err != nil {
			err = withClass(err, abi.ErrRmaAttach)
		}
	}
	return w.done(proc, err)
}

// WinDetach is MPI_Win_detach.
func WinDetach(win Handle, base uintptr) int {
	const proc = "MPI_Win_detach"
	w, err := winOf(win)
	if err != nil {
		return fail(proc, err)
	}
	if err = w.dynamic(); err == nil {
		if err = w.Detach(int(base)); err != nil {
			err = withClass(err, abi.ErrRmaAttach)
		}
	}
	return w.done(proc, err)
}

// WinFree is MPI_Win_free.
func WinFree(win uintptr) int {
	const proc = "MPI_Win_free"
	if win == 0 {
		return fail(proc, nullError("win"))
	}
	w, err := winOf(*at[Handle](win))
	if err != nil {
		return fail(proc, err)
	}
	if err = w.epoch.free(); err == nil {
		err = w.attrs.drop(w.handle)
	}
	if err != nil {
		return w.done(proc, err)
	}
	err = w.Free(background)
	windows.delete(w.handle)
	setHandle(win, abi.WinNull)
	return w.done(proc, err)
}
