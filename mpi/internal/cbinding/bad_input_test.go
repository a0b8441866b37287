package cbinding_test

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"runtime/debug"
	"testing"
	"time"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/communicator"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
)

// notCalled are procedures that end MPI or the process, or begin it.
var notCalled = map[string]bool{"Init": true, "InitThread": true, "Finalize": true, "Abort": true, "TInitThread": true,
	"TFinalize": true}

// starts are procedures that start a request if there is memory for it.
var starts = map[string]bool{"GrequestStart": true, "BufferIflush": true}

// TestBadInput calls every procedure with all kinds of wrong arguments: it returns, and nothing panics. With
// a bad handle it returns an error.
func TestBadInput(t *testing.T) {
	ctest.Returning(t)
	cbinding.CallErrhandler = func(_ uintptr, _ abi.Handle, code int) int { return code }
	cbinding.CallCopyAttr = func(fn uintptr, object abi.Handle, keyval int, extra, in uintptr) (uintptr, bool, int) {
		return 0, false, 0
	}
	cbinding.CallDeleteAttr = func(fn uintptr, object abi.Handle, keyval int, value, extra uintptr) int { return 0 }
	cbinding.Allocate = func(n, alignment int) uintptr {
		m := make([]byte, n)
		ctest.OnHeap = append(ctest.OnHeap, m)
		return uintptr(unsafe.Pointer(&m[0]))
	}
	b := ctest.NewBox()
	ctest.Must(t, communicator.CommGroup(abi.CommWorld, ctest.Addr(&b.Handle)))
	freed := b.Handle
	ctest.Must(t, b.Free(communicator.GroupFree, freed))

	memory := make([]uint64, 1<<10)
	ctest.OnHeap = append(ctest.OnHeap, memory)
	handles := []abi.Handle{0, 1, 3000, freed, 1<<31 - 1, 1 << (bits.UintSize / 2), math.MaxUint, abi.CommNull, abi.DatatypeNull, abi.RequestNull,
		abi.InfoNull, abi.OpNull, abi.GroupNull, abi.WinNull, abi.FileNull, abi.MessageNull, abi.ErrhandlerNull, abi.SessionNull}
	scalars := []int{-1, math.MinInt, math.MinInt32, -5, math.MaxInt}
	for name, f := range procedures {
		if notCalled[name] {
			continue
		}
		for _, h := range handles {
			call(t, name, f, h, -1, 0)
			if starts[name] {
				continue
			}
			clear(memory)
			call(t, name, f, h, -1, uintptr(unsafe.Pointer(&memory[0])))
			clear(memory)
			call(t, name, f, h, 1, uintptr(unsafe.Pointer(&memory[0])))
		}
		for _, n := range scalars {
			call(t, name, f, abi.CommNull, n, 0)
			call(t, name, f, abi.CommWorld, n, 0)
			call(t, name, f, abi.Int, n, 0)
		}
	}
}

// call calls f with the same value for all arguments of a kind, and fails if it panics or does not return.
func call(t *testing.T, name string, f any, h abi.Handle, n int, p uintptr) {
	t.Helper()
	typ := reflect.TypeOf(f)
	args := make([]reflect.Value, typ.NumIn())
	bad := false
	for i := range args {
		switch in := typ.In(i); {
		case in == reflect.TypeFor[abi.Handle]():
			args[i] = reflect.ValueOf(h)
			bad = true
		case in.Kind() == reflect.Uintptr:
			args[i] = reflect.ValueOf(p)
			bad = bad || p == 0
		case in.Kind() == reflect.Bool:
			args[i] = reflect.ValueOf(true)
		default:
			args[i] = reflect.ValueOf(n)
		}
	}
	what := fmt.Sprintf("%s with handles %#x, integers %d, pointers %#x", name, uintptr(h), n, p)
	result := make(chan string, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				result <- fmt.Sprintf("panic: %v\n%s", v, debug.Stack())
			}
		}()
		code := reflect.ValueOf(f).Call(args)[0].Int()
		if bad && code == abi.Success && !harmless[name] {
			result <- "no error"
			return
		}
		result <- ""
	}()
	select {
	case s := <-result:
		if s != "" {
			t.Errorf("%s: %s", what, s)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: does not return", what)
	}
}

// harmless are procedures for which MPI_INFO_NULL, MPI_MESSAGE_NULL and the like, or a valid communicator
// without more, are right.
var harmless = map[string]bool{
	"CommGetName": true, "AbiSetFortranInfo": true, "CommCallErrhandler": true, "FileCallErrhandler": true, "Barrier": true,
	"OpenPort": true, "FileGetErrhandler": true, "RequestGetStatus": true, "Parrived": true, "AllocMem": true,
	"WinGetName": true, "TypeGetName": true,
}
