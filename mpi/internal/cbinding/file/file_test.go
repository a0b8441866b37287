package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
	"github.com/weftstack/weft/mpi/internal/cbinding/datatype"
	"github.com/weftstack/weft/mpi/internal/cbinding/pointtopoint"
)

// openFile opens a file of MPI_COMM_SELF.
func openFile(t *testing.T, name string, amode int) *ctest.Box {
	t.Helper()
	b := ctest.NewBox()
	ctest.Must(t, FileOpen(abi.CommSelf, ctest.CString(name), amode, abi.InfoNull, ctest.Addr(&b.Handle)))
	return b
}

// newtype calls a constructor and commits what it makes.
func newtype(t *testing.T, construct func(newtype uintptr) int) abi.Handle {
	t.Helper()
	b := ctest.NewBox()
	ctest.Must(t, construct(ctest.Addr(&b.Handle)))
	ctest.Must(t, datatype.TypeCommit(ctest.Addr(&b.Handle)))
	return b.Handle
}

// TestFilesOfC writes an array of every second int and reads it back, by all kinds of calls.
func TestFilesOfC(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f := openFile(t, name, abi.ModeCreate|abi.ModeRdwr)
	b := ctest.NewBox()
	ctest.Must(t, FileGetAmode(f.Handle, ctest.Addr(&b.N)))
	if b.N != abi.ModeCreate|abi.ModeRdwr {
		t.Errorf("mode %#x", b.N)
	}
	gaps := newtype(t, func(p uintptr) int { return datatype.TypeVector(4, 1, 2, abi.Int, p, false) })
	ctest.Must(t, FileSetView(f.Handle, 4, abi.Int, abi.Int, ctest.CString("native"), abi.InfoNull))
	mem := ctest.Heap[int32](1, -1, 2, -1, 3, -1, 4, -1)
	st := new(abi.Status)
	ctest.OnHeap = append(ctest.OnHeap, st)
	n := func() int {
		t.Helper()
		ctest.Must(t, pointtopoint.GetCount(ctest.Addr(st), abi.Int, ctest.Addr(&b.N), false))
		return int(b.N)
	}
	ctest.Must(t, FileWriteAt(f.Handle, 0, mem, 1, gaps, ctest.Addr(st)))
	if n() != 4 {
		t.Errorf("%d ints written, want 4", b.N)
	}
	ctest.Must(t, FileSeek(f.Handle, 0, abi.SeekEnd))
	ctest.Must(t, FileIwrite(f.Handle, mem, 1, gaps, ctest.Addr(&b.Handle)))
	ctest.Must(t, pointtopoint.Wait(ctest.Addr(&b.Handle), ctest.Addr(st)))
	if n() != 4 {
		t.Errorf("%d ints written, want 4", b.N)
	}
	back := ctest.Heap(make([]int32, 20)...)
	ctest.Must(t, FileReadAtAll(f.Handle, 2, back, 10, abi.Int, ctest.Addr(st)))
	if got := cbinding.Array[int32](back, 7); n() != 6 || got[0] != 3 || got[2] != 1 || got[5] != 4 || got[6] != 0 {
		t.Errorf("%d ints: %v", b.N, got)
	}
	ctest.Must(t, FileReadAllBegin(f.Handle, back, 1, abi.Int))
	ctest.Must(t, FileReadAllEnd(f.Handle, back, ctest.Addr(st)))
	if n() != 0 {
		t.Errorf("%d ints behind the end", b.N)
	}
	var offset int64
	ctest.OnHeap = append(ctest.OnHeap, &offset)
	ctest.Must(t, FileGetByteOffset(f.Handle, 3, ctest.Addr(&offset)))
	if offset != 16 {
		t.Errorf("int 3 at byte %d", offset)
	}
	ctest.Must(t, FileGetSize(f.Handle, ctest.Addr(&offset)))
	if offset != 4+2*16 {
		t.Errorf("%d bytes", offset)
	}
	rep, types := ctest.Heap(make([]byte, abi.MaxDatarepString)...), ctest.Heap(make([]abi.Handle, 2)...)
	ctest.Must(t, FileGetView(f.Handle, ctest.Addr(&offset), types, types+8, rep))
	if s, _ := cbinding.Str("", rep, 128); s != "native" || offset != 4 || cbinding.Array[abi.Handle](types, 2)[1] != abi.Int {
		t.Errorf("view at %d, %q, %x", offset, s, cbinding.Array[abi.Handle](types, 2))
	}
	ctest.Must(t, FileClose(ctest.Addr(&f.Handle)))
	if f.Handle != abi.FileNull {
		t.Errorf("handle %#x of a closed file", f.Handle)
	}
	ctest.Must(t, FileDelete(ctest.CString(name), abi.InfoNull))
}

