package cbinding

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/abi"
)

// TestMain joins a job of one rank as MPI_Init does: the tests of this package are calls of one program.
func TestMain(m *testing.M) {
	if code := Init(0, 0); code != 0 {
		fmt.Println("MPI_Init:", code)
		os.Exit(1)
	}
	code := m.Run()
	if c := Finalize(); c != 0 && code == 0 {
		fmt.Println("MPI_Finalize:", c)
		code = 1
	}
	os.Exit(code)
}

// returning lets errors on MPI_COMM_WORLD and MPI_COMM_SELF return for the test.
func returning(t *testing.T) {
	t.Helper()
	for _, c := range []Handle{abi.CommWorld, abi.CommSelf} {
		must(t, CommSetErrhandler(c, abi.ErrorsReturn))
	}
	t.Cleanup(func() {
		for _, c := range []Handle{abi.CommWorld, abi.CommSelf} {
			must(t, CommSetErrhandler(c, abi.ErrorsAreFatal))
		}
	})
}

func must(t *testing.T, code int) {
	t.Helper()
	if code != 0 {
		t.Fatal(codeText(code))
	}
}

// wantError checks the class of a call and what the message of its error says.
func wantError(t *testing.T, code, class int, text string) {
	t.Helper()
	if code != class || !strings.Contains(codeText(code), text) {
		t.Errorf("code %d: %s, want %s with %q", code, codeText(code), classText(class), text)
	}
}

// onHeap keeps what addresses are taken of alive, and off the stack, which moves.
var onHeap []any

