package cbinding

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// logCallbacks lets the C functions with even addresses write to a log; those with odd ones fail with
// code 99.
func logCallbacks(t *testing.T) *[]string {
	var log []string
	CallCopyAttr = func(fn uintptr, object Handle, keyval int, extra, in uintptr) (uintptr, bool, int) {
		log = append(log, fmt.Sprintf("copy %d %d", extra, in))
		return in + 1, fn != 0x4000, 99 * int(fn&1)
	}
	CallDeleteAttr = func(fn uintptr, object Handle, keyval int, value, extra uintptr) int {
		log = append(log, fmt.Sprintf("delete %d %d", extra, value))
		return 99 * int(fn&1)
	}
	t.Cleanup(func() { CallCopyAttr, CallDeleteAttr = nil, nil })
	return &log
}

func TestAttributesOfC(t *testing.T) {
	returning(t)
	log := logCallbacks(t)
	b := newBox()
	key := func(copyFn, deleteFn, extra uintptr) int {
		must(t, CommCreateKeyval(copyFn, deleteFn, addr(&b.n), extra))
		return int(b.n)
	}
	must(t, CommDup(abi.CommWorld, addr(&b.handle)))
	c := b.handle
	copied, dup, none, never := key(0x1000, 0x2000, 1), key(abi.CommDupFn, 0x2000, 2), key(0, 0, 3), key(0x4000, 0x2000, 4)
	for i, k := range []int{copied, dup, none, never} {
		must(t, CommSetAttr(c, k, uintptr(10*(i+1))))
	}
	get := func(c Handle, k int) string {
		t.Helper()
		must(t, CommGetAttr(c, k, addr(&b.value), addr(&b.flag)))
		if b.flag == 0 {
			return "none"
		}
		return fmt.Sprint(b.value)
	}
	must(t, CommDup(c, addr(&b.handle)))
	d := b.handle
	got := fmt.Sprint(get(c, copied), get(d, copied), get(d, dup), get(c, none), get(d, none), get(d, never))
	if want := fmt.Sprint("10", "11", "20", "30", "none", "none"); got != want {
		t.Errorf("values %s, want %s", got, want)
	}
	must(t, CommSetAttr(c, copied, 50)) // drops 10
	must(t, b.free(CommFree, d))        // drops 20, then 11
	want := []string{"copy 1 10", "copy 4 40", "delete 1 10", "delete 2 20", "delete 1 11"}
	if !slices.Equal(*log, want) {
		t.Errorf("calls %q, want %q", *log, want)
	}

	*log = nil
	must(t, CommDeleteAttr(c, none))
	b.n = int32(copied)
	must(t, CommFreeKeyval(addr(&b.n)))
	if b.n != abi.KeyvalInvalid {
		t.Errorf("freed key %d", b.n)
	}
	// The number is good for deleting what is there, and then no more.
	if got := get(c, copied); got != "50" {
		t.Errorf("value under a freed key %s", got)
	}
	must(t, CommDeleteAttr(c, copied))
	wantError(t, CommSetAttr(c, copied, 1), abi.ErrKeyval, "has been freed")
	wantError(t, CommDeleteAttr(c, abi.TagUb), abi.ErrKeyval, "predefined")
	wantError(t, CommDeleteAttr(c, abi.KeyvalInvalid), abi.ErrKeyval, "MPI_KEYVAL_INVALID")
	wantError(t, TypeSetAttr(abi.Int, dup, 1), abi.ErrKeyval, "is a key of communicators, not datatypes")

	// A function that fails decides the code of the call, and nothing is copied or deleted.
	bad, stubborn := key(0x1001, 0x2000, 5), key(0, 0x2001, 6)
	must(t, CommSetAttr(c, bad, 70))
	b.handle = 12345
	if code := CommDup(c, addr(&b.handle)); code != 99 || b.handle != abi.CommNull {
		t.Errorf("duplicate with a failing copy function: code %d, handle %#x", code, b.handle)
	}
	must(t, CommDeleteAttr(c, bad))
	must(t, CommSetAttr(c, stubborn, 80))
	if code := b.free(CommFree, c); code != 99 || b.handle != c {
		t.Errorf("free with a failing delete function: code %d, handle %#x", code, b.handle)
	}
	if get(c, stubborn) != "80" {
		t.Error("the attribute that could not be deleted is gone")
	}
}

func TestPredefinedAttributes(t *testing.T) {
	returning(t)
	b := newBox()
	for key, want := range map[int]int32{
		abi.TagUb: 1<<31 - 1, abi.Host: abi.ProcNull, abi.Io: abi.AnySource, abi.WtimeIsGlobal: 0, abi.Appnum: 0,
	} {
		must(t, CommGetAttr(abi.CommWorld, key, addr(&b.value), addr(&b.flag)))
		if b.flag != 1 || *at[int32](b.value) != want {
			t.Errorf("attribute %d: flag %d, want %d", key, b.flag, want)
		}
	}
	must(t, AddErrorClass(addr(&b.n)))
	must(t, CommGetAttr(abi.CommWorld, abi.Lastusedcode, addr(&b.value), addr(&b.flag)))
	if b.flag != 1 || *at[int32](b.value) != b.n {
		t.Errorf("MPI_LASTUSEDCODE is not %d", b.n)
	}
	must(t, RemoveErrorClass(int(b.n)))
	wantError(t, CommSetAttr(abi.CommWorld, abi.TagUb, 1), abi.ErrKeyval, "501: is predefined")
}
