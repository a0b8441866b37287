package cbinding

import (
	"sync"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A file is an MPI_File. The default error handler is MPI_ERRORS_RETURN, or that which MPI_FILE_NULL has
// when the file is opened (MPI-4.1, Section 14.7).
type file struct {
	object
	*mpi.FileHandle
	session *session // of the communicator

	mu              sync.Mutex // guards what follows
	etype, filetype *datatype  // of the view; nil: MPI_BYTE
}

// maxFileName bounds the length of the name of a file.
const maxFileName = 1 << 16

// withFile returns the file of a handle. Errors of bad handles go to the handler of MPI_FILE_NULL, as
// those of all calls about files that have no file.
func withFile(proc string, fh Handle) (*file, int) {
	f, err := fileOf(fh)
	if err != nil {
		return nil, noFile.done(proc, err)
	}
	return f, 0
}

// fileModes are the access modes of the ABI and of package mpi.
var fileModes = []struct {
	c      int
	goMode mpi.FileMode
}{
	{abi.ModeRdonly, mpi.FileRead}, {abi.ModeWronly, mpi.FileWrite}, {abi.ModeRdwr, mpi.FileReadWrite},
	{abi.ModeCreate, mpi.FileCreate}, {abi.ModeExcl, mpi.FileExclusive}, {abi.ModeAppend, mpi.FileAppend},
	{abi.ModeSequential, mpi.FileSequential}, {abi.ModeUniqueOpen, mpi.FileUnique},
	{abi.ModeDeleteOnClose, mpi.FileDeleteOnClose},
}

// badMode is a mode that package mpi refuses, on all ranks.
const badMode = mpi.FileMode(1 << 15)

// fileMode translates an access mode.
func fileMode(amode int) mpi.FileMode {
	mode := mpi.FileMode(0)
	for _, m := range fileModes {
		if amode&m.c != 0 {
			mode |= m.goMode
			amode &^= m.c
		}
	}
	if amode != 0 {
		mode |= badMode
	}
	return mode
}

// FileOpen is MPI_File_open.
func FileOpen(comm Handle, filename uintptr, amode int, info Handle, fh uintptr) int {
	const proc = "MPI_File_open"
	c, err := commOf(comm)
	if err != nil {
		return noFile.done(proc, err)
	}
	if c.IsInter() {
		return noFile.done(proc, argError(abi.ErrComm, "comm", &c.object, "is an intercommunicator"))
	}
	if err := out("fh", fh); err != nil {
		return refuseOpen(proc, c, err)
	}
	setHandle(fh, abi.FileNull)
	hints, err := hintsOf(info)
	if err != nil {
		return refuseOpen(proc, c, err)
	}
	name, err := str("filename", filename, maxFileName)
	if err != nil {
		return refuseOpen(proc, c, err)
	}
	h, err := c.OpenFile(background, name, fileMode(amode), hints)
	if err != nil {
		return noFile.done(proc, err)
	}
	f := &file{FileHandle: h, session: c.session}
	f.what = ofFile
	f.handler.Store(noFile.handler.Load())
	if f.handle, err = files.put(f); err != nil {
		if e := h.Close(background); e != nil {
			err = e
		}
		return noFile.done(proc, err)
	}
	setHandle(fh, f.handle)
	return 0
}

// refuseOpen ends MPI_File_open with an error in the arguments of this rank: the others, which wait for it,
// get one too.
func refuseOpen(proc string, c *communicator, err error) int {
	_, _ = c.OpenFile(background, "", badMode, nil)
	return noFile.done(proc, err)
}

// FileClose is MPI_File_close.
func FileClose(fh uintptr) int {
	const proc = "MPI_File_close"
	if err := out("fh", fh); err != nil {
		return noFile.done(proc, err)
	}
	f, code := withFile(proc, *at[Handle](fh))
	if f == nil {
		return code
	}
	code = f.done(proc, f.Close(background))
	files.delete(f.handle)
	setHandle(fh, abi.FileNull)
	return code
}

// FileDelete is MPI_File_delete.
func FileDelete(filename uintptr, info Handle) int {
	const proc = "MPI_File_delete"
	if err := notRunning(); err != nil {
		return noFile.done(proc, err)
	}
	if _, err := hintsOf(info); err != nil {
		return noFile.done(proc, err)
	}
	name, err := str("filename", filename, maxFileName)
	if err != nil {
		return noFile.done(proc, err)
	}
	return noFile.done(proc, mpi.FileDelete(name))
}

// FileSetSize is MPI_File_set_size.
func FileSetSize(fh Handle, size int) int {
	const proc = "MPI_File_set_size"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.done(proc, f.SetSize(background, int64(size)))
}

// FilePreallocate is MPI_File_preallocate.
func FilePreallocate(fh Handle, size int) int {
	const proc = "MPI_File_preallocate"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.done(proc, f.Preallocate(background, int64(size)))
}

// FileGetSize is MPI_File_get_size.
func FileGetSize(fh Handle, size uintptr) int {
	const proc = "MPI_File_get_size"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	n, err := f.Size()
	return f.doneWith(proc, size, n, err)
}

// doneWith ends a call that returns an MPI_Offset.
func (f *file) doneWith(proc string, result uintptr, n int64, err error) int {
	if err == nil {
		err = setInt(result, int(n), true)
	}
	return f.done(proc, err)
}

// FileGetGroup is MPI_File_get_group.
func FileGetGroup(fh Handle, group uintptr) int {
	const proc = "MPI_File_get_group"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.done(proc, newGroup(group, f.Group(), f.session))
}

// FileGetAmode is MPI_File_get_amode.
func FileGetAmode(fh Handle, amode uintptr) int {
	const proc = "MPI_File_get_amode"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	c := 0
	for _, m := range fileModes {
		if f.Mode()&m.goMode != 0 {
			c |= m.c
		}
	}
	return f.done(proc, setInt(amode, c, false))
}

// FileSetInfo is MPI_File_set_info. Hints that make no sense are ignored.
func FileSetInfo(fh, info Handle) int {
	const proc = "MPI_File_set_info"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	hints, err := hintsOf(info)
	if e := f.SetInfo(background, hints); err == nil { // the other ranks wait for it in any case
		err = e
	}
	return f.done(proc, err)
}

// FileGetInfo is MPI_File_get_info.
func FileGetInfo(fh Handle, infoUsed uintptr) int {
	const proc = "MPI_File_get_info"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.done(proc, newInfoHandle(infoUsed, newInfo(f.Info())))
}

// FileSync is MPI_File_sync.
func FileSync(fh Handle) int {
	const proc = "MPI_File_sync"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.done(proc, f.Sync(background))
}

// FileSetAtomicity is MPI_File_set_atomicity.
func FileSetAtomicity(fh Handle, flag int) int {
	const proc = "MPI_File_set_atomicity"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.done(proc, f.SetAtomicity(background, flag != 0))
}

// FileGetAtomicity is MPI_File_get_atomicity.
func FileGetAtomicity(fh Handle, flag uintptr) int {
	const proc = "MPI_File_get_atomicity"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.done(proc, setFlag(flag, f.Atomicity()))
}
