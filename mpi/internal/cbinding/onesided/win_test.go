package onesided

import (
	"testing"
	"unsafe"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/communicator"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
	"github.com/weftstack/weft/mpi/internal/cbinding/datatype"
	"github.com/weftstack/weft/mpi/internal/cbinding/environment"
	"github.com/weftstack/weft/mpi/internal/cbinding/pointtopoint"
)

// winBox is memory for a test, which does not move.
type winBox struct {
	mem, at    [64]int32
	i          int32
	j          int32
	one, two   int32
	aint       int64
	ptr        uintptr
	handle, h2 abi.Handle
	group      abi.Handle
	name       [abi.MaxObjectName]byte
}

// winTest makes a window of the box's memory with a displacement unit of 4 whose errors return.
func winTest(t *testing.T, create func(b *winBox) int) (*winBox, abi.Handle) {
	t.Helper()
	ctest.Returning(t)
	b := new(winBox)
	ctest.OnHeap = append(ctest.OnHeap, b)
	ctest.Must(t, create(b))
	win := b.handle
	ctest.Must(t, environment.WinSetErrhandler(win, abi.ErrorsReturn))
	ctest.Must(t, communicator.CommGroup(abi.CommWorld, ctest.Addr(&b.group)))
	return b, win
}

func createWin(b *winBox) int {
	return WinCreate(ctest.Addr(&b.mem), int(unsafe.Sizeof(b.mem)), 4, abi.InfoNull, abi.CommWorld, ctest.Addr(&b.handle))
}

// TestWinOperations does all operations on the window of the only rank.
func TestWinOperations(t *testing.T) {
	b, win := winTest(t, createWin)
	copy(b.at[:], []int32{1, 2, 3, 4})
	one, two, old := ctest.Addr(&b.one), ctest.Addr(&b.two), ctest.Addr(&b.i)
	ctest.Must(t, WinFence(0, win))
	ctest.Must(t, Put(ctest.Addr(&b.at), 4, abi.Int, 0, 8, 4, abi.Int, win))
	ctest.Must(t, WinFence(abi.ModeNosucceed, win))
	if b.mem[8] != 1 || b.mem[11] != 4 {
		t.Fatalf("put %v", b.mem)
	}
	ctest.Must(t, WinLock(abi.LockExclusive, 0, 0, win))
	ctest.Must(t, Accumulate(ctest.Addr(&b.at), 4, abi.Int, 0, 8, 4, abi.Int, abi.Sum, win))
	ctest.Must(t, GetAccumulate(0, 0, abi.DatatypeNull, ctest.Addr(&b.at[16]), 4, abi.Int, 0, 8, 4, abi.Int, abi.NoOp, win))
	ctest.Must(t, Get(ctest.Addr(&b.at[32]), 4, abi.Int, 0, 8, 4, abi.Int, win))
	b.one, b.two = 10, 12
	ctest.Must(t, FetchAndOp(one, old, abi.Int, 0, 8, abi.Sum, win))
	ctest.Must(t, WinFlush(0, win))
	if b.at[16] != 2 || b.at[35] != 8 || b.i != 2 || b.mem[8] != 12 {
		t.Errorf("old %v, got %v, fetched %d, now %d", b.at[16:20], b.at[32:36], b.i, b.mem[8])
	}
	ctest.Must(t, CompareAndSwap(one, two, old, abi.Int, 0, 8, win))
	ctest.Must(t, WinFlushLocalAll(win))
	if b.i != 12 || b.mem[8] != 10 {
		t.Errorf("compared with %d, now %d", b.i, b.mem[8])
	}
	r := ctest.Addr(&b.h2)
	for _, start := range []func() int{
		func() int { return Rput(one, 1, abi.Int, 0, 0, 1, abi.Int, win, r) },
		func() int { return Raccumulate(one, 1, abi.Int, 0, 0, 1, abi.Int, abi.Max, win, r) },
		func() int {
			return RgetAccumulate(one, 1, abi.Int, old, 1, abi.Int, 0, 0, 1, abi.Int, abi.Bxor, win, r)
		},
		func() int { return Rget(two, 1, abi.Int, 0, 0, 1, abi.Int, win, r) },
	} {
		ctest.Must(t, start())
		ctest.Must(t, pointtopoint.Wait(r, abi.StatusIgnore))
	}
	if b.i != 10 || b.two != 0 {
		t.Errorf("old %d, got %d", b.i, b.two)
	}
	ctest.Must(t, WinUnlock(0, win))
	ctest.Must(t, WinFree(ctest.Addr(&b.handle)))
	if b.handle != abi.WinNull {
		t.Errorf("handle %#x after MPI_Win_free", b.handle)
	}
	ctest.WantError(t, WinFence(0, win), abi.ErrWin, "has been freed")
}

