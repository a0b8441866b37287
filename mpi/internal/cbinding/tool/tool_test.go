package tool

import (
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
	"github.com/weftstack/weft/mpi/internal/cbinding/pointtopoint"
)

// withTool uses the tool information interface for a test.
func withTool(t *testing.T) {
	t.Helper()
	ctest.Must(t, TInitThread(abi.ThreadMultiple, ctest.Heap[int32](0)))
	t.Cleanup(func() { ctest.Must(t, TFinalize()) })
}

func wantCode(t *testing.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%s: code %d (%s), want %s", what, got, cbinding.ClassText(got), cbinding.ClassText(want))
	}
}

func TestToolNeedsInit(t *testing.T) {
	for what, code := range map[string]int{
		"TFinalize": TFinalize(), "TCvarGetNum": TCvarGetNum(0), "TPvarGetNum": TPvarGetNum(0),
		"TCategoryGetNum": TCategoryGetNum(0), "TEnumGetInfo": TEnumGetInfo(1, 0, 0, 0), "TEventGetNum": TEventGetNum(0),
		"TPvarSessionCreate": TPvarSessionCreate(0), "TPvarStart": TPvarStart(0, 0), "TSourceGetTimestamp": TSourceGetTimestamp(0, 0),
	} {
		wantCode(t, what, code, abi.TErrNotInitialized)
	}
}

// TestControlVariables reads all variables, by their index and name, and writes those that can be
// written.
func TestControlVariables(t *testing.T) {
	withTool(t)
	b := ctest.NewBox()
	ctest.Must(t, TCvarGetNum(ctest.Addr(&b.N)))
	all := int(b.N)
	values := make(map[string]any)
	buf := ctest.Heap(make([]byte, tuningCount)...)
	comm := ctest.Heap[abi.Handle](abi.CommWorld)
	for i := range all {
		b.N = int32(len(b.Text))
		typ, enum, bind, scope := ctest.Heap[abi.Handle](0), ctest.Heap[abi.Handle](9), ctest.Heap[int32](0), ctest.Heap[int32](0)
		ctest.Must(t, TCvarGetInfo(i, ctest.Addr(&b.Text[0]), ctest.Addr(&b.N), ctest.Heap[int32](0), typ, enum, ctest.Heap(make([]byte, 200)...), ctest.Heap[int32](200), bind, scope))
		name := b.String()
		if int(b.N) != len(name)+1 {
			t.Errorf("%s: length %d", name, b.N)
		}
		ctest.Must(t, TCvarGetIndex(ctest.CString(name), ctest.Addr(&b.N)))
		if int(b.N) != i {
			t.Errorf("index of %s is %d, want %d", name, b.N, i)
		}
		ctest.Must(t, TCvarHandleAlloc(i, comm, ctest.Addr(&b.Handle), ctest.Addr(&b.N)))
		ctest.Must(t, TCvarRead(b.Handle, buf))
		switch *cbinding.At[abi.Handle](typ) {
		case abi.Char:
			s, err := cbinding.Str("", buf, int(b.N))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			values[name] = s
		case abi.Int:
			ctest.Must(t, TEnumGetItem(*cbinding.At[abi.Handle](enum), int(*cbinding.At[int32](buf)), 0, ctest.Addr(&b.Text[0]), ctest.Heap[int32](100)))
			values[name] = b.String()
		default:
			values[name] = *cbinding.At[uint64](buf)
		}
		want := abi.TErrCvarSetNever
		if *cbinding.At[int32](bind) == abi.TBindMpiComm {
			want = 0
		}
		wantCode(t, "writing "+name, TCvarWrite(b.Handle, buf), want)
		ctest.Must(t, TCvarHandleFree(ctest.Addr(&b.Handle)))
	}
	for name, want := range map[string]any{
		"WEFT_EAGER": uint64(mpi.DefaultEager), "WEFT_STREAMS": uint64(mpi.DefaultStreams), "WEFT_RENDEZVOUS": "message",
		"weft_coll": cbinding.Comms.Get(abi.CommWorld).Tuning().String(),
	} {
		if values[name] != want {
			t.Errorf("%s is %v, want %v", name, values[name], want)
		}
	}
	table := values["weft_coll"].(string)
	ctest.Must(t, TCvarGetIndex(ctest.CString("weft_coll"), ctest.Addr(&b.N)))
	ctest.Must(t, TCvarHandleAlloc(int(b.N), comm, ctest.Addr(&b.Handle), ctest.Addr(&b.Flag)))
	ctest.Must(t, TCvarWrite(b.Handle, ctest.CString(table+"bcast linear 7 77\n")))
	if got := cbinding.Comms.Get(abi.CommWorld).Tuning().String(); len(strings.Split(got, "\n")) != len(strings.Split(table, "\n"))+1 {
		t.Errorf("want one more rule:\n%s", got)
	}
	wantCode(t, "no rule", TCvarWrite(b.Handle, ctest.CString("bcast by pigeon")), abi.TErrInvalid)
	cbinding.Comms.Get(abi.CommWorld).SetTuning(nil)
	h := b.Handle
	ctest.Must(t, TCvarHandleFree(ctest.Addr(&b.Handle)))
	wantCode(t, "reading a freed handle", TCvarRead(h, buf), abi.TErrInvalidHandle)
	wantCode(t, "freeing no handle", TCvarHandleFree(ctest.Addr(&b.Handle)), abi.TErrInvalidHandle)
	wantCode(t, "index", TCvarGetInfo(all, 0, 0, 0, 0, 0, 0, 0, 0, 0), abi.TErrInvalidIndex)
	wantCode(t, "index", TCvarHandleAlloc(-1, 0, ctest.Addr(&b.Handle), ctest.Addr(&b.N)), abi.TErrInvalidIndex)
	wantCode(t, "name", TCvarGetIndex(ctest.CString("WEFT_NOTHING"), ctest.Addr(&b.N)), abi.TErrInvalidName)
	b.N = 4
	ctest.Must(t, TCvarGetInfo(0, ctest.Addr(&b.Text[0]), ctest.Addr(&b.N), 0, 0, 0, 0, 0, 0, 0))
	if b.String() != "WEF" || b.N != 4 {
		t.Errorf("%q of length %d in 4 bytes", b.String(), b.N)
	}
	ctest.Must(t, TCvarGetInfo(0, 0, ctest.Addr(&b.N), 0, 0, 0, 0, 0, 0, 0))
	if int(b.N) != len("WEFT_TRANSPORT")+1 {
		t.Errorf("a name needs %d bytes", b.N)
	}
}

