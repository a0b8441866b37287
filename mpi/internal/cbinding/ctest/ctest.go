// Package ctest calls procedures as a C program does, in the tests of the chapters of cbinding: with results
// in memory that stays where it is, and with the text of errors.
package ctest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/environment"
)

// Main joins a job of one rank as MPI_Init does: the tests of a package are calls of one program.
func Main(m *testing.M) {
	if code := environment.Init(0, 0); code != 0 {
		fmt.Println("MPI_Init:", code)
		os.Exit(1)
	}
	code := m.Run()
	if c := environment.Finalize(); c != 0 && code == 0 {
		fmt.Println("MPI_Finalize:", c)
		code = 1
	}
	os.Exit(code)
}

// Returning lets errors on MPI_COMM_WORLD and MPI_COMM_SELF return for the test.
func Returning(t *testing.T) {
	t.Helper()
	for _, c := range []abi.Handle{abi.CommWorld, abi.CommSelf} {
		Must(t, environment.CommSetErrhandler(c, abi.ErrorsReturn))
	}
	t.Cleanup(func() {
		for _, c := range []abi.Handle{abi.CommWorld, abi.CommSelf} {
			Must(t, environment.CommSetErrhandler(c, abi.ErrorsAreFatal))
		}
	})
}

// Must fails the test if a call has returned an error.
func Must(t *testing.T, code int) {
	t.Helper()
	if code != 0 {
		t.Fatal(cbinding.CodeText(code))
	}
}

// WantError checks the class of a call and what the message of its error says.
func WantError(t *testing.T, code, class int, text string) {
	t.Helper()
	if code != class || !strings.Contains(cbinding.CodeText(code), text) {
		t.Errorf("code %d: %s, want %s with %q", code, cbinding.CodeText(code), cbinding.ClassText(class), text)
	}
}

// OnHeap keeps what addresses are taken of alive, and off the stack, which moves.
var OnHeap []any

// Addr returns the address of a part of a box.
func Addr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// CString returns the address of s as C has it.
func CString(s string) uintptr {
	b := append([]byte(s), 0)
	OnHeap = append(OnHeap, b)
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

// A Box holds the results of calls. It is on the heap.
type Box struct {
	N, Flag int32
	Long    int64
	Handle  abi.Handle
	Value   uintptr
	Text    [1024]byte
	Ints    [16]int32
}

// NewBox returns a box that stays where it is.
func NewBox() *Box {
	b := new(Box)
	OnHeap = append(OnHeap, b)
	return b
}

// Free calls a function that frees a handle.
func (b *Box) Free(f func(uintptr) int, h abi.Handle) int {
	b.Handle = h
	return f(Addr(&b.Handle))
}

// String returns the string of C in the box.
func (b *Box) String() string { return string(b.Text[:slices.Index(b.Text[:], 0)]) }

// Heap returns the address of a copy of values, off the stack.
func Heap[T any](values ...T) uintptr {
	v := slices.Clone(values)
	OnHeap = append(OnHeap, v)
	return uintptr(unsafe.Pointer(unsafe.SliceData(v)))
}