// TestWinEpochs makes calls outside of the epoch that they need.
func TestWinEpochs(t *testing.T) {
	b, win := winTest(t, createWin)
	x := ctest.Addr(&b.one)
	sync := func(what string, code int) {
		t.Helper()
		ctest.WantError(t, code, abi.ErrRmaSync, what)
	}
	put := func() int { return Put(x, 1, abi.Int, 0, 0, 1, abi.Int, win) }
	sync("operation", put())
	sync("MPI_Win_unlock", WinUnlock(0, win))
	sync("MPI_Win_unlock_all", WinUnlockAll(win))
	sync("MPI_Win_flush", WinFlush(0, win))
	sync("MPI_Win_flush_all", WinFlushAll(win))
	sync("MPI_Win_flush_local", WinFlushLocal(0, win))
	sync("MPI_Win_complete", WinComplete(win))
	sync("MPI_Win_wait", WinWait(win))
	sync("MPI_Win_test", WinTest(win, x))
	ctest.Must(t, WinFence(0, win))
	ctest.Must(t, WinLock(abi.LockShared, 0, 0, win)) // the fence was the last
	sync("same rank", WinLock(abi.LockShared, 0, 0, win))
	sync("MPI_Win_fence", WinFence(0, win))
	sync("MPI_Win_lock_all", WinLockAll(0, win))
	sync("MPI_Win_start", WinStart(b.group, 0, win))
	sync("MPI_Win_free", WinFree(ctest.Addr(&b.handle)))
	ctest.Must(t, put())
	ctest.Must(t, Put(x, 1, abi.Int, abi.ProcNull, 0, 1, abi.Int, win))
	ctest.Must(t, WinLock(abi.LockShared, abi.ProcNull, 0, win))
	ctest.Must(t, WinUnlock(0, win))
	sync("another rank", put())
	ctest.Must(t, WinFlush(abi.ProcNull, win))
	ctest.Must(t, WinUnlock(abi.ProcNull, win))
	ctest.Must(t, WinFence(0, win))
	ctest.Must(t, put())
	sync("has not completed", WinLock(abi.LockShared, 0, 0, win))
	sync("MPI_Rput", Rput(x, 1, abi.Int, 0, 0, 1, abi.Int, win, ctest.Addr(&b.h2)))
	ctest.Must(t, WinFence(abi.ModeNosucceed, win))
	sync("operation", put())
	ctest.Must(t, WinPost(b.group, 0, win))
	sync("MPI_Win_post", WinPost(b.group, 0, win))
	sync("MPI_Win_fence", WinFence(0, win))
	ctest.Must(t, WinStart(b.group, 0, win))
	ctest.Must(t, put())
	sync("MPI_Win_flush", WinFlush(0, win))
	ctest.Must(t, WinTest(win, ctest.Addr(&b.i)))
	if b.i != 0 {
		t.Error("MPI_Win_test before MPI_Win_complete")
	}
	ctest.Must(t, WinComplete(win))
	ctest.Must(t, WinWait(win))
	ctest.Must(t, WinLockAll(abi.ModeNocheck, win))
	ctest.Must(t, put())
	ctest.Must(t, WinFlushAll(win))
	ctest.Must(t, WinUnlockAll(win))
	ctest.Must(t, WinSync(win))
	ctest.Must(t, WinFree(ctest.Addr(&b.handle)))
}

