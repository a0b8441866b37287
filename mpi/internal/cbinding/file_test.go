package cbinding

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// openFile opens a file of MPI_COMM_SELF.
func openFile(t *testing.T, name string, amode int) *box {
	t.Helper()
	b := newBox()
	must(t, FileOpen(abi.CommSelf, cstring(name), amode, abi.InfoNull, addr(&b.handle)))
	return b
}

// TestFilesOfC writes an array of every second int and reads it back, by all kinds of calls.
func TestFilesOfC(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f := openFile(t, name, abi.ModeCreate|abi.ModeRdwr)
	b := newBox()
	must(t, FileGetAmode(f.handle, addr(&b.n)))
	if b.n != abi.ModeCreate|abi.ModeRdwr {
		t.Errorf("mode %#x", b.n)
	}
	gaps := newtype(t, func(p uintptr) int { return TypeVector(4, 1, 2, abi.Int, p, false) })
	must(t, FileSetView(f.handle, 4, abi.Int, abi.Int, cstring("native"), abi.InfoNull))
	mem := heap[int32](1, -1, 2, -1, 3, -1, 4, -1)
	st := new(abi.Status)
	onHeap = append(onHeap, st)
	n := func() int {
		t.Helper()
		must(t, GetCount(addr(st), abi.Int, addr(&b.n), false))
		return int(b.n)
	}
	must(t, FileWriteAt(f.handle, 0, mem, 1, gaps, addr(st)))
	if n() != 4 {
		t.Errorf("%d ints written, want 4", b.n)
	}
	must(t, FileSeek(f.handle, 0, abi.SeekEnd))
	must(t, FileIwrite(f.handle, mem, 1, gaps, addr(&b.handle)))
	must(t, Wait(addr(&b.handle), addr(st)))
	if n() != 4 {
		t.Errorf("%d ints written, want 4", b.n)
	}
	back := heap(make([]int32, 20)...)
	must(t, FileReadAtAll(f.handle, 2, back, 10, abi.Int, addr(st)))
	if got := array[int32](back, 7); n() != 6 || got[0] != 3 || got[2] != 1 || got[5] != 4 || got[6] != 0 {
		t.Errorf("%d ints: %v", b.n, got)
	}
	must(t, FileReadAllBegin(f.handle, back, 1, abi.Int))
	must(t, FileReadAllEnd(f.handle, back, addr(st)))
	if n() != 0 {
		t.Errorf("%d ints behind the end", b.n)
	}
	var offset int64
	onHeap = append(onHeap, &offset)
	must(t, FileGetByteOffset(f.handle, 3, addr(&offset)))
	if offset != 16 {
		t.Errorf("int 3 at byte %d", offset)
	}
	must(t, FileGetSize(f.handle, addr(&offset)))
	if offset != 4+2*16 {
		t.Errorf("%d bytes", offset)
	}
	rep, types := heap(make([]byte, abi.MaxDatarepString)...), heap(make([]Handle, 2)...)
	must(t, FileGetView(f.handle, addr(&offset), types, types+8, rep))
	if s, _ := str("", rep, 128); s != "native" || offset != 4 || array[Handle](types, 2)[1] != abi.Int {
		t.Errorf("view at %d, %q, %x", offset, s, array[Handle](types, 2))
	}
	must(t, FileClose(addr(&f.handle)))
	if f.handle != abi.FileNull {
		t.Errorf("handle %#x of a closed file", f.handle)
	}
	must(t, FileDelete(cstring(name), abi.InfoNull))
}

