package cbinding_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
	"github.com/weftstack/weft/mpi/internal/standard"
)

// nulls are the null handles, by the kind of a parameter.
var nulls = map[string]abi.Handle{
	"COMMUNICATOR": abi.CommNull, "DATATYPE": abi.DatatypeNull, "GROUP": abi.GroupNull, "INFO": abi.InfoNull, "OPERATION": abi.OpNull,
	"WINDOW": abi.WinNull, "FILE": abi.FileNull, "SESSION": abi.SessionNull, "ERRHANDLER": abi.ErrhandlerNull, "MESSAGE": abi.MessageNull,
}

// TestFailedCallsStoreTheNullHandle makes every call that returns a new handle fail, by bad handles and numbers and by
// NULL for the other pointers: it stores the null handle.
func TestFailedCallsStoreTheNullHandle(t *testing.T) {
	ctest.Returning(t)
	old := cbinding.CallErrhandler
	cbinding.CallErrhandler = func(_ uintptr, _ abi.Handle, code int) int { return code }
	defer func() { cbinding.CallErrhandler = old }()
	zeros := make([]uint64, 1<<10)
	result := new([16]abi.Handle)
	ctest.OnHeap = append(ctest.OnHeap, zeros, result)
	const before = abi.Handle(0x5ee7)
	tried := 0
	for _, p := range standard.Procedures() {
		name := strings.ReplaceAll(strings.TrimPrefix(p.Name, "MPI_"), "_", " ")
		name = strings.ReplaceAll(strings.Title(name), " ", "") //nolint:staticcheck // ASCII names
		f, ok := procedures[name]
		if !ok || notCalled[name] || strings.HasPrefix(p.Name, "MPI_T_") {
			continue
		}
		typ := reflect.TypeOf(f)
		for _, others := range []uintptr{0, uintptr(unsafe.Pointer(&zeros[0]))} {
			var want []abi.Handle
			args := make([]reflect.Value, typ.NumIn())
			i := 0
			for _, param := range p.Params {
				if i == len(args) || param.Name == "ierror" {
					break
				}
				switch in := typ.In(i); {
				case in == reflect.TypeFor[abi.Handle]():
					args[i] = reflect.ValueOf(abi.Handle(math.MaxUint))
				case in.Kind() == reflect.Uintptr && param.Direction == "out" && param.Array == "" && nulls[param.Kind] != 0:
					result[i] = before
					args[i] = reflect.ValueOf(uintptr(unsafe.Pointer(&result[i])))
					want = append(want, nulls[param.Kind])
				case in.Kind() == reflect.Uintptr:
					args[i] = reflect.ValueOf(others)
				case in.Kind() == reflect.Bool:
					args[i] = reflect.ValueOf(true)
				default:
					args[i] = reflect.ValueOf(-1)
				}
				i++
			}
			for ; i < len(args); i++ {
				args[i] = reflect.Zero(typ.In(i))
			}
			if want == nil {
				break
			}
			got := make([]abi.Handle, 0, 1)
			clear(zeros)
			if code := reflect.ValueOf(f).Call(args)[0].Int(); code == abi.Success {
				continue
			}
			tried++
			for j := range args {
				if args[j].CanUint() && uintptr(args[j].Uint()) == uintptr(unsafe.Pointer(&result[j%16])) {
					got = append(got, result[j])
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s with other pointers %#x: handles %#x, want %#x", p.Name, others, got, want)
			}
		}
	}
	t.Logf("%d calls have failed", tried)
	if tried < 100 {
		t.Errorf("only %d calls have failed", tried)
	}
}