// TestWinErrors makes calls with bad arguments.
func TestWinErrors(t *testing.T) {
	b, win := winTest(t, createWin)
	x := ctest.Addr(&b.one)
	ctest.Must(t, datatype.TypeVector(2, 1, 2, abi.Int, ctest.Addr(&b.h2), false))
	open := b.h2
	ctest.Must(t, WinFence(0, win))
	create := func(base uintptr, size, unit int, comm abi.Handle, result uintptr) int {
		return WinCreate(base, size, unit, abi.InfoNull, comm, result)
	}
	for name, tt := range map[string]struct {
		code, class int
	}{
		"size":           {create(x, -1, 1, abi.CommWorld, ctest.Addr(&b.h2)), abi.ErrSize},
		"unit":           {create(x, 4, 0, abi.CommWorld, ctest.Addr(&b.h2)), abi.ErrDisp},
		"base":           {create(0, 4, 1, abi.CommWorld, ctest.Addr(&b.h2)), abi.ErrBase},
		"comm":           {create(x, 4, 1, abi.CommNull, ctest.Addr(&b.h2)), abi.ErrComm},
		"win":            {create(x, 4, 1, abi.CommWorld, 0), abi.ErrArg},
		"null window":    {WinFence(0, abi.WinNull), abi.ErrWin},
		"a comm":         {WinFence(0, abi.CommWorld), abi.ErrWin},
		"rank":           {Put(x, 1, abi.Int, 1, 0, 1, abi.Int, win), abi.ErrRank},
		"any source":     {Put(x, 1, abi.Int, abi.AnySource, 0, 1, abi.Int, win), abi.ErrRank},
		"count":          {Put(x, -1, abi.Int, 0, 0, 1, abi.Int, win), abi.ErrCount},
		"target count":   {Put(x, 1, abi.Int, 0, 0, -2, abi.Int, win), abi.ErrCount},
		"type":           {Put(x, 1, abi.DatatypeNull, 0, 0, 1, abi.Int, win), abi.ErrType},
		"target type":    {Get(x, 1, abi.Int, 0, 0, 1, open, win), abi.ErrType},
		"disp":           {Put(x, 1, abi.Int, 0, -1, 1, abi.Int, win), abi.ErrDisp},
		"range":          {Put(x, 1, abi.Int, 0, 64, 1, abi.Int, win), abi.ErrRmaRange},
		"buffer":         {Put(abi.InPlace, 1, abi.Int, 0, 0, 1, abi.Int, win), abi.ErrBuffer},
		"null buffer":    {Get(0, 1, abi.Int, 0, 0, 1, abi.Int, win), abi.ErrBuffer},
		"op":             {Accumulate(x, 1, abi.Int, 0, 0, 1, abi.Int, abi.OpNull, win), abi.ErrOp},
		"no op":          {Accumulate(x, 1, abi.Int, 0, 0, 1, abi.Int, abi.NoOp, win), abi.ErrOp},
		"op of type":     {Accumulate(x, 1, abi.Float, 0, 0, 1, abi.Float, abi.Band, win), abi.ErrOp},
		"types":          {Accumulate(x, 1, abi.Int, 0, 0, 1, abi.Float, abi.Sum, win), abi.ErrType},
		"swap type":      {CompareAndSwap(x, x, x, abi.Float, 0, 0, win), abi.ErrType},
		"fetch type":     {FetchAndOp(x, x, open, 0, 0, abi.Sum, win), abi.ErrType},
		"assert":         {WinFence(abi.ModeNocheck, win), abi.ErrAssert},
		"lock type":      {WinLock(7, 0, 0, win), abi.ErrLocktype},
		"lock rank":      {WinLock(abi.LockShared, 9, 0, win), abi.ErrRank},
		"group":          {WinPost(abi.GroupNull, 0, win), abi.ErrGroup},
		"attach":         {WinAttach(win, x, 4), abi.ErrRmaFlavor},
		"detach":         {WinDetach(win, x), abi.ErrRmaFlavor},
		"query":          {WinSharedQuery(win, 3, x, x, x, false), abi.ErrRank},
		"query nowhere":  {WinSharedQuery(win, 0, 0, x, x, false), abi.ErrArg},
		"allocate":       {WinAllocate(4, 1, abi.InfoNull, abi.CommWorld, 0, x), abi.ErrArg},
		"shared":         {WinAllocateShared(-4, 1, abi.InfoNull, abi.CommWorld, x, x), abi.ErrSize},
		"free nothing":   {WinFree(0), abi.ErrArg},
		"test nowhere":   {WinTest(win, 0), abi.ErrArg},
		"name":           {WinSetName(win, 0), abi.ErrArg},
		"group nowhere":  {WinGetGroup(win, 0), abi.ErrArg},
		"unknown info":   {WinSetInfo(win, 77), abi.ErrInfo},
		"request in use": {Rput(x, 1, abi.Int, 0, 0, 1, abi.Int, win, 0), abi.ErrArg},
	} {
		if tt.code != tt.class {
			t.Errorf("%s: code %d (%s), want %s", name, tt.code, cbinding.CodeText(tt.code), cbinding.ClassText(tt.class))
		}
	}
	ctest.WantError(t, Put(x, 1, abi.Int, 1, 0, 1, abi.Int, win), abi.ErrRank, "MPI_Put: target_rank 1")
	ctest.Must(t, datatype.TypeFree(ctest.Addr(&open)))
	ctest.Must(t, WinFence(0, win))
	ctest.Must(t, WinFree(ctest.Addr(&b.handle)))
}