// TestFileErrorsOfC gives the calls what they must refuse. The handler of files returns.
func TestFileErrorsOfC(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	b := ctest.NewBox()
	open := func(comm abi.Handle, name uintptr, amode int) int {
		return FileOpen(comm, name, amode, abi.InfoNull, ctest.Addr(&b.Handle))
	}
	ctest.WantError(t, open(abi.CommSelf, ctest.CString(name), abi.ModeRdonly), abi.ErrNoSuchFile, name)
	ctest.WantError(t, open(abi.CommNull, ctest.CString(name), abi.ModeRdonly), abi.ErrComm, "null handle")
	ctest.WantError(t, open(abi.CommSelf, 0, abi.ModeRdonly), abi.ErrArg, "filename")
	ctest.WantError(t, open(abi.CommSelf, ctest.CString(""), abi.ModeRdonly), abi.ErrBadFile, `""`)
	ctest.WantError(t, open(abi.CommSelf, ctest.CString(dir), abi.ModeRdonly), abi.ErrBadFile, "directory")
	ctest.WantError(t, open(abi.CommSelf, ctest.CString(name), abi.ModeRdonly|abi.ModeCreate), abi.ErrAmode, "MPI_MODE_CREATE")
	ctest.WantError(t, open(abi.CommSelf, ctest.CString(name), abi.ModeRdonly|abi.ModeWronly), abi.ErrAmode, "one of")
	ctest.WantError(t, open(abi.CommSelf, ctest.CString(name), abi.ModeRdwr|abi.ModeSequential), abi.ErrAmode, "MPI_MODE_SEQUENTIAL")
	ctest.WantError(t, open(abi.CommSelf, ctest.CString(name), abi.ModeRdwr|1<<20), abi.ErrAmode, "")
	ctest.WantError(t, FileDelete(ctest.CString(name), abi.InfoNull), abi.ErrNoSuchFile, name)
	ctest.WantError(t, FileDelete(ctest.CString(dir), abi.InfoNull), abi.ErrBadFile, "directory")
	ctest.WantError(t, FileSync(abi.FileNull), abi.ErrFile, "null handle")
	ctest.WantError(t, FileSync(abi.CommSelf), abi.ErrFile, "communicator")

	if err := os.WriteFile(name, []byte("0123456789"), 0o666); err != nil {
		t.Fatal(err)
	}
	ctest.WantError(t, open(abi.CommSelf, ctest.CString(name), abi.ModeRdwr|abi.ModeCreate|abi.ModeExcl), abi.ErrFileExists, "exists")
	f := openFile(t, name, abi.ModeRdonly)
	mem := ctest.Heap(make([]byte, 100)...)
	ctest.WantError(t, FileWrite(f.Handle, mem, 1, abi.Int, abi.StatusIgnore), abi.ErrReadOnly, "not allowed with MPI_MODE_RDONLY")
	ctest.WantError(t, FileSetSize(f.Handle, 1), abi.ErrReadOnly, "")
	ctest.WantError(t, FileRead(f.Handle, mem, -1, abi.Int, abi.StatusIgnore), abi.ErrCount, "count -1")
	ctest.WantError(t, FileRead(f.Handle, mem, 1, abi.DatatypeNull, abi.StatusIgnore), abi.ErrType, "datatype")
	ctest.WantError(t, FileReadAll(f.Handle, 0, 1, abi.Int, abi.StatusIgnore), abi.ErrBuffer, "")
	ctest.WantError(t, FileReadAt(f.Handle, -1, mem, 1, abi.Int, abi.StatusIgnore), abi.ErrArg, "-1")
	ctest.WantError(t, FileSeek(f.Handle, -1, abi.SeekSet), abi.ErrArg, "-1")
	ctest.WantError(t, FileSeek(f.Handle, 0, 7), abi.ErrArg, "whence 7")
	ctest.WantError(t, FileIread(f.Handle, mem, 1, abi.Int, 0), abi.ErrArg, "request")
	ctest.WantError(t, FileReadAllEnd(f.Handle, mem, abi.StatusIgnore), abi.ErrFile, "without its beginning")
	ctest.WantError(t, FileReadAtAllBegin(f.Handle, 0, mem, -1, abi.Int), abi.ErrCount, "count -1")
	ctest.Must(t, FileReadAtAllBegin(f.Handle, 0, mem, 1, abi.Int))
	ctest.WantError(t, FileReadAllBegin(f.Handle, mem, 1, abi.Int), abi.ErrFile, "ReadAtAllEnd has not been called")
	ctest.Must(t, FileReadAtAllEnd(f.Handle, mem, abi.StatusIgnore))
	ctest.WantError(t, FileSetView(f.Handle, -1, abi.Int, abi.Int, ctest.CString("native"), abi.InfoNull), abi.ErrArg, "")
	ctest.WantError(t, FileSetView(f.Handle, 0, abi.Int, abi.Int, ctest.CString("esperanto"), abi.InfoNull), abi.ErrUnsupportedDatarep, "esperanto")
	ctest.WantError(t, FileSetView(f.Handle, 0, abi.Int, abi.Char, ctest.CString("native"), abi.InfoNull), abi.ErrIo, "")
	ctest.WantError(t, FileSetView(f.Handle, 0, abi.DatatypeNull, abi.Char, ctest.CString("native"), abi.InfoNull), abi.ErrType, "")
	ctest.WantError(t, FileGetSize(f.Handle, 0), abi.ErrArg, "NULL")
	old := f.Handle
	ctest.Must(t, FileClose(ctest.Addr(&f.Handle)))
	ctest.WantError(t, FileSync(old), abi.ErrFile, "has been freed")

	f = openFile(t, name, abi.ModeWronly|abi.ModeSequential)
	ctest.WantError(t, FileReadShared(f.Handle, mem, 1, abi.Int, abi.StatusIgnore), abi.ErrAccess, "MPI_MODE_WRONLY")
	ctest.WantError(t, FileWriteAt(f.Handle, 0, mem, 1, abi.Int, abi.StatusIgnore), abi.ErrUnsupportedOperation, "MPI_MODE_SEQUENTIAL")
	ctest.WantError(t, FileSeekShared(f.Handle, 0, abi.SeekSet), abi.ErrUnsupportedOperation, "")
	ctest.WantError(t, FileGetPosition(f.Handle, ctest.Addr(&b.Handle)), abi.ErrUnsupportedOperation, "")
	ctest.Must(t, FileClose(ctest.Addr(&f.Handle)))
}

