package pointtopoint

import (
	"math"
	"math/bits"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/cbinding"
	"github.com/weftstack/weft/mpi/internal/cbinding/ctest"
)

// A messageBox holds what calls on messages of one process to itself need.
type messageBox struct {
	ctest.Box
	out, in  [8]int32
	reqs     [8]abi.Handle
	statuses [8]abi.Status
	status   abi.Status
	indices  [8]int32
}

func newMessageBox() *messageBox {
	b := new(messageBox)
	ctest.OnHeap = append(ctest.OnHeap, b)
	for i := range b.reqs {
		b.reqs[i] = abi.RequestNull
	}
	return b
}

func (b *messageBox) req(i int) uintptr { return ctest.Addr(&b.reqs[i]) }

// pair starts a receive and the send for it, as requests i and i+1.
func (b *messageBox) pair(t *testing.T, i, n, tag int) {
	ctest.Must(t, Irecv(ctest.Addr(&b.in), n, abi.Int32T, 0, tag, abi.CommSelf, b.req(i)))
	ctest.Must(t, Isend(ctest.Addr(&b.out), n, abi.Int32T, 0, tag, abi.CommSelf, b.req(i+1)))
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	b := newMessageBox()
	all, sts := b.req(0), ctest.Addr(&b.statuses)
	calls := map[string]func(){
		"Sendrecv": func() {
			ctest.Must(t, Sendrecv(ctest.Addr(&b.out), 8, abi.Int32T, 0, 1, ctest.Addr(&b.in), 8, abi.Int32T, 0, 1, abi.CommSelf,
				ctest.Addr(&b.status)))
		},
		"Send and Recv": func() {
			ctest.Must(t, Send(ctest.Addr(&b.out), 8, abi.Int32T, 0, 1, abi.CommSelf))
			ctest.Must(t, Recv(ctest.Addr(&b.in), 8, abi.Int32T, 0, 1, abi.CommSelf, ctest.Addr(&b.status)))
		},
		"Wait": func() {
			b.pair(t, 0, 8, 1)
			ctest.Must(t, Wait(b.req(0), ctest.Addr(&b.status)))
			ctest.Must(t, Wait(b.req(1), abi.StatusIgnore))
		},
		"Waitall": func() {
			b.pair(t, 0, 8, 1)
			b.pair(t, 4, 8, 2)
			ctest.Must(t, Waitall(8, all, sts))
		},
		"Waitany": func() {
			b.pair(t, 0, 8, 1)
			for range 2 {
				ctest.Must(t, Waitany(8, all, ctest.Addr(&b.N), ctest.Addr(&b.status)))
			}
		},
		"Waitsome": func() {
			b.pair(t, 2, 8, 1)
			for seen := int32(0); seen < 2; seen += b.N {
				ctest.Must(t, Waitsome(8, all, ctest.Addr(&b.N), ctest.Addr(&b.indices), sts))
			}
		},
		"Testall": func() {
			b.pair(t, 2, 8, 1)
			for b.Flag = 0; b.Flag == 0; {
				ctest.Must(t, Testall(8, all, ctest.Addr(&b.Flag), sts))
			}
		},
		"Testsome": func() {
			b.pair(t, 2, 8, 1)
			for seen := int32(0); seen < 2; seen += b.N {
				ctest.Must(t, Testsome(8, all, ctest.Addr(&b.N), ctest.Addr(&b.indices), sts))
			}
		},
		"Iprobe": func() {
			ctest.Must(t, Iprobe(0, 1, abi.CommSelf, ctest.Addr(&b.Flag), ctest.Addr(&b.status)))
		},
	}
	ctest.Must(t, SendInit(ctest.Addr(&b.out), 8, abi.Int32T, 0, 7, abi.CommSelf, ctest.Addr(&b.Handle)))
	send := b.Handle
	ctest.Must(t, RecvInit(ctest.Addr(&b.in), 8, abi.Int32T, 0, 7, abi.CommSelf, ctest.Addr(&b.Handle)))
	recv := b.Handle
	calls["persistent"] = func() {
		b.reqs[0], b.reqs[1] = send, recv
		ctest.Must(t, Startall(2, all))
		ctest.Must(t, Waitall(2, all, sts))
		b.reqs[0], b.reqs[1] = abi.RequestNull, abi.RequestNull
	}
	for name, call := range calls {
		if n := testing.AllocsPerRun(200, call); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	ctest.Must(t, b.Free(RequestFree, send))
	ctest.Must(t, b.Free(RequestFree, recv))
	if cbinding.CountHandles("request") != 0 {
		t.Errorf("%d requests are left", cbinding.CountHandles("request"))
	}
}

// What MPI-4.1, Section 3.7.5 says of lists without active requests.
func TestWaitsWithoutRequests(t *testing.T) {
	ctest.Returning(t)
	b := newMessageBox()
	ctest.Must(t, SendInit(ctest.Addr(&b.out), 1, abi.Int32T, 0, 1, abi.CommSelf, b.req(3))) // inactive
	b.status = abi.Status{Source: 5, Tag: 5, Error: 77}
	empty := func(what string) {
		t.Helper()
		s := b.status
		if s.Source != abi.AnySource || s.Tag != abi.AnyTag || s.Error != abi.Success || cbinding.StatusBytes(&s) != 0 ||
			cbinding.StatusCancelled(&s) {
			t.Errorf("%s: status %+v is not empty", what, s)
		}
		b.status = abi.Status{Source: 5, Tag: 5, Error: 77, Internal: [5]int32{1, 1, 1}}
		b.N, b.Flag = 99, 99
	}
	for _, i := range []int{0, 3} {
		ctest.Must(t, Wait(b.req(i), ctest.Addr(&b.status)))
		empty("Wait")
		ctest.Must(t, Test(b.req(i), ctest.Addr(&b.Flag), ctest.Addr(&b.status)))
		if b.Flag != 1 {
			t.Errorf("Test: flag %d", b.Flag)
		}
		empty("Test")
		ctest.Must(t, RequestGetStatus(b.reqs[i], ctest.Addr(&b.Flag), ctest.Addr(&b.status)))
		if b.Flag != 1 {
			t.Errorf("Request_get_status: flag %d", b.Flag)
		}
		empty("Request_get_status")
	}
	ctest.Must(t, Waitany(8, b.req(0), ctest.Addr(&b.N), ctest.Addr(&b.status)))
	if b.N != abi.Undefined {
		t.Errorf("Waitany: index %d", b.N)
	}
	empty("Waitany")
	ctest.Must(t, Testany(8, b.req(0), ctest.Addr(&b.N), ctest.Addr(&b.Flag), ctest.Addr(&b.status)))
	if b.N != abi.Undefined || b.Flag != 1 {
		t.Errorf("Testany: index %d, flag %d", b.N, b.Flag)
	}
	empty("Testany")
	for name, call := range map[string]func(int, uintptr, uintptr, uintptr, uintptr) int{
		"Waitsome": Waitsome, "Testsome": Testsome, "Request_get_status_some": RequestGetStatusSome} {
		ctest.Must(t, call(8, b.req(0), ctest.Addr(&b.N), ctest.Addr(&b.indices), ctest.Addr(&b.statuses)))
		if b.N != abi.Undefined {
			t.Errorf("%s: outcount %d", name, b.N)
		}
	}
	ctest.Must(t, Waitall(0, 0, 0))
	ctest.Must(t, Testall(8, b.req(0), ctest.Addr(&b.Flag), abi.StatusesIgnore))
	if b.Flag != 1 {
		t.Errorf("Testall: flag %d", b.Flag)
	}
	ctest.Must(t, RequestFree(b.req(3)))
	if b.reqs[3] != abi.RequestNull {
		t.Errorf("a freed request is %#x", b.reqs[3])
	}
}

// Errors of single operations are in their statuses; those that succeeded say so.
func TestErrorsInStatuses(t *testing.T) {
	ctest.Returning(t)
	b := newMessageBox()
	for _, call := range []string{"Waitall", "Testall", "Waitsome", "Testsome"} {
		for i := range b.statuses {
			b.statuses[i].Error = 77
		}
		b.pair(t, 0, 1, 1)
		ctest.Must(t, Irecv(ctest.Addr(&b.in), 1, abi.Int32T, 0, 2, abi.CommSelf, b.req(2)))
		ctest.Must(t, Isend(ctest.Addr(&b.out), 8, abi.Int32T, 0, 2, abi.CommSelf, b.req(3)))
		var code int
		switch call {
		case "Waitall":
			code = Waitall(4, b.req(0), ctest.Addr(&b.statuses))
		case "Testall":
			code = Testall(4, b.req(0), ctest.Addr(&b.Flag), ctest.Addr(&b.statuses))
		case "Waitsome":
			code = Waitsome(4, b.req(0), ctest.Addr(&b.N), ctest.Addr(&b.indices), ctest.Addr(&b.statuses))
		default:
			code = Testsome(4, b.req(0), ctest.Addr(&b.N), ctest.Addr(&b.indices), ctest.Addr(&b.statuses))
		}
		ctest.WantError(t, code, abi.ErrInStatus, call)
		for i, want := range []int32{0, 0, abi.ErrTruncate, 0, 77} {
			if b.statuses[i].Error != want {
				t.Errorf("%s: MPI_ERROR of status %d is %d, want %d", call, i, b.statuses[i].Error, want)
			}
		}
		for i := range 4 {
			if b.reqs[i] != abi.RequestNull {
				t.Errorf("%s: request %d is not null", call, i)
			}
		}
	}
	b.statuses[0].Error = 77
	b.pair(t, 0, 1, 1)
	ctest.Must(t, Waitall(2, b.req(0), ctest.Addr(&b.statuses)))
	if b.statuses[0].Error != 77 {
		t.Error("Waitall that succeeds has touched MPI_ERROR")
	}
	ctest.Must(t, Irecv(ctest.Addr(&b.in), 1, abi.Int32T, 0, 2, abi.CommSelf, b.req(2)))
	ctest.Must(t, Send(ctest.Addr(&b.out), 8, abi.Int32T, 0, 2, abi.CommSelf))
	b.status.Error = 77
	ctest.WantError(t, Wait(b.req(2), ctest.Addr(&b.status)), abi.ErrTruncate, "32 bytes for a buffer of 4")
	if b.status.Error != 77 || b.status.Tag != 2 {
		t.Errorf("status of a truncated message: %+v", b.status)
	}
}

func TestCancelOfReceive(t *testing.T) {
	ctest.Returning(t)
	b := newMessageBox()
	for _, persistent := range []bool{false, true} {
		if persistent {
			ctest.Must(t, RecvInit(ctest.Addr(&b.in), 1, abi.Int32T, abi.AnySource, 5, abi.CommSelf, b.req(0)))
			ctest.WantError(t, Cancel(b.req(0)), abi.ErrRequest, "inactive")
			ctest.Must(t, Start(b.req(0)))
			ctest.WantError(t, Start(b.req(0)), abi.ErrRequest, "is active already")
		} else {
			ctest.Must(t, Irecv(ctest.Addr(&b.in), 1, abi.Int32T, abi.AnySource, 5, abi.CommSelf, b.req(0)))
			ctest.WantError(t, Start(b.req(0)), abi.ErrRequest, "is not persistent")
		}
		ctest.Must(t, Cancel(b.req(0)))
		ctest.Must(t, Wait(b.req(0), ctest.Addr(&b.status)))
		ctest.Must(t, TestCancelled(ctest.Addr(&b.status), ctest.Addr(&b.Flag)))
		if b.Flag != 1 {
			t.Errorf("persistent %v: not cancelled: %+v", persistent, b.status)
		}
		if persistent {
			ctest.Must(t, RequestFree(b.req(0)))
		}
	}
	b.pair(t, 0, 1, 5)
	ctest.Must(t, Cancel(b.req(0))) // it has matched
	ctest.Must(t, Waitall(2, b.req(0), ctest.Addr(&b.statuses)))
	ctest.Must(t, TestCancelled(ctest.Addr(&b.statuses[0]), ctest.Addr(&b.Flag)))
	if b.Flag != 0 {
		t.Error("a receive that has matched is cancelled")
	}
}

func TestRequestHandles(t *testing.T) {
	ctest.Returning(t)
	b := newMessageBox()
	ctest.WantError(t, RequestFree(b.req(0)), abi.ErrRequest, "null handle")
	ctest.WantError(t, Wait(0, 0), abi.ErrArg, "request NULL")
	b.reqs[0] = abi.CommWorld
	ctest.WantError(t, Wait(b.req(0), 0), abi.ErrRequest, "is the handle of a communicator")
	b.pair(t, 0, 1, 1)
	old := b.reqs[0]
	ctest.Must(t, Waitall(2, b.req(0), 0))
	b.reqs[0] = old
	ctest.WantError(t, Wait(b.req(0), 0), abi.ErrRequest, "has been freed")
	b.reqs[0] = abi.RequestNull
	ctest.WantError(t, Waitall(-1, b.req(0), 0), abi.ErrCount, "count -1")
	ctest.WantError(t, Waitall(2, 0, 0), abi.ErrArg, "array_of_requests")
	// A freed receive goes on.
	ctest.Must(t, Irecv(ctest.Addr(&b.in), 1, abi.Int32T, 0, 9, abi.CommSelf, b.req(0)))
	ctest.Must(t, RequestFree(b.req(0)))
	b.out[0], b.in[0] = 4711, 0
	ctest.Must(t, Ssend(ctest.Addr(&b.out), 1, abi.Int32T, 0, 9, abi.CommSelf))
	if b.in[0] != 4711 {
		t.Errorf("a freed receive has got %d", b.in[0])
	}
}

func TestGeneralizedRequests(t *testing.T) {
	ctest.Returning(t)
	b := newMessageBox()
	var queried, freed, canceled int
	cbinding.CallGrequestQuery = func(fn, extra, status uintptr) int {
		queried++
		if fn != 1 || extra != 44 {
			t.Errorf("query function %d with %d", fn, extra)
		}
		ctest.Must(t, StatusSetElements(status, abi.Int32T, 6))
		ctest.Must(t, StatusSetSource(status, 3))
		return StatusSetTag(status, 8)
	}
	cbinding.CallGrequestFree = func(fn, extra uintptr) int { freed++; return 0 }
	cbinding.CallGrequestCancel = func(fn, extra uintptr, complete bool) int { canceled++; return 0 }
	defer func() {
		cbinding.CallGrequestQuery, cbinding.CallGrequestFree, cbinding.CallGrequestCancel = nil, nil, nil
	}()

	ctest.Must(t, GrequestStart(1, 2, 3, 44, b.req(0)))
	ctest.Must(t, Test(b.req(0), ctest.Addr(&b.Flag), ctest.Addr(&b.status)))
	if b.Flag != 0 {
		t.Fatal("done too soon")
	}
	ctest.Must(t, Cancel(b.req(0)))
	ctest.Must(t, GrequestComplete(b.reqs[0]))
	ctest.WantError(t, GrequestComplete(b.reqs[0]), abi.ErrRequest, "before")
	ctest.Must(t, RequestGetStatus(b.reqs[0], ctest.Addr(&b.Flag), ctest.Addr(&b.status)))
	ctest.Must(t, Waitall(1, b.req(0), ctest.Addr(&b.statuses)))
	if queried != 2 || freed != 1 || canceled != 1 || b.reqs[0] != abi.RequestNull {
		t.Errorf("%d queries, %d frees, %d cancels, handle %#x", queried, freed, canceled, b.reqs[0])
	}
	ctest.Must(t, GetCount(ctest.Addr(&b.statuses[0]), abi.Int32T, ctest.Addr(&b.N), false))
	if s := b.statuses[0]; s.Source != 3 || s.Tag != 8 || b.N != 6 {
		t.Errorf("status %+v of %d elements", s, b.N)
	}
	// Freed before it is complete: the free function is called then.
	ctest.Must(t, GrequestStart(1, 2, 3, 44, b.req(0)))
	h := b.reqs[0]
	ctest.Must(t, RequestFree(b.req(0)))
	if freed != 1 {
		t.Error("freed too soon")
	}
	ctest.Must(t, GrequestComplete(h))
	if freed != 2 || queried != 2 {
		t.Errorf("%d frees, %d queries", freed, queried)
	}
	ctest.WantError(t, GrequestComplete(h), abi.ErrRequest, "has been freed")
	cbinding.CallGrequestQuery = func(fn, extra, status uintptr) int { return abi.ErrOther }
	ctest.Must(t, GrequestStart(1, 2, 3, 44, b.req(0)))
	ctest.Must(t, GrequestComplete(b.reqs[0]))
	if code := Wait(b.req(0), 0); code != abi.ErrOther {
		t.Errorf("the query function returns MPI_ERR_OTHER, Wait %d", code)
	}
	b.pair(t, 0, 1, 1)
	ctest.WantError(t, GrequestComplete(b.reqs[0]), abi.ErrRequest, "no generalized request")
	ctest.Must(t, Waitall(2, b.req(0), 0))
}

func TestStatuses(t *testing.T) {
	ctest.Returning(t)
	b := newMessageBox()
	s := ctest.Addr(&b.status)
	for _, x := range []struct {
		set func(uintptr, int) int
		get func(uintptr, uintptr) int
	}{{StatusSetSource, StatusGetSource}, {StatusSetTag, StatusGetTag}, {StatusSetError, StatusGetError}} {
		ctest.Must(t, x.set(s, 17))
		ctest.Must(t, x.get(s, ctest.Addr(&b.N)))
		if b.N != 17 {
			t.Errorf("got %d", b.N)
		}
		b.N = 0
		ctest.WantError(t, x.set(0, 1), abi.ErrArg, "MPI_STATUS_IGNORE")
		ctest.WantError(t, x.get(0, ctest.Addr(&b.N)), abi.ErrArg, "MPI_STATUS_IGNORE")
	}
	ctest.Must(t, StatusSetCancelled(s, 5))
	ctest.Must(t, TestCancelled(s, ctest.Addr(&b.Flag)))
	if b.Flag != 1 {
		t.Errorf("flag %d", b.Flag)
	}
	cbinding.SetStatusBytes(&b.status, 10)
	for _, tt := range []struct {
		typ             abi.Handle
		count, elements int32
	}{{abi.Byte, 10, 10}, {abi.Int16T, 5, 5}, {abi.Int32T, abi.Undefined, abi.Undefined}} {
		ctest.Must(t, GetCount(s, tt.typ, ctest.Addr(&b.N), false))
		ctest.Must(t, GetElements(s, tt.typ, ctest.Addr(&b.Flag), false))
		if b.N != tt.count || b.Flag != tt.elements {
			t.Errorf("10 bytes are %d items and %d elements of %#x, want %d and %d", b.N, b.Flag, tt.typ, tt.count,
				tt.elements)
		}
	}
	if bits.UintSize == 64 {
		for _, n := range []int64{1 << 40, 0x7654321ff1234567 / 8} {
			ctest.Must(t, StatusSetElementsX(s, abi.Double, int(n)))
			ctest.Must(t, GetElementsX(s, abi.Double, ctest.Addr(&b.Long)))
			ctest.Must(t, GetCount(s, abi.Double, ctest.Addr(&b.N), false))
			if b.Long != n || b.N != abi.Undefined {
				t.Errorf("%d elements, count %d", b.Long, b.N)
			}
		}
	}
	ctest.WantError(t, StatusSetElementsX(s, abi.Double, math.MaxInt/4), abi.ErrCount, "elements")
	ctest.WantError(t, StatusSetElements(s, abi.Double, -1), abi.ErrCount, "count -1")
	ctest.WantError(t, GetCount(s, abi.DatatypeNull, ctest.Addr(&b.N), false), abi.ErrType, "null")
	other := newMessageBox()
	ctest.Must(t, StatusF2f08(s, ctest.Addr(&other.status)))
	if other.status != b.status {
		t.Error("statuses of Fortran differ")
	}
}
