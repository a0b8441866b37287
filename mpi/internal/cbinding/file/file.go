package file

import (
	"sync"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
)

// A file is an MPI_File. The default error handler is MPI_ERRORS_RETURN, or that which MPI_FILE_NULL has
// when the file is opened (MPI-4.1, Section 14.7).
type file struct {
	cbinding.Object
	*mpi.FileHandle
	session *cbinding.Session // of the communicator

	mu              sync.Mutex         // guards what follows
	etype, filetype *cbinding.Datatype // of the view; nil: MPI_BYTE
}

var files = cbinding.NewTable[file](cbinding.FileKind)

func fileOf(h abi.Handle) (*file, error) { return files.Lookup(h) }

func init() {
	cbinding.HaveHandlers(cbinding.OfFile, func(h abi.Handle) (*cbinding.Object, error) {
		f, err := fileOf(h)
		if err != nil {
			return nil, err
		}
		return &f.Object, nil
	})
}

// maxFileName bounds the length of the name of a file.
const maxFileName = 1 << 16

// withFile returns the file of a handle. Errors of bad handles go to the handler of MPI_FILE_NULL, as
// those of all calls about files that have no file.
func withFile(proc string, fh abi.Handle) (*file, int) {
	f, err := fileOf(fh)
	if err != nil {
		return nil, cbinding.NoFile.Done(proc, err)
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
func FileOpen(comm abi.Handle, filename uintptr, amode int, info abi.Handle, fh uintptr) int {
	const proc = "MPI_File_open"
	cbinding.NullHandle(fh, abi.FileNull)
	c, err := cbinding.CommOf(comm)
	if err != nil {
		return cbinding.NoFile.Done(proc, err)
	}
	if c.IsInter() {
		return cbinding.NoFile.Done(proc, cbinding.ArgError(abi.ErrComm, "comm", &c.Object, "is an intercommunicator"))
	}
	if err := cbinding.Out("fh", fh); err != nil {
		return refuseOpen(proc, c, err)
	}
	if err := files.Room(); err != nil {
		return refuseOpen(proc, c, err)
	}
	hints, err := cbinding.HintsOf(info)
	if err != nil {
		return refuseOpen(proc, c, err)
	}
	name, err := cbinding.Str("filename", filename, maxFileName)
	if err != nil {
		return refuseOpen(proc, c, err)
	}
	h, err := c.OpenFile(cbinding.Background, name, fileMode(amode), hints)
	if err != nil {
		return cbinding.NoFile.Done(proc, err)
	}
	f := &file{FileHandle: h, session: c.Session}
	f.Kind = cbinding.OfFile
	f.Handler.Store(cbinding.NoFile.Handler.Load())
	if f.Handle, err = files.Put(f); err != nil {
		if e := h.Close(cbinding.Background); e != nil {
			err = e
		}
		return cbinding.NoFile.Done(proc, err)
	}
	cbinding.SetHandle(fh, f.Handle)
	return 0
}

// refuseOpen ends MPI_File_open with an error in the arguments of this rank: the others, which wait for it,
// get one too.
func refuseOpen(proc string, c *cbinding.Communicator, err error) int {
	return cbinding.NoFile.Done(proc, cbinding.NoFile.Refuse(err, func() {
		_, _ = c.OpenFile(cbinding.Background, "", badMode, nil)
	}))
}

// FileClose is MPI_File_close.
func FileClose(fh uintptr) int {
	const proc = "MPI_File_close"
	if err := cbinding.Out("fh", fh); err != nil {
		return cbinding.NoFile.Done(proc, err)
	}
	f, code := withFile(proc, *cbinding.At[abi.Handle](fh))
	if f == nil {
		return code
	}
	code = f.Done(proc, f.Close(cbinding.Background))
	files.Delete(f.Handle)
	cbinding.SetHandle(fh, abi.FileNull)
	return code
}

// FileDelete is MPI_File_delete.
func FileDelete(filename uintptr, info abi.Handle) int {
	const proc = "MPI_File_delete"
	if err := cbinding.NotRunning(); err != nil {
		return cbinding.NoFile.Done(proc, err)
	}
	if _, err := cbinding.HintsOf(info); err != nil {
		return cbinding.NoFile.Done(proc, err)
	}
	name, err := cbinding.Str("filename", filename, maxFileName)
	if err != nil {
		return cbinding.NoFile.Done(proc, err)
	}
	return cbinding.NoFile.Done(proc, mpi.FileDelete(name))
}

// FileSetSize is MPI_File_set_size.
func FileSetSize(fh abi.Handle, size int) int {
	const proc = "MPI_File_set_size"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.Done(proc, f.SetSize(cbinding.Background, int64(size)))
}

// FilePreallocate is MPI_File_preallocate.
func FilePreallocate(fh abi.Handle, size int) int {
	const proc = "MPI_File_preallocate"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.Done(proc, f.Preallocate(cbinding.Background, int64(size)))
}

// FileGetSize is MPI_File_get_size.
func FileGetSize(fh abi.Handle, size uintptr) int {
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
		err = cbinding.SetInt(result, int(n), true)
	}
	return f.Done(proc, err)
}

// FileGetGroup is MPI_File_get_group.
func FileGetGroup(fh abi.Handle, group uintptr) int {
	const proc = "MPI_File_get_group"
	cbinding.NullHandle(group, abi.GroupNull)
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.Done(proc, cbinding.NewGroup(group, f.Group(), f.session))
}

// FileGetAmode is MPI_File_get_amode.
func FileGetAmode(fh abi.Handle, amode uintptr) int {
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
	return f.Done(proc, cbinding.SetInt(amode, c, false))
}

// FileSetInfo is MPI_File_set_info. Hints that make no sense are ignored.
func FileSetInfo(fh, info abi.Handle) int {
	const proc = "MPI_File_set_info"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	hints, err := cbinding.HintsOf(info)
	if e := f.SetInfo(cbinding.Background, hints); err == nil { // the other ranks wait for it in any case
		err = e
	}
	return f.Done(proc, err)
}

// FileGetInfo is MPI_File_get_info.
func FileGetInfo(fh abi.Handle, infoUsed uintptr) int {
	const proc = "MPI_File_get_info"
	cbinding.NullHandle(infoUsed, abi.InfoNull)
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.Done(proc, cbinding.NewInfoHandle(infoUsed, cbinding.NewInfo(f.Info())))
}

// FileSync is MPI_File_sync.
func FileSync(fh abi.Handle) int {
	const proc = "MPI_File_sync"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.Done(proc, f.Sync(cbinding.Background))
}

// FileSetAtomicity is MPI_File_set_atomicity.
func FileSetAtomicity(fh abi.Handle, flag int) int {
	const proc = "MPI_File_set_atomicity"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.Done(proc, f.SetAtomicity(cbinding.Background, flag != 0))
}

// FileGetAtomicity is MPI_File_get_atomicity.
func FileGetAtomicity(fh abi.Handle, flag uintptr) int {
	const proc = "MPI_File_get_atomicity"
	f, code := withFile(proc, fh)
	if f == nil {
		return code
	}
	return f.Done(proc, cbinding.SetFlag(flag, f.Atomicity()))
}