// TestPerformanceVariables counts messages of the process to itself with two handles.
func TestPerformanceVariables(t *testing.T) {
	withTool(t)
	ctest.Returning(t)
	b := ctest.NewBox()
	message := func(n int) {
		mem := ctest.Heap(make([]byte, 100)...)
		for range n {
			ctest.Must(t, pointtopoint.Isend(mem, 10, abi.Byte, 0, 3, abi.CommSelf, ctest.Addr(&b.Handle)))
			ctest.Must(t, pointtopoint.Recv(mem+50, 10, abi.Byte, 0, 3, abi.CommSelf, abi.StatusIgnore))
			ctest.Must(t, pointtopoint.Wait(ctest.Addr(&b.Handle), abi.StatusIgnore))
		}
	}
	ctest.Must(t, TPvarSessionCreate(ctest.Addr(&b.Handle)))
	session := b.Handle
	alloc := func(name string, class int) abi.Handle {
		t.Helper()
		ctest.Must(t, TPvarGetIndex(ctest.CString(name), class, ctest.Addr(&b.N)))
		ctest.Must(t, TPvarHandleAlloc(session, int(b.N), 0, ctest.Addr(&b.Handle), ctest.Addr(&b.Flag)))
		return b.Handle
	}
	count, bytes := alloc("weft_messages", abi.TPvarClassCounter), alloc("weft_messages_bytes", abi.TPvarClassAggregate)
	level := alloc("weft_posted_receives", abi.TPvarClassLevel)
	value := ctest.Heap[uint64](0)
	want := func(h abi.Handle, want uint64) {
		t.Helper()
		ctest.Must(t, TPvarRead(session, h, value))
		if got := *cbinding.At[uint64](value); got != want {
			t.Errorf("value %d, want %d", got, want)
		}
	}
	message(2)
	want(count, 0) // not started
	ctest.Must(t, TPvarStart(session, count))
	message(3)
	ctest.Must(t, TPvarStart(session, abi.TPvarAllHandles))
	message(2)
	want(count, 5)
	want(bytes, 20)
	ctest.Must(t, TPvarStop(session, count))
	message(1)
	want(count, 5)
	want(bytes, 30)
	ctest.Must(t, TPvarReadreset(session, bytes, value))
	want(bytes, 0)
	*cbinding.At[uint64](value) = 1000
	ctest.Must(t, TPvarWrite(session, count, value))
	ctest.Must(t, TPvarStart(session, count))
	message(1)
	want(count, 1001)
	ctest.Must(t, TPvarReset(session, abi.TPvarAllHandles))
	want(count, 0)
	want(level, 0)
	wantCode(t, "start of a level", TPvarStart(session, level), abi.TErrPvarNoStartstop)
	wantCode(t, "write of a level", TPvarWrite(session, level, value), abi.TErrPvarNoWrite)
	wantCode(t, "reset of a level", TPvarReset(session, level), abi.TErrPvarNoWrite)
	wantCode(t, "readreset of a level", TPvarReadreset(session, level, value), abi.TErrPvarNoAtomic)
	wantCode(t, "read of all", TPvarRead(session, abi.TPvarAllHandles, value), abi.TErrInvalidHandle)
	wantCode(t, "readreset of all", TPvarReadreset(session, abi.TPvarAllHandles, value), abi.TErrInvalidHandle)
	wantCode(t, "null session", TPvarRead(abi.TPvarSessionNull, count, value), abi.TErrInvalidSession)
	wantCode(t, "wrong class", TPvarGetIndex(ctest.CString("weft_messages"), abi.TPvarClassTimer, ctest.Addr(&b.N)), abi.TErrInvalidName)
	ctest.Must(t, TPvarSessionCreate(ctest.Addr(&b.Handle)))
	other := b.Handle
	wantCode(t, "handle of another session", TPvarRead(other, count, value), abi.TErrInvalidHandle)
	b.Handle = count
	ctest.Must(t, TPvarHandleFree(session, ctest.Addr(&b.Handle)))
	wantCode(t, "freed handle", TPvarRead(session, count, value), abi.TErrInvalidHandle)
	b.Handle = session
	ctest.Must(t, TPvarSessionFree(ctest.Addr(&b.Handle)))
	wantCode(t, "freed session", TPvarSessionFree(ctest.Addr(&b.Handle)), abi.TErrInvalidSession)
	wantCode(t, "handle of a freed session", TPvarRead(session, bytes, value), abi.TErrInvalidSession)
	wantCode(t, "index", TPvarGetInfo(len(pvars), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), abi.TErrInvalidIndex)
}

