package file

import (
	"fmt"
	"io"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// FileSetView is MPI_File_set_view.
func FileSetView(fh abi.Handle, disp int, etype, filetype abi.Handle, datarep uintptr, info abi.Handle) int {
	const proc = "MPI_File_set_view"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	hints, err := cbinding.HintsOf(info)
	if err != nil {
		return f.refuseView(proc, err)
	}
	rep, err := cbinding.Str("datarep", datarep, maxFileName)
	if err != nil {
		return f.refuseView(proc, err)
	}
	e, err := cbinding.CommittedType(etype)
	if err != nil {
		return f.refuseView(proc, err)
	}
	ft, err := cbinding.CommittedType(filetype)
	if err != nil {
		return f.refuseView(proc, err)
	}
	err = f.SetView(cbinding.Background, int64(disp), e.Datatype, ft.Datatype, rep, hints)
	if disp >= 0 && mpi.ErrorClass(err) == mpi.ClassArg {
		err = &cbinding.CallError{Class: abi.ErrIo, Text: err.Error()} // a filetype that cannot be: other libraries say so
	}
	if err == nil {
		f.mu.Lock()
		f.etype, f.filetype = e, ft
		f.mu.Unlock()
	}
	return f.Done(proc, err)
}

// refuseView ends MPI_File_set_view with an error in the arguments of this rank: the others, which wait
// for it, get one too.
func (f *file) refuseView(proc string, err error) int {
	_ = f.SetView(cbinding.Background, 0, nil, nil, "", nil)
	return f.Done(proc, err)
}

// FileGetView is MPI_File_get_view.
func FileGetView(fh abi.Handle, disp, etype, filetype, datarep uintptr) int {
	const proc = "MPI_File_get_view"
	cbinding.NullHandle(etype, abi.DatatypeNull)
	cbinding.NullHandle(filetype, abi.DatatypeNull)
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	for name, p := range map[string]uintptr{"disp": disp, "etype": etype, "filetype": filetype, "datarep": datarep} {
		if err := cbinding.Out(name, p); err != nil {
			return f.Done(proc, err)
		}
	}
	d, _, _, rep := f.View()
	f.mu.Lock()
	e, ft := f.etype, f.filetype
	f.mu.Unlock()
	if e == nil {
		bytes, err := cbinding.TypeOf(abi.Byte)
		if err != nil {
			return f.Done(proc, err)
		}
		e, ft = bytes, bytes
	}
	err := e.Reference(etype)
	if err == nil {
		err = ft.Reference(filetype)
	}
	if err == nil {
		err = cbinding.SetStr(datarep, 0, rep, abi.MaxDatarepString)
	}
	return f.doneWith(proc, disp, d, err)
}

// whenceOf translates where a file pointer is moved from.
func whenceOf(whence int) (int, error) {
	switch whence {
	case abi.SeekSet:
		return io.SeekStart, nil
	case abi.SeekCur:
		return io.SeekCurrent, nil
	case abi.SeekEnd:
		return io.SeekEnd, nil
	}
	return -1, cbinding.ArgError(abi.ErrArg, "whence", whence, "is not MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END")
}

// FileSeek is MPI_File_seek.
func FileSeek(fh abi.Handle, offset, whence int) int {
	const proc = "MPI_File_seek"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	from, err := whenceOf(whence)
	if err == nil {
		_, err = f.Seek(int64(offset), from)
	}
	return f.Done(proc, err)
}

// FileSeekShared is MPI_File_seek_shared.
func FileSeekShared(fh abi.Handle, offset, whence int) int {
	const proc = "MPI_File_seek_shared"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	from, err := whenceOf(whence)
	if e := f.SeekShared(cbinding.Background, int64(offset), from); err == nil { // with -1 it fails on all ranks
		err = e
	}
	return f.Done(proc, err)
}

// random returns the error of calls that files opened with MPI_MODE_SEQUENTIAL do not have (MPI-4.1,
// Sections 14.4.2 to 14.4.4).
func (f *file) random() error {
	if f.Mode()&mpi.FileSequential != 0 {
		return cbinding.ArgError(abi.ErrUnsupportedOperation, "fh", f.FileHandle, "is open with MPI_MODE_SEQUENTIAL")
	}
	return nil
}

// FileGetPosition is MPI_File_get_position.
func FileGetPosition(fh abi.Handle, offset uintptr) int {
	const proc = "MPI_File_get_position"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.doneWith(proc, offset, f.Position(), f.random())
}

// FileGetPositionShared is MPI_File_get_position_shared.
func FileGetPositionShared(fh abi.Handle, offset uintptr) int {
	const proc = "MPI_File_get_position_shared"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	if err := f.random(); err != nil {
		return f.Done(proc, err)
	}
	n, err := f.PositionShared(cbinding.Background)
	return f.doneWith(proc, offset, n, err)
}

// FileGetByteOffset is MPI_File_get_byte_offset.
func FileGetByteOffset(fh abi.Handle, offset int, disp uintptr) int {
	const proc = "MPI_File_get_byte_offset"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	n, err := f.ByteOffset(int64(offset)) // also with MPI_MODE_SEQUENTIAL
	return f.doneWith(proc, disp, n, err)
}

// FileGetTypeExtent is MPI_File_get_type_extent.
func FileGetTypeExtent(fh, datatype abi.Handle, extent uintptr) int {
	const proc = "MPI_File_get_type_extent"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	t, err := cbinding.TypeOf(datatype)
	if err != nil {
		return f.Done(proc, err)
	}
	n, err := f.TypeExtent(t.Datatype)
	return f.doneWith(proc, extent, int64(n), err)
}

// RegisterDatarep is MPI_Register_datarep.
func RegisterDatarep(datarep, read, write, extent, extra uintptr, large bool) int {
	const proc = "MPI_Register_datarep"
	w, err := cbinding.NeedWorld()
	if err != nil {
		return cbinding.NoFile.Done(proc, err)
	}
	name, err := cbinding.Str("datarep", datarep, maxFileName)
	if err == nil && (name == "" || len(name) > abi.MaxDatarepString-1) {
		err = cbinding.ArgError(abi.ErrArg, "datarep", fmt.Sprintf("%.40q", name),
			fmt.Sprintf("has %d bytes: 1 to %d are allowed", len(name), abi.MaxDatarepString-1))
	}
	if err == nil && extent == 0 {
		err = cbinding.NullError("dtype_file_extent_fn")
	}
	if err == nil {
		err = registerDatarep(w, name, &userDatarep{read, write, extent, extra, large})
	}
	return cbinding.NoFile.Done(proc, err)
}