// addr returns the address of a part of a box.
func addr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// cstring returns the address of s as C has it.
func cstring(s string) uintptr {
	b := append([]byte(s), 0)
	onHeap = append(onHeap, b)
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

// A box holds the results of calls. It is on the heap.
type box struct {
	n, flag int32
	long    int64
	handle  Handle
	value   uintptr
	text    [1024]byte
	ints    [16]int32
}

func newBox() *box {
	b := new(box)
	onHeap = append(onHeap, b)
	return b
}

// free calls a function that frees a handle.
func (b *box) free(f func(uintptr) int, h Handle) int {
	b.handle = h
	return f(addr(&b.handle))
}

func (b *box) string() string { return string(b.text[:slices.Index(b.text[:], 0)]) }

func TestCommunicators(t *testing.T) {
	returning(t)
	b := newBox()
	must(t, CommRank(abi.CommWorld, addr(&b.n)))
	must(t, CommSize(abi.CommWorld, addr(&b.flag)))
	if b.n != 0 || b.flag != 1 {
		t.Fatalf("rank %d of %d", b.n, b.flag)
	}
	must(t, CommGetName(abi.CommWorld, addr(&b.text), addr(&b.n)))
	if b.string() != "MPI_COMM_WORLD" || b.n != 14 {
		t.Errorf("name %q of %d", b.string(), b.n)
	}
	must(t, CommDup(abi.CommWorld, addr(&b.handle)))
	d := b.handle
	must(t, CommCompare(abi.CommWorld, d, addr(&b.n)))
	if b.n != abi.Congruent {
		t.Errorf("a duplicate compares as %d", b.n)
	}
	must(t, CommSplit(d, abi.Undefined, 0, addr(&b.handle)))
	if b.handle != abi.CommNull {
		t.Errorf("split of MPI_UNDEFINED gives %#x", b.handle)
	}
	must(t, CommSplitType(d, abi.CommTypeShared, 0, abi.InfoNull, addr(&b.handle)))
	must(t, CommFree(addr(&b.handle)))
	must(t, CommGroup(d, addr(&b.handle)))
	g := b.handle
	must(t, CommCreate(d, g, addr(&b.handle)))
	must(t, CommFree(addr(&b.handle)))
	must(t, CommCreate(d, abi.GroupEmpty, addr(&b.handle)))
	if b.handle != abi.CommNull {
		t.Errorf("create with an empty group gives %#x", b.handle)
	}
	must(t, CommCreateGroup(d, g, 3, addr(&b.handle)))
	must(t, CommFree(addr(&b.handle)))
	must(t, b.free(GroupFree, g))
	must(t, CommTestInter(d, addr(&b.flag)))
	if b.flag != 0 {
		t.Error("a duplicate of the world is an intercommunicator")
	}

	wantError(t, CommRank(abi.CommNull, addr(&b.n)), abi.ErrComm, "MPI_Comm_rank: communicator 0x100: is the null handle")
	wantError(t, CommRank(abi.CommWorld, 0), abi.ErrArg, "NULL")
	wantError(t, CommSize(g, addr(&b.n)), abi.ErrComm, "handle of a group")
	wantError(t, CommSplit(d, -5, 0, addr(&b.handle)), abi.ErrArg, "color -5: is negative")
	wantError(t, CommSplitType(d, 7, 0, abi.InfoNull, addr(&b.handle)), abi.ErrArg, "split_type 7")
	wantError(t, CommRemoteSize(d, addr(&b.n)), abi.ErrComm, "no intercommunicator")
	must(t, CommSetName(d, cstring(strings.Repeat("x", 200))))
	must(t, CommGetName(d, addr(&b.text), addr(&b.n)))
	if b.n != abi.MaxObjectName-1 {
		t.Errorf("a long name is cut to %d", b.n)
	}
	wantError(t, IntercommCreate(d, 4, d, 0, 1, addr(&b.handle)), abi.ErrRank, "local_leader 4")
	wantError(t, b.free(CommFree, abi.CommWorld), abi.ErrComm, "MPI_COMM_WORLD: cannot be freed")
	must(t, b.free(CommFree, d))
	if b.handle != abi.CommNull {
		t.Errorf("freed handle %#x", b.handle)
	}
	wantError(t, CommRank(d, addr(&b.n)), abi.ErrComm, "has been freed")
}

func TestGroupsOfC(t *testing.T) {
	returning(t)
	b := newBox()
	must(t, CommGroup(abi.CommWorld, addr(&b.handle)))
	g := b.handle
	b.ints = [16]int32{0}
	must(t, GroupIncl(g, 1, addr(&b.ints), addr(&b.handle)))
	h := b.handle
	must(t, GroupCompare(g, h, addr(&b.n)))
	if b.n != abi.Ident {
		t.Errorf("equal groups compare as %d", b.n)
	}
	must(t, GroupExcl(g, 1, addr(&b.ints), addr(&b.handle)))
	if b.handle != abi.GroupEmpty {
		t.Errorf("a group without members is %#x", b.handle)
	}
	must(t, GroupFree(addr(&b.handle)))
	must(t, GroupSize(abi.GroupEmpty, addr(&b.n)))
	must(t, GroupRank(abi.GroupEmpty, addr(&b.flag)))
	if b.n != 0 || b.flag != abi.Undefined {
		t.Errorf("empty group: size %d, rank %d", b.n, b.flag)
	}
	b.ints = [16]int32{0, 1, 2, abi.ProcNull}
	must(t, GroupRangeIncl(g, 1, addr(&b.ints), addr(&b.handle))) // 1 is no rank, but the stride passes it
	must(t, GroupSize(b.handle, addr(&b.n)))
	if b.n != 1 {
		t.Errorf("range of %d", b.n)
	}
	must(t, GroupTranslateRanks(g, 1, addr(&b.ints), h, addr(&b.ints[8])))
	must(t, GroupTranslateRanks(g, 1, addr(&b.ints), abi.GroupEmpty, addr(&b.ints[9])))
	must(t, GroupTranslateRanks(g, 1, addr(&b.ints[3]), h, addr(&b.ints[10])))
	if got := b.ints[8:11]; !slices.Equal(got, []int32{0, abi.Undefined, abi.ProcNull}) {
		t.Errorf("translated ranks %d", got)
	}
	b.ints = [16]int32{0, 0, 3}
	wantError(t, GroupIncl(g, 2, addr(&b.ints), addr(&b.handle)), abi.ErrRank, "ranks[1] 0: is there twice")
	wantError(t, GroupIncl(g, 3, addr(&b.ints[2]), addr(&b.handle)), abi.ErrRank, "ranks[0] 3: is no rank of a group of 1")
	wantError(t, GroupIncl(g, -1, addr(&b.ints[2]), addr(&b.handle)), abi.ErrArg, "n -1: is negative")
	wantError(t, GroupIncl(g, 1, 0, addr(&b.handle)), abi.ErrArg, "ranks NULL")
	b.ints = [16]int32{0, 0, 0}
	wantError(t, GroupRangeIncl(g, 1, addr(&b.ints), addr(&b.handle)), abi.ErrArg, "stride of 0")
	b.ints = [16]int32{0, 1 << 30, 1}
	wantError(t, GroupRangeExcl(g, 1, addr(&b.ints), addr(&b.handle)), abi.ErrRank, "ranges[0] 1: is no rank")
	wantError(t, GroupSize(abi.GroupNull, addr(&b.n)), abi.ErrGroup, "null handle")
}