// TestFileErrorsOfC gives the calls what they must refuse. The handler of files returns.
func TestFileErrorsOfC(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	b := newBox()
	open := func(comm Handle, name uintptr, amode int) int {
		return FileOpen(comm, name, amode, abi.InfoNull, addr(&b.handle))
	}
	wantError(t, open(abi.CommSelf, cstring(name), abi.ModeRdonly), abi.ErrNoSuchFile, name)
	wantError(t, open(abi.CommNull, cstring(name), abi.ModeRdonly), abi.ErrComm, "null handle")
	wantError(t, open(abi.CommSelf, 0, abi.ModeRdonly), abi.ErrArg, "filename")
	wantError(t, open(abi.CommSelf, cstring(""), abi.ModeRdonly), abi.ErrBadFile, `""`)
	wantError(t, open(abi.CommSelf, cstring(dir), abi.ModeRdonly), abi.ErrBadFile, "directory")
	wantError(t, open(abi.CommSelf, cstring(name), abi.ModeRdonly|abi.ModeCreate), abi.ErrAmode, "FileCreate")
	wantError(t, open(abi.CommSelf, cstring(name), abi.ModeRdonly|abi.ModeWronly), abi.ErrAmode, "one of")
	wantError(t, open(abi.CommSelf, cstring(name), abi.ModeRdwr|abi.ModeSequential), abi.ErrAmode, "FileSequential")
	wantError(t, open(abi.CommSelf, cstring(name), abi.ModeRdwr|1<<20), abi.ErrAmode, "")
	wantError(t, FileDelete(cstring(name), abi.InfoNull), abi.ErrNoSuchFile, name)
	wantError(t, FileDelete(cstring(dir), abi.InfoNull), abi.ErrBadFile, "directory")
	wantError(t, FileSync(abi.FileNull), abi.ErrFile, "null handle")
	wantError(t, FileSync(abi.CommSelf), abi.ErrFile, "communicator")

	if err := os.WriteFile(name, []byte("0123456789"), 0o666); err != nil {
		t.Fatal(err)
	}
	wantError(t, open(abi.CommSelf, cstring(name), abi.ModeRdwr|abi.ModeCreate|abi.ModeExcl), abi.ErrFileExists, "exists")
	f := openFile(t, name, abi.ModeRdonly)
	mem := heap(make([]byte, 100)...)
	wantError(t, FileWrite(f.handle, mem, 1, abi.Int, abi.StatusIgnore), abi.ErrReadOnly, "FileRead")
	wantError(t, FileSetSize(f.handle, 1), abi.ErrReadOnly, "")
	wantError(t, FileRead(f.handle, mem, -1, abi.Int, abi.StatusIgnore), abi.ErrCount, "count -1")
	wantError(t, FileRead(f.handle, mem, 1, abi.DatatypeNull, abi.StatusIgnore), abi.ErrType, "datatype")
	wantError(t, FileReadAll(f.handle, 0, 1, abi.Int, abi.StatusIgnore), abi.ErrBuffer, "")
	wantError(t, FileReadAt(f.handle, -1, mem, 1, abi.Int, abi.StatusIgnore), abi.ErrArg, "-1")
	wantError(t, FileSeek(f.handle, -1, abi.SeekSet), abi.ErrArg, "-1")
	wantError(t, FileSeek(f.handle, 0, 7), abi.ErrArg, "whence 7")
	wantError(t, FileIread(f.handle, mem, 1, abi.Int, 0), abi.ErrArg, "request")
	wantError(t, FileReadAllEnd(f.handle, mem, abi.StatusIgnore), abi.ErrFile, "without its beginning")
	wantError(t, FileReadAtAllBegin(f.handle, 0, mem, -1, abi.Int), abi.ErrCount, "count -1")
	must(t, FileReadAtAllBegin(f.handle, 0, mem, 1, abi.Int))
	wantError(t, FileReadAllBegin(f.handle, mem, 1, abi.Int), abi.ErrFile, "ReadAtAllEnd has not been called")
	must(t, FileReadAtAllEnd(f.handle, mem, abi.StatusIgnore))
	wantError(t, FileSetView(f.handle, -1, abi.Int, abi.Int, cstring("native"), abi.InfoNull), abi.ErrArg, "")
	wantError(t, FileSetView(f.handle, 0, abi.Int, abi.Int, cstring("esperanto"), abi.InfoNull), abi.ErrUnsupportedDatarep, "esperanto")
	wantError(t, FileSetView(f.handle, 0, abi.Int, abi.Char, cstring("native"), abi.InfoNull), abi.ErrIo, "")
	wantError(t, FileSetView(f.handle, 0, abi.DatatypeNull, abi.Char, cstring("native"), abi.InfoNull), abi.ErrType, "")
	wantError(t, FileGetSize(f.handle, 0), abi.ErrArg, "NULL")
	old := f.handle
	must(t, FileClose(addr(&f.handle)))
	wantError(t, FileSync(old), abi.ErrFile, "has been freed")

	f = openFile(t, name, abi.ModeWronly|abi.ModeSequential)
	wantError(t, FileReadShared(f.handle, mem, 1, abi.Int, abi.StatusIgnore), abi.ErrAccess, "FileWrite")
	wantError(t, FileWriteAt(f.handle, 0, mem, 1, abi.Int, abi.StatusIgnore), abi.ErrUnsupportedOperation, "FileSequential")
	wantError(t, FileSeekShared(f.handle, 0, abi.SeekSet), abi.ErrUnsupportedOperation, "")
	wantError(t, FileGetPosition(f.handle, addr(&b.handle)), abi.ErrUnsupportedOperation, "")
	must(t, FileClose(addr(&f.handle)))
}

