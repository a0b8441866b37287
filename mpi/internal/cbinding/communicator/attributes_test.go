package communicator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
	"github.com/weftstack/weft/mpi/internal/cbinding/datatype"
	"github.com/weftstack/weft/mpi/internal/cbinding/environment"
)

// logCallbacks lets the C functions with even addresses write to a log; those with odd ones fail with
// code 99.
func logCallbacks(t *testing.T) *[]string {
	var log []string
	cbinding.CallCopyAttr = func(fn uintptr, object abi.Handle, keyval int, extra, in uintptr) (uintptr, bool, int) {
		log = append(log, fmt.Sprintf("copy %d %d", extra, in))
		return in + 1, fn != 0x4000, 99 * int(fn&1)
	}
	cbinding.CallDeleteAttr = func(fn uintptr, object abi.Handle, keyval int, value, extra uintptr) int {
		log = append(log, fmt.Sprintf("delete %d %d", extra, value))
		return 99 * int(fn&1)
	}
	t.Cleanup(func() { cbinding.CallCopyAttr, cbinding.CallDeleteAttr = nil, nil })
	return &log
}

func TestAttributesOfC(t *testing.T) {
	ctest.Returning(t)
	log := logCallbacks(t)
	b := ctest.NewBox()
	key := func(copyFn, deleteFn, extra uintptr) int {
		ctest.Must(t, CommCreateKeyval(copyFn, deleteFn, ctest.Addr(&b.N), extra))
		return int(b.N)
	}
	ctest.Must(t, CommDup(abi.CommWorld, ctest.Addr(&b.Handle)))
	c := b.Handle
	copied, dup, none, never := key(0x1000, 0x2000, 1), key(abi.CommDupFn, 0x2000, 2), key(0, 0, 3), key(0x4000, 0x2000, 4)
	for i, k := range []int{copied, dup, none, never} {
		ctest.Must(t, CommSetAttr(c, k, uintptr(10*(i+1))))
	}
	get := func(c abi.Handle, k int) string {
		t.Helper()
		ctest.Must(t, CommGetAttr(c, k, ctest.Addr(&b.Value), ctest.Addr(&b.Flag)))
		if b.Flag == 0 {
			return "none"
		}
		return fmt.Sprint(b.Value)
	}
	ctest.Must(t, CommDup(c, ctest.Addr(&b.Handle)))
	d := b.Handle
	got := fmt.Sprint(get(c, copied), get(d, copied), get(d, dup), get(c, none), get(d, none), get(d, never))
	if want := fmt.Sprint("10", "11", "20", "30", "none", "none"); got != want {
		t.Errorf("values %s, want %s", got, want)
	}
	ctest.Must(t, CommSetAttr(c, copied, 50)) // drops 10
	ctest.Must(t, b.Free(CommFree, d))        // drops 20, then 11
	want := []string{"copy 1 10", "copy 4 40", "delete 1 10", "delete 2 20", "delete 1 11"}
	if !slices.Equal(*log, want) {
		t.Errorf("calls %q, want %q", *log, want)
	}

	*log = nil
	ctest.Must(t, CommDeleteAttr(c, none))
	b.N = int32(copied)
	ctest.Must(t, CommFreeKeyval(ctest.Addr(&b.N)))
	if b.N != abi.KeyvalInvalid {
		t.Errorf("freed key %d", b.N)
	}
	// The number is good for deleting what is there, and then no more.
	if got := get(c, copied); got != "50" {
		t.Errorf("value under a freed key %s", got)
	}
	ctest.Must(t, CommDeleteAttr(c, copied))
	ctest.WantError(t, CommSetAttr(c, copied, 1), abi.ErrKeyval, "has been freed")
	ctest.WantError(t, CommDeleteAttr(c, abi.TagUb), abi.ErrKeyval, "predefined")
	ctest.WantError(t, CommDeleteAttr(c, abi.KeyvalInvalid), abi.ErrKeyval, "MPI_KEYVAL_INVALID")
	ctest.WantError(t, datatype.TypeSetAttr(abi.Int, dup, 1), abi.ErrKeyval, "is a key of communicators, not datatypes")

	// A function that fails decides the code of the call, and nothing is copied or deleted.
	bad, stubborn := key(0x1001, 0x2000, 5), key(0, 0x2001, 6)
	ctest.Must(t, CommSetAttr(c, bad, 70))
	b.Handle = 12345
	if code := CommDup(c, ctest.Addr(&b.Handle)); code != 99 || b.Handle != abi.CommNull {
		t.Errorf("duplicate with a failing copy function: code %d, handle %#x", code, b.Handle)
	}
	ctest.Must(t, CommDeleteAttr(c, bad))
	ctest.Must(t, CommSetAttr(c, stubborn, 80))
	if code := b.Free(CommFree, c); code != 99 || b.Handle != c {
		t.Errorf("free with a failing delete function: code %d, handle %#x", code, b.Handle)
	}
	if get(c, stubborn) != "80" {
		t.Error("the attribute that could not be deleted is gone")
	}
}

func TestPredefinedAttributes(t *testing.T) {
	ctest.Returning(t)
	b := ctest.NewBox()
	for key, want := range map[int]int32{
		abi.TagUb: 1<<31 - 1, abi.Host: abi.ProcNull, abi.Io: abi.AnySource, abi.WtimeIsGlobal: 0, abi.Appnum: 0,
	} {
		ctest.Must(t, CommGetAttr(abi.CommWorld, key, ctest.Addr(&b.Value), ctest.Addr(&b.Flag)))
		if b.Flag != 1 || *cbinding.At[int32](b.Value) != want {
			t.Errorf("attribute %d: flag %d, want %d", key, b.Flag, want)
		}
	}
	ctest.Must(t, environment.AddErrorClass(ctest.Addr(&b.N)))
	ctest.Must(t, CommGetAttr(abi.CommWorld, abi.Lastusedcode, ctest.Addr(&b.Value), ctest.Addr(&b.Flag)))
	if b.Flag != 1 || *cbinding.At[int32](b.Value) != b.N {
		t.Errorf("MPI_LASTUSEDCODE is not %d", b.N)
	}
	ctest.Must(t, environment.RemoveErrorClass(int(b.N)))
	ctest.WantError(t, CommSetAttr(abi.CommWorld, abi.TagUb, 1), abi.ErrKeyval, "501: is predefined")
}
