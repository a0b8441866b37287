package communicator

import (
	"math"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// predefinedAttrs are the values of the predefined attributes of communicators, to which C programs
// get pointers. Package variables do not move.
var predefinedAttrs = struct{ tagUB, host, io, wtimeIsGlobal, universeSize, lastUsedCode, appNum int32 }{
	tagUB: mpi.TagUB, host: abi.ProcNull, io: abi.AnySource, universeSize: abi.Undefined, appNum: abi.Undefined,
}

func init() {
	cbinding.AtInit(func(w *mpi.World) {
		if n := w.UniverseSize(cbinding.Background); n != mpi.Undefined && n <= math.MaxInt32 {
			predefinedAttrs.universeSize = int32(n)
		}
		if n := w.AppNum(cbinding.Background); n != mpi.Undefined && n <= math.MaxInt32 {
			predefinedAttrs.appNum = int32(n)
		}
	})
}

// commAttr returns a pointer to the value of a predefined attribute (MPI-4.1, Section 9.1.2); 0 for those
// that are not known here, such as MPI_APPNUM without a launcher.
func commAttr(key int) (value uintptr, known bool) {
	p := &predefinedAttrs
	var v *int32
	switch key {
	case abi.TagUb:
		v = &p.tagUB
	case abi.Host:
		v = &p.host
	case abi.Io:
		v = &p.io
	case abi.WtimeIsGlobal:
		v = &p.wtimeIsGlobal
	case abi.UniverseSize:
		if v = &p.universeSize; *v == abi.Undefined {
			return 0, true
		}
	case abi.Appnum:
		if v = &p.appNum; *v == abi.Undefined {
			return 0, true
		}
	case abi.Lastusedcode:
		v = &p.lastUsedCode
		*v = int32(cbinding.LastUsedCode())
	default:
		return 0, false
	}
	return uintptr(unsafe.Pointer(v)), true
}

// CommCreateKeyval is MPI_Comm_create_keyval.
func CommCreateKeyval(copyFn, deleteFn, keyval, extra uintptr) int {
	return cbinding.CreateKeyval("MPI_Comm_create_keyval", cbinding.OfCommKey, copyFn, deleteFn, keyval, extra)
}

// CommFreeKeyval is MPI_Comm_free_keyval.
func CommFreeKeyval(keyval uintptr) int {
	return cbinding.FreeKeyval("MPI_Comm_free_keyval", cbinding.OfCommKey, keyval)
}

// CommSetAttr is MPI_Comm_set_attr.
func CommSetAttr(comm abi.Handle, keyval int, value uintptr) int {
	return setCommAttr("MPI_Comm_set_attr", comm, keyval, value)
}

// CommGetAttr is MPI_Comm_get_attr.
func CommGetAttr(comm abi.Handle, keyval int, value, flag uintptr) int {
	return getCommAttr("MPI_Comm_get_attr", comm, keyval, value, flag)
}

// CommDeleteAttr is MPI_Comm_delete_attr.
func CommDeleteAttr(comm abi.Handle, keyval int) int {
	return deleteCommAttr("MPI_Comm_delete_attr", comm, keyval)
}

// KeyvalCreate is MPI_Keyval_create.
func KeyvalCreate(copyFn, deleteFn, keyval, extra uintptr) int {
	return cbinding.CreateKeyval("MPI_Keyval_create", cbinding.OfCommKey, copyFn, deleteFn, keyval, extra)
}

// KeyvalFree is MPI_Keyval_free.
func KeyvalFree(keyval uintptr) int {
	return cbinding.FreeKeyval("MPI_Keyval_free", cbinding.OfCommKey, keyval)
}

// AttrPut is MPI_Attr_put.
func AttrPut(comm abi.Handle, keyval int, value uintptr) int {
	return setCommAttr("MPI_Attr_put", comm, keyval, value)
}

// AttrGet is MPI_Attr_get.
func AttrGet(comm abi.Handle, keyval int, value, flag uintptr) int {
	return getCommAttr("MPI_Attr_get", comm, keyval, value, flag)
}

// AttrDelete is MPI_Attr_delete.
func AttrDelete(comm abi.Handle, keyval int) int {
	return deleteCommAttr("MPI_Attr_delete", comm, keyval)
}

func setCommAttr(proc string, comm abi.Handle, keyval int, value uintptr) int {
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return c.Done(proc, c.Attrs.SetAttr(c.Handle, cbinding.OfCommKey, keyval, value))
}

func getCommAttr(proc string, comm abi.Handle, keyval int, value, flag uintptr) int {
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return c.Done(proc, c.Attrs.GetAttr(cbinding.OfCommKey, keyval, value, flag, commAttr))
}

func deleteCommAttr(proc string, comm abi.Handle, keyval int) int {
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.Fail(proc, err)
	}
	return c.Done(proc, c.Attrs.DeleteAttr(c.Handle, cbinding.OfCommKey, keyval))
}