// TestCategories finds each variable in one category.
func TestCategories(t *testing.T) {
	withTool(t)
	b := ctest.NewBox()
	ctest.Must(t, TCategoryGetNum(ctest.Addr(&b.N)))
	n := int(b.N)
	found := make(map[[2]int]int)
	for i := range n {
		c := ctest.Heap[int32](0, 0, 0)
		ctest.Must(t, TCategoryGetInfo(i, ctest.Addr(&b.Text[0]), ctest.Heap[int32](100), 0, 0, c, c+4, c+8))
		ctest.Must(t, TCategoryGetIndex(ctest.Addr(&b.Text[0]), ctest.Addr(&b.N)))
		if int(b.N) != i {
			t.Errorf("index of %s is %d, want %d", b.String(), b.N, i)
		}
		for kind, get := range []func(int, int, uintptr) int{TCategoryGetCvars, TCategoryGetPvars, TCategoryGetCategories} {
			count := int(cbinding.Array[int32](c, 3)[kind])
			list := ctest.Heap(make([]int32, 50)...)
			ctest.Must(t, get(i, 50, list))
			for _, x := range cbinding.Array[int32](list, count) {
				found[[2]int{kind, int(x)}]++
			}
		}
	}
	if want := len(cvars) + len(pvars) + n - 1; len(found) != want {
		t.Errorf("%d variables and categories in categories, want %d", len(found), want)
	}
	for what, times := range found {
		if times != 1 {
			t.Errorf("%v is in %d categories", what, times)
		}
	}
	wantCode(t, "index", TCategoryGetInfo(n, 0, 0, 0, 0, 0, 0, 0), abi.TErrInvalidIndex)
	wantCode(t, "item", TEnumGetItem(transportEnum.handle, 3, 0, 0, 0), abi.TErrInvalidItem)
	wantCode(t, "enum", TEnumGetInfo(99, 0, 0, 0), abi.TErrInvalidHandle)
	wantCode(t, "event", TEventHandleAlloc(0, 0, abi.InfoNull, ctest.Addr(&b.Handle)), abi.TErrInvalidIndex)
	wantCode(t, "event name", TEventGetIndex(ctest.CString("x"), ctest.Addr(&b.N)), abi.TErrInvalidName)
	wantCode(t, "source", TSourceGetTimestamp(0, ctest.Addr(&b.Long)), abi.TErrInvalidIndex)
}