// TestWinQueries asks for what a window is.
func TestWinQueries(t *testing.T) {
	shared := func(b *winBox) int {
		return WinAllocateShared(40, 8, abi.InfoNull, abi.CommWorld, ctest.Addr(&b.ptr), ctest.Addr(&b.handle))
	}
	allocated := func(b *winBox) int {
		return WinAllocate(40, 8, abi.InfoNull, abi.CommWorld, ctest.Addr(&b.ptr), ctest.Addr(&b.handle))
	}
	for flavor, create := range map[int32]func(b *winBox) int{abi.WinFlavorShared: shared, abi.WinFlavorAllocate: allocated} {
		b, win := winTest(t, create)
		base := b.ptr
		attr := func(key int) uintptr {
			t.Helper()
			ctest.Must(t, WinGetAttr(win, key, ctest.Addr(&b.ptr), ctest.Addr(&b.i)))
			if b.i != 1 {
				t.Fatalf("no attribute %d", key)
			}
			return b.ptr
		}
		if got := attr(abi.WinBase); got != base || base == 0 {
			t.Errorf("base %#x, want %#x", got, base)
		}
		size, unit := *cbinding.At[int64](attr(abi.WinSize)), *cbinding.At[int32](attr(abi.WinDispUnit))
		if f, m := *cbinding.At[int32](attr(abi.WinCreateFlavor)), *cbinding.At[int32](attr(abi.WinModel)); size != 40 || unit != 8 ||
			f != flavor || m != abi.WinUnified {
			t.Errorf("size %d, unit %d, flavor %d, model %d", size, unit, f, m)
		}
		for _, rank := range []int{0, abi.ProcNull} {
			ctest.Must(t, WinSharedQuery(win, rank, ctest.Addr(&b.aint), ctest.Addr(&b.i), ctest.Addr(&b.ptr), false))
			if b.aint != 40 || b.i != 8 || b.ptr != base {
				t.Errorf("rank %d: %d bytes at %#x, unit %d", rank, b.aint, b.ptr, b.i)
			}
		}
		ctest.Must(t, WinGetGroup(win, ctest.Addr(&b.h2)))
		ctest.Must(t, communicator.GroupSize(b.h2, ctest.Addr(&b.i)))
		ctest.Must(t, communicator.GroupFree(ctest.Addr(&b.h2)))
		copy(b.name[:], "halo\x00")
		ctest.Must(t, WinSetName(win, ctest.Addr(&b.name)))
		clear(b.name[:])
		ctest.Must(t, WinGetName(win, ctest.Addr(&b.name), ctest.Addr(&b.j)))
		if b.i != 1 || b.j != 4 || string(b.name[:5]) != "halo\x00" {
			t.Errorf("group of %d, name %q of %d", b.i, b.name[:5], b.j)
		}
		ctest.Must(t, WinGetInfo(win, ctest.Addr(&b.h2)))
		ctest.Must(t, WinSetInfo(win, b.h2))
		ctest.Must(t, environment.InfoFree(ctest.Addr(&b.h2)))
		ctest.Must(t, WinFree(ctest.Addr(&b.handle)))
	}
}

