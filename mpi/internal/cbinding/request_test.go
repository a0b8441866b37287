package cbinding

import (
	"math"
	"math/bits"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// A messageBox holds what calls on messages of one process to itself need.
type messageBox struct {
	box
	out, in  [8]int32
	reqs     [8]Handle
	statuses [8]abi.Status
	status   abi.Status
	indices  [8]int32
}

func newMessageBox() *messageBox {
	b := new(messageBox)
	onHeap = append(onHeap, b)
	for i := range b.reqs {
		b.reqs[i] = abi.RequestNull
	}
	return b
}

func (b *messageBox) req(i int) uintptr { return addr(&b.reqs[i]) }

// pair starts a receive and the send for it, as requests i and i+1.
func (b *messageBox) pair(t *testing.T, i, n, tag int) {
	must(t, Irecv(addr(&b.in), n, abi.Int32T, 0, tag, abi.CommSelf, b.req(i)))
	must(t, Isend(addr(&b.out), n, abi.Int32T, 0, tag, abi.CommSelf, b.req(i+1)))
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	b := newMessageBox()
	all, sts := b.req(0), addr(&b.statuses)
	calls := map[string]func(){
		"Sendrecv": func() {
			must(t, Sendrecv(addr(&b.out), 8, abi.Int32T, 0, 1, addr(&b.in), 8, abi.Int32T, 0, 1, abi.CommSelf,
				addr(&b.status)))
		},
		"Send and Recv": func() {
			must(t, Send(addr(&b.out), 8, abi.Int32T, 0, 1, abi.CommSelf))
			must(t, Recv(addr(&b.in), 8, abi.Int32T, 0, 1, abi.CommSelf, addr(&b.status)))
		},
		"Wait": func() {
			b.pair(t, 0, 8, 1)
			must(t, Wait(b.req(0), addr(&b.status)))
			must(t, Wait(b.req(1), abi.StatusIgnore))
		},
		"Waitall": func() {
			b.pair(t, 0, 8, 1)
			b.pair(t, 4, 8, 2)
			must(t, Waitall(8, all, sts))
		},
		"Waitany": func() {
			b.pair(t, 0, 8, 1)
			for range 2 {
				must(t, Waitany(8, all, addr(&b.n), addr(&b.status)))
			}
		},
		"Waitsome": func() {
			b.pair(t, 2, 8, 1)
			for seen := int32(0); seen < 2; seen += b.n {
				must(t, Waitsome(8, all, addr(&b.n), addr(&b.indices), sts))
			}
		},
		"Testall": func() {
			b.pair(t, 2, 8, 1)
			for b.flag = 0; b.flag == 0; {
				must(t, Testall(8, all, addr(&b.flag), sts))
			}
		},
		"Testsome": func() {
			b.pair(t, 2, 8, 1)
			for seen := int32(0); seen < 2; seen += b.n {
				must(t, Testsome(8, all, addr(&b.n), addr(&b.indices), sts))
			}
		},
		"Iprobe": func() {
			must(t, Iprobe(0, 1, abi.CommSelf, addr(&b.flag), addr(&b.status)))
		},
	}
	must(t, SendInit(addr(&b.out), 8, abi.Int32T, 0, 7, abi.CommSelf, addr(&b.handle)))
	send := b.handle
	must(t, RecvInit(addr(&b.in), 8, abi.Int32T, 0, 7, abi.CommSelf, addr(&b.handle)))
	recv := b.handle
	calls["persistent"] = func() {
		b.reqs[0], b.reqs[1] = send, recv
		must(t, Startall(2, all))
		must(t, Waitall(2, all, sts))
		b.reqs[0], b.reqs[1] = abi.RequestNull, abi.RequestNull
	}
	for name, call := range calls {
		if n := testing.AllocsPerRun(200, call); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	must(t, b.free(RequestFree, send))
	must(t, b.free(RequestFree, recv))
	if requests.live != 0 {
		t.Errorf("%d requests are left", requests.live)
	}
}

// What MPI-4.1, Section 3.7.5 says of lists without active requests.
func TestWaitsWithoutRequests(t *testing.T) {
	returning(t)
	b := newMessageBox()
	must(t, SendInit(addr(&b.out), 1, abi.Int32T, 0, 1, abi.CommSelf, b.req(3))) // inactive
	b.status = abi.Status{Source: 5, Tag: 5, Error: 77}
	empty := func(what string) {
		t.Helper()
		s := b.status
		if s.Source != abi.AnySource || s.Tag != abi.AnyTag || s.Error != abi.Success || statusBytes(&s) != 0 ||
			statusCancelled(&s) {
			t.Errorf("%s: status %+v is not empty", what, s)
		}
		b.status = abi.Status{Source: 5, Tag: 5, Error: 77, Internal: [5]int32{1, 1, 1}}
		b.n, b.flag = 99, 99
	}
	for _, i := range []int{0, 3} {
		must(t, Wait(b.req(i), addr(&b.status)))
		empty("Wait")
		must(t, Test(b.req(i), addr(&b.flag), addr(&b.status)))
		if b.flag != 1 {
			t.Errorf("Test: flag %d", b.flag)
		}
		empty("Test")
		must(t, RequestGetStatus(b.reqs[i], addr(&b.flag), addr(&b.status)))
		if b.flag != 1 {
			t.Errorf("Request_get_status: flag %d", b.flag)
		}
		empty("Request_get_status")
	}
	must(t, Waitany(8, b.req(0), addr(&b.n), addr(&b.status)))
	if b.n != abi.Undefined {
		t.Errorf("Waitany: index %d", b.n)
	}
	empty("Waitany")
	must(t, Testany(8, b.req(0), addr(&b.n), addr(&b.flag), addr(&b.status)))
	if b.n != abi.Undefined || b.flag != 1 {
		t.Errorf("Testany: index %d, flag %d", b.n, b.flag)
	}
	empty("Testany")
	for name, call := range map[string]func(int, uintptr, uintptr, uintptr, uintptr) int{
		"Waitsome": Waitsome, "Testsome": Testsome, "Request_get_status_some": RequestGetStatusSome} {
		must(t, call(8, b.req(0), addr(&b.n), addr(&b.indices), addr(&b.statuses)))
		if b.n != abi.Undefined {
			t.Errorf("%s: outcount %d", name, b.n)
		}
	}
	must(t, Waitall(0, 0, 0))
	must(t, Testall(8, b.req(0), addr(&b.flag), abi.StatusesIgnore))
	if b.flag != 1 {
		t.Errorf("Testall: flag %d", b.flag)
	}
	must(t, RequestFree(b.req(3)))
	if b.reqs[3] != abi.RequestNull {
		t.Errorf("a freed request is %#x", b.reqs[3])
	}
}

// Errors of single operations are in their statuses; those that succeeded say so.
func TestErrorsInStatuses(t *testing.T) {
	returning(t)
	b := newMessageBox()
	for _, call := range []string{"Waitall", "Testall", "Waitsome", "Testsome"} {
		for i := range b.statuses {
			b.statuses[i].Error = 77
		}
		b.pair(t, 0, 1, 1)
		must(t, Irecv(addr(&b.in), 1, abi.Int32T, 0, 2, abi.CommSelf, b.req(2)))
		must(t, Isend(addr(&b.out), 8, abi.Int32T, 0, 2, abi.CommSelf, b.req(3)))
		var code int
		switch call {
		case "Waitall":
			code = Waitall(4, b.req(0), addr(&b.statuses))
		case "Testall":
			code = Testall(4, b.req(0), addr(&b.flag), addr(&b.statuses))
		case "Waitsome":
			code = Waitsome(4, b.req(0), addr(&b.n), addr(&b.indices), addr(&b.statuses))
		default:
			code = Testsome(4, b.req(0), addr(&b.n), addr(&b.indices), addr(&b.statuses))
		}
		wantError(t, code, abi.ErrInStatus, call)
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
	must(t, Waitall(2, b.req(0), addr(&b.statuses)))
	if b.statuses[0].Error != 77 {
		t.Error("Waitall that succeeds has touched MPI_ERROR")
	}
	must(t, Irecv(addr(&b.in), 1, abi.Int32T, 0, 2, abi.CommSelf, b.req(2)))
	must(t, Send(addr(&b.out), 8, abi.Int32T, 0, 2, abi.CommSelf))
	b.status.Error = 77
	wantError(t, Wait(b.req(2), addr(&b.status)), abi.ErrTruncate, "32 bytes for a buffer of 4")
	if b.status.Error != 77 || b.status.Tag != 2 {
		t.Errorf("status of a truncated message: %+v", b.status)
	}
}

func TestCancelOfReceive(t *testing.T) {
	returning(t)
	b := newMessageBox()
	for _, persistent := range []bool{false, true} {
		if persistent {
			must(t, RecvInit(addr(&b.in), 1, abi.Int32T, abi.AnySource, 5, abi.CommSelf, b.req(0)))
			wantError(t, Cancel(b.req(0)), abi.ErrRequest, "inactive")
			must(t, Start(b.req(0)))
			wantError(t, Start(b.req(0)), abi.ErrRequest, "is active already")
		} else {
			must(t, Irecv(addr(&b.in), 1, abi.Int32T, abi.AnySource, 5, abi.CommSelf, b.req(0)))
			wantError(t, Start(b.req(0)), abi.ErrRequest, "is not persistent")
		}
		must(t, Cancel(b.req(0)))
		must(t, Wait(b.req(0), addr(&b.status)))
		must(t, TestCancelled(addr(&b.status), addr(&b.flag)))
		if b.flag != 1 {
			t.Errorf("persistent %v: not cancelled: %+v", persistent, b.status)
		}
		if persistent {
			must(t, RequestFree(b.req(0)))
		}
	}
	b.pair(t, 0, 1, 5)
	must(t, Cancel(b.req(0))) // it has matched
	must(t, Waitall(2, b.req(0), addr(&b.statuses)))
	must(t, TestCancelled(addr(&b.statuses[0]), addr(&b.flag)))
	if b.flag != 0 {
		t.Error("a receive that has matched is cancelled")
	}
}

func TestRequestHandles(t *testing.T) {
	returning(t)
	b := newMessageBox()
	wantError(t, RequestFree(b.req(0)), abi.ErrRequest, "null handle")
	wantError(t, Wait(0, 0), abi.ErrArg, "request NULL")
	b.reqs[0] = abi.CommWorld
	wantError(t, Wait(b.req(0), 0), abi.ErrRequest, "is the handle of a communicator")
	b.pair(t, 0, 1, 1)
	old := b.reqs[0]
	must(t, Waitall(2, b.req(0), 0))
	b.reqs[0] = old
	wantError(t, Wait(b.req(0), 0), abi.ErrRequest, "has been freed")
	b.reqs[0] = abi.RequestNull
	wantError(t, Waitall(-1, b.req(0), 0), abi.ErrCount, "count -1")
	wantError(t, Waitall(2, 0, 0), abi.ErrArg, "array_of_requests")
	// A freed receive goes on.
	must(t, Irecv(addr(&b.in), 1, abi.Int32T, 0, 9, abi.CommSelf, b.req(0)))
	must(t, RequestFree(b.req(0)))
	b.out[0], b.in[0] = 4711, 0
	must(t, Ssend(addr(&b.out), 1, abi.Int32T, 0, 9, abi.CommSelf))
	if b.in[0] != 4711 {
		t.Errorf("a freed receive has got %d", b.in[0])
	}
}

func TestGeneralizedRequests(t *testing.T) {
	returning(t)
	b := newMessageBox()
	var queried, freed, canceled int
	CallGrequestQuery = func(fn, extra, status uintptr) int {
		queried++
		if fn != 1 || extra != 44 {
			t.Errorf("query function %d with %d", fn, extra)
		}
		must(t, StatusSetElements(status, abi.Int32T, 6))
		must(t, StatusSetSource(status, 3))
		return StatusSetTag(status, 8)
	}
	CallGrequestFree = func(fn, extra uintptr) int { freed++; return 0 }
	CallGrequestCancel = func(fn, extra uintptr, complete bool) int { canceled++; return 0 }
	defer func() { CallGrequestQuery, CallGrequestFree, CallGrequestCancel = nil, nil, nil }()

	must(t, GrequestStart(1, 2, 3, 44, b.req(0)))
	must(t, Test(b.req(0), addr(&b.flag), addr(&b.status)))
	if b.flag != 0 {
		t.Fatal("done too soon")
	}
	must(t, Cancel(b.req(0)))
	must(t, GrequestComplete(b.reqs[0]))
	wantError(t, GrequestComplete(b.reqs[0]), abi.ErrRequest, "before")
	must(t, RequestGetStatus(b.reqs[0], addr(&b.flag), addr(&b.status)))
	must(t, Waitall(1, b.req(0), addr(&b.statuses)))
	if queried != 2 || freed != 1 || canceled != 1 || b.reqs[0] != abi.RequestNull {
		t.Errorf("%d queries, %d frees, %d cancels, handle %#x", queried, freed, canceled, b.reqs[0])
	}
	must(t, GetCount(addr(&b.statuses[0]), abi.Int32T, addr(&b.n), false))
	if s := b.statuses[0]; s.Source != 3 || s.Tag != 8 || b.n != 6 {
		t.Errorf("status %+v of %d elements", s, b.n)
	}
	// Freed before it is complete: the free function is called then.
	must(t, GrequestStart(1, 2, 3, 44, b.req(0)))
	h := b.reqs[0]
	must(t, RequestFree(b.req(0)))
	if freed != 1 {
		t.Error("freed too soon")
	}
	must(t, GrequestComplete(h))
	if freed != 2 || queried != 2 {
		t.Errorf("%d frees, %d queries", freed, queried)
	}
	wantError(t, GrequestComplete(h), abi.ErrRequest, "has been freed")
	CallGrequestQuery = func(fn, extra, status uintptr) int { return abi.ErrOther }
	must(t, GrequestStart(1, 2, 3, 44, b.req(0)))
	must(t, GrequestComplete(b.reqs[0]))
	if code := Wait(b.req(0), 0); code != abi.ErrOther {
		t.Errorf("the query function returns MPI_ERR_OTHER, Wait %d", code)
	}
	b.pair(t, 0, 1, 1)
	wantError(t, GrequestComplete(b.reqs[0]), abi.ErrRequest, "no generalized request")
	must(t, Waitall(2, b.req(0), 0))
}

func TestStatuses(t *testing.T) {
	returning(t)
	b := newMessageBox()
	s := addr(&b.status)
	for _, x := range []struct {
		set func(uintptr, int) int
		get func(uintptr, uintptr) int
	}{{StatusSetSource, StatusGetSource}, {StatusSetTag, StatusGetTag}, {StatusSetError, StatusGetError}} {
		must(t, x.set(s, 17))
		must(t, x.get(s, addr(&b.n)))
		if b.n != 17 {
			t.Errorf("got %d", b.n)
		}
		b.n = 0
		wantError(t, x.set(0, 1), abi.ErrArg, "MPI_STATUS_IGNORE")
		wantError(t, x.get(0, addr(&b.n)), abi.ErrArg, "MPI_STATUS_IGNORE")
	}
	must(t, StatusSetCancelled(s, 5))
	must(t, TestCancelled(s, addr(&b.flag)))
	if b.flag != 1 {
		t.Errorf("flag %d", b.flag)
	}
	setStatusBytes(&b.status, 10)
	for _, tt := range []struct {
		typ             Handle
		count, elements int32
	}{{abi.Byte, 10, 10}, {abi.Int16T, 5, 5}, {abi.Int32T, abi.Undefined, abi.Undefined}} {
		must(t, GetCount(s, tt.typ, addr(&b.n), false))
		must(t, GetElements(s, tt.typ, addr(&b.flag), false))
		if b.n != tt.count || b.flag != tt.elements {
			t.Errorf("10 bytes are %d items and %d elements of %#x, want %d and %d", b.n, b.flag, tt.typ, tt.count,
				tt.elements)
		}
	}
	if bits.UintSize == 64 {
		for _, n := range []int64{1 << 40, 0x7654321ff1234567 / 8} {
			must(t, StatusSetElementsX(s, abi.Double, int(n)))
			must(t, GetElementsX(s, abi.Double, addr(&b.long)))
			must(t, GetCount(s, abi.Double, addr(&b.n), false))
			if b.long != n || b.n != abi.Undefined {
				t.Errorf("%d elements, count %d", b.long, b.n)
			}
		}
	}
	wantError(t, StatusSetElementsX(s, abi.Double, math.MaxInt/4), abi.ErrCount, "elements")
	wantError(t, StatusSetElements(s, abi.Double, -1), abi.ErrCount, "count -1")
	wantError(t, GetCount(s, abi.DatatypeNull, addr(&b.n), false), abi.ErrType, "null")
	other := newMessageBox()
	must(t, StatusF2f08(s, addr(&other.status)))
	if other.status != b.status {
		t.Error("statuses of Fortran differ")
	}
}
