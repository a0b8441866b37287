package asconf

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

// harness is a Sender whose association is the harness, and a Receiver whose peer is it.
type harness struct {
	*testing.T
	Sender
	in      Receiver
	local   address.Local
	numbers requests.Numbers
	held    bool // no ASCONF may be sent
	done    map[uint32]error
	changed int
	paths   []netip.Addr
	primary netip.Addr
}

func newHarness(t *testing.T, tsn uint32, local ...string) *harness {
	h := &harness{T: t, done: map[uint32]error{}, paths: []netip.Addr{ip("10.1.0.1")}}
	for _, l := range local {
		h.local.Add(ap(l))
	}
	h.Sender.Open(&h.local, &h.numbers, h, tsn)
	h.in.Open(tsn)
	return h
}

func ip(s string) netip.Addr     { return netip.MustParseAddr(s) }
func ap(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func (h *harness) CanSend() bool             { return !h.held }
func (h *harness) DataPath() int             { return 0 }
func (h *harness) OtherPath(i int) int       { return 1 - i }
func (h *harness) MaySendTo(i int) bool      { return i < 2 }
func (h *harness) LocalChanged(bool)         { h.changed++ }
func (h *harness) Done(id uint32, err error) { h.done[id] = err }

// pathsOf is the paths of a harness, for one ASCONF that comes from 10.1.0.1.
type pathsOf struct{ *harness }

func (p pathsOf) From() netip.Addr          { return ip("10.1.0.1") }
func (p pathsOf) Find(a netip.Addr) int     { return slices.Index(p.paths, a) }
func (p pathsOf) Reaches(a netip.Addr) bool { return a.Is4() }
func (p pathsOf) Len() int                  { return len(p.paths) }
func (p pathsOf) Add(a netip.Addr)          { p.paths = append(p.paths, a); p.harness.paths = p.paths }
func (p pathsOf) Remove(i int)              { p.harness.paths = slices.Delete(p.paths, i, i+1) }
func (p pathsOf) RemoveOthers(i int)        { p.harness.paths = []netip.Addr{p.paths[i]} }
func (p pathsOf) Prefer(i int)              { p.harness.primary = p.paths[i] }

// must returns a request that was taken.
func (h *harness) must(id uint32, err error) uint32 {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
	if err := h.Verify(); err != nil {
		h.Fatal(err)
	}
	return id
}

// sent returns the outstanding ASCONF as it leaves, with its requests.
func (h *harness) sent() (wire.Asconf, []wire.AsconfRequest) {
	h.Helper()
	b, ok := h.Append(nil, 0, 1200)
	if !ok || !h.TakeSent() || h.TakeSent() {
		h.Fatalf("nothing was sent, or it is sent twice: %v", ok)
	}
	x, err := wire.ParseAsconf(wire.Chunk{Type: wire.ChunkAsconf, Value: b[wire.ChunkHeaderLen:], Raw: b})
	if err != nil {
		h.Fatal(err)
	}
	var list []wire.AsconfRequest
	for it := wire.NewParams(x.Params); it.Next(); {
		req, err := wire.ParseAsconfRequest(it.Param())
		if err != nil {
			h.Fatal(err)
		}
		list = append(list, req)
	}
	return x, list
}

// ack answers the outstanding ASCONF.
func (h *harness) ack(params []byte) {
	h.Helper()
	outcome, ok, legal := h.Answers(&wire.AsconfAck{Seq: h.NextSeq() - 1, Params: params})
	if !ok || !legal {
		h.Fatalf("the answer is taken %v, legal %v", ok, legal)
	}
	h.Finish(outcome, 100)
	if err := h.Verify(); err != nil {
		h.Fatal(err)
	}
}

func (h *harness) wantDone(id uint32, want error) {
	h.Helper()
	if err, ok := h.done[id]; !ok || !errors.Is(err, want) {
		h.Errorf("request %d ended %v with %v, want %v", id, ok, err, want)
	}
}

// RFC 5061, Section 5.1, A1 to A8: one chunk is outstanding, numbers rise by one, what waits goes next.
func TestSenderSendsOneAfterTheOther(t *testing.T) {
	h := newHarness(t, 7, "10.0.0.1:1")
	add := h.must(h.Add(ap("10.0.0.2:1")))
	remove := h.must(h.Remove(ap("10.0.0.1:1")))
	if !h.Due() || !h.Outstanding() || h.Pending() != 2 || h.Muted() || !h.Busy() {
		t.Fatalf("%+v", h.Sender)
	}
	x, list := h.sent()
	if x.Seq != 7 || x.Addr != ip("10.0.0.1") || len(list) != 1 || list[0].Type != wire.ParamAddIP {
		t.Errorf("sent %+v, %+v", x, list)
	}
	if h.local.Has(ip("10.0.0.2")) || !h.Adding(ip("10.0.0.2")) {
		t.Error("the new address is in use before the answer")
	}
	if _, ok, legal := h.Answers(&wire.AsconfAck{Seq: 6}); ok || !legal {
		t.Error("an answer of before counts")
	}
	if _, ok, legal := h.Answers(&wire.AsconfAck{Seq: 8}); ok || legal { // F0
		t.Error("an answer to what was not sent is legal")
	}
	h.ack(nil)
	h.wantDone(add, nil)
	if x, _ := h.sent(); x.Seq != 8 || h.local.Has(ip("10.0.0.1")) || !h.local.Leaving(ip("10.0.0.1")) {
		t.Errorf("then sent %+v, local %+v", x, h.local)
	}
	h.ack(nil)
	h.wantDone(remove, nil)
	if h.Outstanding() || h.Busy() || !h.local.Takes(99, ip("10.0.0.1")) || h.local.Takes(100, ip("10.0.0.1")) {
		t.Errorf("in the end %+v, local %+v", h.Sender, h.local)
	}
}

// Section 5.3.2: nothing else is sent while the only address is replaced; F1 and B5: the ASCONF leaves from
// either address.
func TestSenderIsMutedWhileTheOnlyAddressIsReplaced(t *testing.T) {
	h := newHarness(t, 1, "10.0.0.1:1")
	id := h.must(h.Replace(ap("10.0.0.1:1"), ap("10.0.0.2:1")))
	if _, list := h.sent(); !h.Muted() || len(list) != 3 {
		t.Fatalf("muted %v, sent %+v", h.Muted(), list)
	}
	if from, ok := h.Source(true); !ok || from != ap("10.0.0.2:1") {
		t.Errorf("sent from %v %v", from, ok)
	}
	if _, ok := h.Source(false); ok {
		t.Error("an IPv4 source for IPv6")
	}
	h.ack(nil)
	h.wantDone(id, nil)
	if h.Muted() || !slices.Equal(h.local.InUse, []netip.AddrPort{ap("10.0.0.2:1")}) {
		t.Errorf("muted %v, local %+v", h.Muted(), h.local)
	}
}

// A7: what is not told after a failure has failed, too, and the address that was to go stays. F3a: what the
// peer does not understand is not asked again.
func TestSenderTakesRefusals(t *testing.T) {
	h := newHarness(t, 1, "10.0.0.1:1")
	id := h.must(h.Replace(ap("10.0.0.1:1"), ap("10.0.0.2:1")))
	_, list := h.sent()
	h.ack(wire.AppendAsconfError(nil, wire.AsconfError{ID: list[0].ID, Causes: wire.AppendOutOfResource(nil)}))
	h.wantDone(id, requests.ErrDenied)
	if !slices.Equal(h.local.InUse, []netip.AddrPort{ap("10.0.0.1:1")}) {
		t.Errorf("local %+v", h.local)
	}
	id = h.must(h.Add(ap("10.0.0.2:1")))
	_, list = h.sent()
	cause := wire.AppendUnrecognizedParams(nil, []byte{0xc0, 1, 0, 4})
	h.ack(wire.AppendAsconfError(nil, wire.AsconfError{ID: list[0].ID, Causes: cause}))
	h.wantDone(id, requests.ErrNotSupported)
	if _, err := h.Add(ap("10.0.0.3:1")); err != requests.ErrNotSupported {
		t.Errorf("once more: %v", err)
	}
	h.must(h.SetPrimary(ap("10.0.0.1:1")))
	h.Unsupported()
	if _, err := h.SetPrimary(ap("10.0.0.1:1")); err != requests.ErrNotSupported || h.Pending() > 0 {
		t.Errorf("to a peer that does not know ASCONF: %v, %d pending", err, h.Pending())
	}
}

func TestSenderRefusesRequests(t *testing.T) {
	h := newHarness(t, 1, "10.0.0.1:1")
	for name, x := range map[string]struct {
		ask  func() (uint32, error)
		want error
	}{
		"add what there is":     {func() (uint32, error) { return h.Add(ap("10.0.0.1:1")) }, ErrLocalAddr},
		"add a group":           {func() (uint32, error) { return h.Add(ap("224.0.0.1:1")) }, ErrLocalAddr},
		"remove the last":       {func() (uint32, error) { return h.Remove(ap("10.0.0.1:1")) }, ErrLastAddr},
		"remove another":        {func() (uint32, error) { return h.Remove(ap("10.0.0.9:1")) }, ErrLocalAddr},
		"prefer another":        {func() (uint32, error) { return h.SetPrimary(ap("10.0.0.9:1")) }, ErrLocalAddr},
		"replace another":       {func() (uint32, error) { return h.Replace(ap("10.0.0.9:1"), ap("10.0.0.8:1")) }, ErrLocalAddr},
		"replace by what it is": {func() (uint32, error) { return h.Replace(ap("10.0.0.1:1"), ap("10.0.0.1:1")) }, ErrLocalAddr},
	} {
		if _, err := x.ask(); err != x.want {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	h.held = true
	for range MaxQueue {
		if _, err := h.SetPrimary(ap("10.0.0.1:1")); err == requests.ErrBusy {
			return
		}
		if err := h.Verify(); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the queue has no end")
}

// B1 to B5: the same chunk goes again, by another path every second time. What fails leaves the addresses as
// they were.
func TestSenderRetriesAndFails(t *testing.T) {
	h := newHarness(t, 1, "10.0.0.1:1", "10.0.0.2:1")
	id := h.must(h.Remove(ap("10.0.0.2:1")))
	waits := h.must(h.Add(ap("10.0.0.3:1")))
	first := slices.Clone(h.Chunk())
	h.sent()
	var paths []int
	for range 4 {
		h.Retry()
		i, due := h.NextPath()
		if paths = append(paths, i); !due || !slices.Equal(first, h.Chunk()) || !h.DueTo(i) {
			t.Fatalf("due %v to %d", due, i)
		}
	}
	if want := []int{0, 1, 1, 0}; !slices.Equal(paths, want) {
		t.Errorf("sent again by paths %v, want %v", paths, want)
	}
	h.MovePath(0, 1)
	if h.Path() != 1 {
		t.Error("it goes by a path that was removed")
	}
	gone := errors.New("gone")
	h.Fail(gone)
	h.wantDone(id, gone)
	h.wantDone(waits, gone)
	if len(h.local.InUse) != 2 || h.Pending() > 0 || h.Due() || h.local.Removed() {
		t.Errorf("%+v, local %+v", h.Sender, h.local)
	}
}

func TestSenderFollows(t *testing.T) {
	h := newHarness(t, 1, "10.0.0.1:1")
	probed := 0
	follow := func(want ...string) bool {
		var list []netip.AddrPort
		for _, w := range want {
			list = append(list, ap(w))
		}
		return h.Follow(list, func() { probed++ })
	}
	if !follow("10.0.0.1:1") || probed > 0 || h.Pending() > 0 {
		t.Error("something is asked for although nothing has changed")
	}
	if !follow("10.0.0.9:1") || probed != 1 || !h.Muted() { // one step
		t.Errorf("probed %d times, muted %v", probed, h.Muted())
	}
	if follow("10.0.0.8:1") {
		t.Error("there is nothing left to ask for, although changes are under way")
	}
	h.ack(nil)
	if !follow("10.0.0.9:1", "10.0.0.8:1") {
		t.Error("an addition cannot be asked for")
	}
	h.ack(nil)
	if want := []netip.AddrPort{ap("10.0.0.9:1"), ap("10.0.0.8:1")}; !slices.Equal(h.local.InUse, want) {
		t.Errorf("local %v, want %v", h.local.InUse, want)
	}
}

func ask(kind wire.ParamType, id uint32, addr string) []byte {
	return wire.AppendAsconfRequest(nil, wire.AsconfRequest{Type: kind, ID: id, Addr: ip(addr)})
}

// RFC 5061, Section 5.2, E1 to E6: each chunk is carried out once and in order, also across 2^32; the last
// answers are kept.
func TestReceiverAnswersOnce(t *testing.T) {
	first := uint32(0xfffffffe)
	h := newHarness(t, first)
	handle := func(seq uint32, params []byte) []byte {
		value, violation := h.in.Handle(&wire.Asconf{Seq: seq, Params: params}, 1200, pathsOf{h})
		if violation != "" {
			t.Fatal(violation)
		}
		return value
	}
	if handle(0xffffffff, nil) != nil {
		t.Error("a chunk of after a missing one is answered")
	}
	for i := range uint32(MaxAcks + 2) {
		var params []byte
		if i == 0 {
			params = ask(wire.ParamAddIP, 1, "10.1.0.2")
		}
		for range 2 {
			if value := handle(first+i, params); len(value) != 4 || len(h.paths) != 2 {
				t.Fatalf("answer %d is %x, %d paths", i, value, len(h.paths))
			}
		}
	}
	if handle(first, nil) != nil || handle(first+2, nil) == nil || h.in.Seq() != first+MaxAcks+1 {
		t.Errorf("kept answers are not the last %d; number %x", MaxAcks, h.in.Seq())
	}
}

func TestReceiverRefuses(t *testing.T) {
	h := newHarness(t, 1)
	var params []byte
	for _, r := range [][]byte{
		ask(wire.ParamSetPrimary, 0, "10.1.0.9"), // not there
		ask(wire.ParamAddIP, 1, "2001:db8::1"),   // not reached
		ask(wire.ParamAddIP, 2, "10.1.0.2"),      // F11
		ask(wire.ParamSetPrimary, 3, "10.1.0.1"), // but this
		ask(wire.ParamDeleteIP, 4, "10.1.0.1"),   // F11
	} {
		params = append(params, r...)
	}
	value, violation := h.in.Handle(&wire.Asconf{Seq: 1, Params: params}, 1200, pathsOf{h})
	if violation != "" || len(h.paths) != 1 || h.primary != ip("10.1.0.1") {
		t.Fatalf("%q, paths %v, primary %v", violation, h.paths, h.primary)
	}
	var failed, succeeded []uint32
	for it := wire.NewParams(value[4:]); it.Next(); {
		if x, err := wire.ParseAsconfError(it.Param()); err == nil {
			failed = append(failed, x.ID)
		} else if id, err := wire.ParseAsconfSuccess(it.Param()); err == nil {
			succeeded = append(succeeded, id)
		}
	}
	if !slices.Equal(failed, []uint32{0, 1, 2, 4}) || !slices.Equal(succeeded, []uint32{3}) {
		t.Errorf("failed %v, succeeded %v", failed, succeeded)
	}
	if _, violation := h.in.Handle(&wire.Asconf{Seq: 2, Params: []byte{0xc0, 1, 0, 5, 0}}, 1200, pathsOf{h}); violation == "" || h.in.Seq() != 1 {
		t.Errorf("a malformed chunk: %q, number %d", violation, h.in.Seq())
	}
	// What cannot be told is not done.
	value, _ = h.in.Handle(&wire.Asconf{Seq: 2, Params: params}, 8, pathsOf{h})
	if len(value) > 8 {
		t.Errorf("an answer of %d bytes, want at most 8", len(value))
	}
}