// TestWinDynamic attaches memory, and reaches it by its address.
func TestWinDynamic(t *testing.T) {
	b, win := winTest(t, func(b *winBox) int { return WinCreateDynamic(abi.InfoNull, abi.CommWorld, ctest.Addr(&b.handle)) })
	mem := ctest.Addr(&b.mem)
	ctest.Must(t, WinGetAttr(win, abi.WinBase, ctest.Addr(&b.ptr), ctest.Addr(&b.i)))
	if b.ptr != 0 || b.i != 1 {
		t.Errorf("base %#x, flag %d", b.ptr, b.i)
	}
	ctest.Must(t, WinAttach(win, mem, 64))
	ctest.Must(t, WinAttach(win, mem, 0))
	ctest.WantError(t, WinAttach(win, mem+32, 64), abi.ErrRmaAttach, "overlap")
	ctest.WantError(t, WinAttach(win, 5, 64), abi.ErrRmaAttach, "is no address")
	ctest.WantError(t, WinSharedQuery(win, 0, mem, mem, mem, false), abi.ErrRmaFlavor, "is dynamic")
	b.one = 7
	ctest.Must(t, WinLockAll(0, win))
	ctest.Must(t, Put(ctest.Addr(&b.one), 1, abi.Int, 0, int(mem)+8, 1, abi.Int, win))
	ctest.Must(t, WinFlush(0, win))
	if b.mem[2] != 7 {
		t.Errorf("put %v", b.mem[:4])
	}
	code := Put(ctest.Addr(&b.one), 1, abi.Int, 0, int(mem)+64, 1, abi.Int, win)
	if code == 0 {
		code = WinFlush(0, win)
	}
	ctest.WantError(t, code, abi.ErrRmaRange, "")
	ctest.Must(t, WinUnlockAll(win))
	ctest.Must(t, WinDetach(win, mem))
	ctest.Must(t, WinDetach(win, mem))
	ctest.WantError(t, WinDetach(win, mem), abi.ErrRmaAttach, "nothing is attached")
	ctest.Must(t, WinFree(ctest.Addr(&b.handle)))
}

// TestWinPutAllocates puts, which takes no memory.
func TestWinPutAllocates(t *testing.T) {
	b, win := winTest(t, createWin)
	x := ctest.Addr(&b.one)
	ctest.Must(t, WinLockAll(0, win))
	n := testing.AllocsPerRun(100, func() {
		if Put(x, 1, abi.Int, 0, 0, 1, abi.Int, win)|Get(x, 1, abi.Int, 0, 0, 1, abi.Int, win)|WinFlush(0, win) != 0 {
			t.Error("Put, Get or Win_flush failed")
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
	ctest.Must(t, WinUnlockAll(win))
	ctest.Must(t, WinFree(ctest.Addr(&b.handle)))
}

// TestWinWaitFails has MPI_Win_wait and MPI_Win_test return an error that is no mistake of the caller: the exposure is
// over, and the window can be freed.
func TestWinWaitFails(t *testing.T) {
	b, win := winTest(t, createWin)
	w, err := winOf(win)
	if err != nil {
		t.Fatal(err)
	}
	ctest.Must(t, WinPost(b.group, 0, win))
	if _, err := w.exposed("MPI_Win_test", func() (bool, error) { return false, nil }); err != nil {
		t.Fatal(err)
	}
	ctest.WantError(t, WinFree(ctest.Addr(&b.handle)), abi.ErrRmaSync, "MPI_Win_free")
	failed := func() (bool, error) { return true, mpi.ErrProcFailed }
	if _, err := w.exposed("MPI_Win_wait", failed); err != mpi.ErrProcFailed {
		t.Fatal(err)
	}
	ctest.Must(t, WinFree(ctest.Addr(&b.handle)))
}