// TestDatarepOfC registers functions that write ints with the highest digit first, and one that fails.
func TestDatarepOfC(t *testing.T) {
	extentOf, convert := cbinding.CallDatarepExtent, cbinding.CallDatarepConvert
	t.Cleanup(func() { cbinding.CallDatarepExtent, cbinding.CallDatarepConvert = extentOf, convert })
	const extentFn, readFn, writeFn, extra = 0x5000, 0x6000, 0x7000, 77
	cbinding.CallDatarepExtent = func(fn uintptr, datatype abi.Handle, e uintptr) (int, int) {
		if fn != extentFn || e != extra || datatype != abi.Int {
			t.Errorf("extent function %#x of %#x, extra %d", fn, datatype, e)
		}
		return 8, 0
	}
	result := 0
	cbinding.CallDatarepConvert = func(fn, user uintptr, layout abi.Handle, count int, file uintptr, position int, e uintptr, large bool) int {
		if e != extra || position != 0 || large {
			t.Errorf("position %d, extra %d, large %v", position, e, large)
		}
		var size int64
		ctest.OnHeap = append(ctest.OnHeap, &size)
		ctest.Must(t, datatype.TypeGetExtent(layout, ctest.Heap[int64](0), ctest.Addr(&size)))
		for i := range count {
			one, word := cbinding.At[int32](user+uintptr(i)*uintptr(size)), cbinding.At[int64](file+uintptr(8*i))
			if fn == readFn {
				*one = int32(-*word)
			} else {
				*word = -int64(*one)
			}
		}
		return result
	}
	register := func(name string) int {
		return RegisterDatarep(ctest.CString(name), readFn, writeFn, extentFn, extra, false)
	}
	ctest.Must(t, register("minus"))
	ctest.WantError(t, register("minus"), abi.ErrDupDatarep, "minus")
	ctest.WantError(t, register("native"), abi.ErrDupDatarep, "native")
	ctest.WantError(t, register(""), abi.ErrArg, "datarep")
	ctest.WantError(t, RegisterDatarep(ctest.CString("x"), 0, 0, 0, 0, false), abi.ErrArg, "dtype_file_extent_fn")

	name := filepath.Join(t.TempDir(), "file")
	f := openFile(t, name, abi.ModeCreate|abi.ModeRdwr)
	ctest.Must(t, FileSetView(f.Handle, 0, abi.Int, abi.Int, ctest.CString("minus"), abi.InfoNull))
	spread := newtype(t, func(p uintptr) int { return datatype.TypeCreateResized(abi.Int, 0, 12, p, false) })
	mem := ctest.Heap[int32](1, 0, 0, 2, 0, 0, 3, 0, 0)
	ctest.Must(t, FileWrite(f.Handle, mem, 3, spread, abi.StatusIgnore))
	file, err := os.ReadFile(name)
	if err != nil || len(file) != 24 || int8(file[8]) != -2 {
		t.Errorf("file %x, %v", file, err)
	}
	back := ctest.Heap(make([]int32, 9)...)
	ctest.Must(t, FileReadAt(f.Handle, 0, back, 3, spread, abi.StatusIgnore))
	if got := cbinding.Array[int32](back, 9); got[0] != 1 || got[3] != 2 || got[6] != 3 {
		t.Errorf("read %v", got)
	}
	var extent int64
	ctest.OnHeap = append(ctest.OnHeap, &extent)
	ctest.Must(t, FileGetTypeExtent(f.Handle, abi.Int, ctest.Addr(&extent)))
	if extent != 8 {
		t.Errorf("extent %d", extent)
	}
	result = 999
	ctest.WantError(t, FileReadAt(f.Handle, 0, back, 3, spread, abi.StatusIgnore), abi.ErrConversion, "999")
	result = 0
	ctest.Must(t, FileClose(ctest.Addr(&f.Handle)))
}
