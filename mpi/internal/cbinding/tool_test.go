package cbinding

import (
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// withTool uses the tool information interface for a test.
func withTool(t *testing.T) {
	t.Helper()
	must(t, TInitThread(abi.ThreadMultiple, heap[int32](0)))
	t.Cleanup(func() { must(t, TFinalize()) })
}

func wantCode(t *testing.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%s: code %d (%s), want %s", what, got, classText(got), classText(want))
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
	b := newBox()
	must(t, TCvarGetNum(addr(&b.n)))
	all := int(b.n)
	values := make(map[string]any)
	buf := heap(make([]byte, tuningCount)...)
	comm := heap[Handle](abi.CommWorld)
	for i := range all {
		b.n = int32(len(b.text))
		typ, enum, bind, scope := heap[Handle](0), heap[Handle](9), heap[int32](0), heap[int32](0)
		must(t, TCvarGetInfo(i, addr(&b.text[0]), addr(&b.n), heap[int32](0), typ, enum, heap(make([]byte, 200)...), heap[int32](200), bind, scope))
		name := b.string()
		if int(b.n) != len(name)+1 {
			t.Errorf("%s: length %d", name, b.n)
		}
		must(t, TCvarGetIndex(cstring(name), addr(&b.n)))
		if int(b.n) != i {
			t.Errorf("index of %s is %d, want %d", name, b.n, i)
		}
		must(t, TCvarHandleAlloc(i, comm, addr(&b.handle), addr(&b.n)))
		must(t, TCvarRead(b.handle, buf))
		switch *at[Handle](typ) {
		case abi.Char:
			s, err := str("", buf, int(b.n))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			values[name] = s
		case abi.Int:
			must(t, TEnumGetItem(*at[Handle](enum), int(*at[int32](buf)), 0, addr(&b.text[0]), heap[int32](100)))
			values[name] = b.string()
		default:
			values[name] = *at[uint64](buf)
		}
		want := abi.TErrCvarSetNever
		if *at[int32](bind) == abi.TBindMpiComm {
			want = 0
		}
		wantCode(t, "writing "+name, TCvarWrite(b.handle, buf), want)
		must(t, TCvarHandleFree(addr(&b.handle)))
	}
	for name, want := range map[string]any{
		"WEFT_EAGER": uint64(mpi.DefaultEager), "WEFT_STREAMS": uint64(mpi.DefaultStreams), "WEFT_RENDEZVOUS": "message",
		"weft_coll": comms.get(abi.CommWorld).Tuning().String(),
	} {
		if values[name] != want {
			t.Errorf("%s is %v, want %v", name, values[name], want)
		}
	}
	table := values["weft_coll"].(string)
	must(t, TCvarGetIndex(cstring("weft_coll"), addr(&b.n)))
	must(t, TCvarHandleAlloc(int(b.n), comm, addr(&b.handle), addr(&b.flag)))
	must(t, TCvarWrite(b.handle, cstring(table+"bcast linear 7 77\n")))
	if got := comms.get(abi.CommWorld).Tuning().String(); len(strings.Split(got, "\n")) != len(strings.Split(table, "\n"))+1 {
		t.Errorf("want one more rule:\n%s", got)
	}
	wantCode(t, "no rule", TCvarWrite(b.handle, cstring("bcast by pigeon")), abi.TErrInvalid)
	comms.get(abi.CommWorld).SetTuning(nil)
	h := b.handle
	must(t, TCvarHandleFree(addr(&b.handle)))
	wantCode(t, "reading a freed handle", TCvarRead(h, buf), abi.TErrInvalidHandle)
	wantCode(t, "freeing no handle", TCvarHandleFree(addr(&b.handle)), abi.TErrInvalidHandle)
	wantCode(t, "index", TCvarGetInfo(all, 0, 0, 0, 0, 0, 0, 0, 0, 0), abi.TErrInvalidIndex)
	wantCode(t, "index", TCvarHandleAlloc(-1, 0, addr(&b.handle), addr(&b.n)), abi.TErrInvalidIndex)
	wantCode(t, "name", TCvarGetIndex(cstring("WEFT_NOTHING"), addr(&b.n)), abi.TErrInvalidName)
	b.n = 4
	must(t, TCvarGetInfo(0, addr(&b.text[0]), addr(&b.n), 0, 0, 0, 0, 0, 0, 0))
	if b.string() != "WEF" || b.n != 4 {
		t.Errorf("%q of length %d in 4 bytes", b.string(), b.n)
	}
	must(t, TCvarGetInfo(0, 0, addr(&b.n), 0, 0, 0, 0, 0, 0, 0))
	if int(b.n) != len("WEFT_TRANSPORT")+1 {
		t.Errorf("a name needs %d bytes", b.n)
	}
}

// TestPerformanceVariables counts messages of the process to itself with two handles.
func TestPerformanceVariables(t *testing.T) {
	withTool(t)
	returning(t)
	b := newBox()
	message := func(n int) {
		mem := heap(make([]byte, 100)...)
		for range n {
			must(t, Isend(mem, 10, abi.Byte, 0, 3, abi.CommSelf, addr(&b.handle)))
			must(t, Recv(mem+50, 10, abi.Byte, 0, 3, abi.CommSelf, abi.StatusIgnore))
			must(t, Wait(addr(&b.handle), abi.StatusIgnore))
		}
	}
	must(t, TPvarSessionCreate(addr(&b.handle)))
	session := b.handle
	alloc := func(name string, class int) Handle {
		t.Helper()
		must(t, TPvarGetIndex(cstring(name), class, addr(&b.n)))
		must(t, TPvarHandleAlloc(session, int(b.n), 0, addr(&b.handle), addr(&b.flag)))
		return b.handle
	}
	count, bytes := alloc("weft_messages", abi.TPvarClassCounter), alloc("weft_messages_bytes", abi.TPvarClassAggregate)
	level := alloc("weft_posted_receives", abi.TPvarClassLevel)
	value := heap[uint64](0)
	want := func(h Handle, want uint64) {
		t.Helper()
		must(t, TPvarRead(session, h, value))
		if got := *at[uint64](value); got != want {
			t.Errorf("value %d, want %d", got, want)
		}
	}
	message(2)
	want(count, 0) // not started
	must(t, TPvarStart(session, count))
	message(3)
	must(t, TPvarStart(session, abi.TPvarAllHandles))
	message(2)
	want(count, 5)
	want(bytes, 20)
	must(t, TPvarStop(session, count))
	message(1)
	want(count, 5)
	want(bytes, 30)
	must(t, TPvarReadreset(session, bytes, value))
	want(bytes, 0)
	*at[uint64](value) = 1000
	must(t, TPvarWrite(session, count, value))
	must(t, TPvarStart(session, count))
	message(1)
	want(count, 1001)
	must(t, TPvarReset(session, abi.TPvarAllHandles))
	want(count, 0)
	want(level, 0)
	wantCode(t, "start of a level", TPvarStart(session, level), abi.TErrPvarNoStartstop)
	wantCode(t, "write of a level", TPvarWrite(session, level, value), abi.TErrPvarNoWrite)
	wantCode(t, "reset of a level", TPvarReset(session, level), abi.TErrPvarNoWrite)
	wantCode(t, "readreset of a level", TPvarReadreset(session, level, value), abi.TErrPvarNoAtomic)
	wantCode(t, "read of all", TPvarRead(session, abi.TPvarAllHandles, value), abi.TErrInvalidHandle)
	wantCode(t, "readreset of all", TPvarReadreset(session, abi.TPvarAllHandles, value), abi.TErrInvalidHandle)
	wantCode(t, "null session", TPvarRead(abi.TPvarSessionNull, count, value), abi.TErrInvalidSession)
	wantCode(t, "wrong class", TPvarGetIndex(cstring("weft_messages"), abi.TPvarClassTimer, addr(&b.n)), abi.TErrInvalidName)
	must(t, TPvarSessionCreate(addr(&b.handle)))
	other := b.handle
	wantCode(t, "handle of another session", TPvarRead(other, count, value), abi.TErrInvalidHandle)
	b.handle = count
	must(t, TPvarHandleFree(session, addr(&b.handle)))
	wantCode(t, "freed handle", TPvarRead(session, count, value), abi.TErrInvalidHandle)
	b.handle = session
	must(t, TPvarSessionFree(addr(&b.handle)))
	wantCode(t, "freed session", TPvarSessionFree(addr(&b.handle)), abi.TErrInvalidSession)
	wantCode(t, "handle of a freed session", TPvarRead(session, bytes, value), abi.TErrInvalidSession)
	wantCode(t, "index", TPvarGetInfo(len(pvars), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), abi.TErrInvalidIndex)
}

// TestCategories finds each variable in one category.
func TestCategories(t *testing.T) {
	withTool(t)
	b := newBox()
	must(t, TCategoryGetNum(addr(&b.n)))
	n := int(b.n)
	found := make(map[[2]int]int)
	for i := range n {
		c := heap[int32](0, 0, 0)
		must(t, TCategoryGetInfo(i, addr(&b.text[0]), heap[int32](100), 0, 0, c, c+4, c+8))
		must(t, TCategoryGetIndex(addr(&b.text[0]), addr(&b.n)))
		if int(b.n) != i {
			t.Errorf("index of %s is %d, want %d", b.string(), b.n, i)
		}
		for kind, get := range []func(int, int, uintptr) int{TCategoryGetCvars, TCategoryGetPvars, TCategoryGetCategories} {
			count := int(array[int32](c, 3)[kind])
			list := heap(make([]int32, 50)...)
			must(t, get(i, 50, list))
			for _, x := range array[int32](list, count) {
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
	wantCode(t, "event", TEventHandleAlloc(0, 0, abi.InfoNull, addr(&b.handle)), abi.TErrInvalidIndex)
	wantCode(t, "event name", TEventGetIndex(cstring("x"), addr(&b.n)), abi.TErrInvalidName)
	wantCode(t, "source", TSourceGetTimestamp(0, addr(&b.long)), abi.TErrInvalidIndex)
}