// TestDatarepOfC registers functions that write ints with the highest digit first, and one that fails.
func TestDatarepOfC(t *testing.T) {
	extentOf, convert := CallDatarepExtent, CallDatarepConvert
	t.Cleanup(func() { CallDatarepExtent, CallDatarepConvert = extentOf, convert })
	const extentFn, readFn, writeFn, extra = 0x5000, 0x6000, 0x7000, 77
	CallDatarepExtent = func(fn uintptr, datatype Handle, e uintptr) (int, int) {
		if fn != extentFn || e != extra || datatype != abi.Int {
			t.Errorf("extent function %#x of %#x, extra %d", fn, datatype, e)
		}
		return 8, 0
	}
	result := 0
	CallDatarepConvert = func(fn, user uintptr, datatype Handle, count int, file uintptr, position int, e uintptr, large bool) int {
		if e != extra || position != 0 || large {
			t.Errorf("position %d, extra %d, large %v", position, e, large)
		}
		var size int64
		onHeap = append(onHeap, &size)
		must(t, TypeGetExtent(datatype, heap[int64](0), addr(&size)))
		for i := range count {
			one, word := at[int32](user+uintptr(i)*uintptr(size)), at[int64](file+uintptr(8*i))
			if fn == readFn {
				*one = int32(-*word)
			} else {
				*word = -int64(*one)
			}
		}
		return result
	}
	register := func(name string) int {
		return RegisterDatarep(cstring(name), readFn, writeFn, extentFn, extra, false)
	}
	must(t, register("minus"))
	wantError(t, register("minus"), abi.ErrDupDatarep, "minus")
	wantError(t, register("native"), abi.ErrDupDatarep, "native")
	wantError(t, register(""), abi.ErrArg, "datarep")
	wantError(t, RegisterDatarep(cstring("x"), 0, 0, 0, 0, false), abi.ErrArg, "dtype_file_extent_fn")

	name := filepath.Join(t.TempDir(), "file")
	f := openFile(t, name, abi.ModeCreate|abi.ModeRdwr)
	must(t, FileSetView(f.handle, 0, abi.Int, abi.Int, cstring("minus"), abi.InfoNull))
	spread := newtype(t, func(p uintptr) int { return TypeCreateResized(abi.Int, 0, 12, p, false) })
	mem := heap[int32](1, 0, 0, 2, 0, 0, 3, 0, 0)
	must(t, FileWrite(f.handle, mem, 3, spread, abi.StatusIgnore))
	file, err := os.ReadFile(name)
	if err != nil || len(file) != 24 || int8(file[8]) != -2 {
		t.Errorf("file %x, %v", file, err)
	}
	back := heap(make([]int32, 9)...)
	must(t, FileReadAt(f.handle, 0, back, 3, spread, abi.StatusIgnore))
	if got := array[int32](back, 9); got[0] != 1 || got[3] != 2 || got[6] != 3 {
		t.Errorf("read %v", got)
	}
	var extent int64
	onHeap = append(onHeap, &extent)
	must(t, FileGetTypeExtent(f.handle, abi.Int, addr(&extent)))
	if extent != 8 {
		t.Errorf("extent %d", extent)
	}
	result = 999
	wantError(t, FileReadAt(f.handle, 0, back, 3, spread, abi.StatusIgnore), abi.ErrConversion, "999")
	result = 0
	must(t, FileClose(addr(&f.handle)))
}
