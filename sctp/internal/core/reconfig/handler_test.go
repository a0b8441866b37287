package reconfig

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/wire"
)

const (
	sec     = clock.Time(time.Second)
	rto     = sec
	ourTSN  = 1000
	peerTSN = 5000
)

// fakeSender is a sending side without messages: the test says what is outstanding.
type fakeSender struct {
	streams  int
	next     seq.TSN
	busy     map[uint16]bool // streams with data outstanding
	used     map[uint16]bool // streams whose next number is not 0
	paused   map[uint16]bool
	all      bool // all streams are paused
	arrivals uint64
}

func (s *fakeSender) Streams() int     { return s.streams }
func (s *fakeSender) SetStreams(n int) { s.streams = n }
func (s *fakeSender) NextTSN() seq.TSN { return s.next }

func (s *fakeSender) ResetTSN(next seq.TSN) bool {
	s.next = next
	return len(s.busy) == 0
}

func (s *fakeSender) Idle() bool              { return len(s.busy) == 0 }
func (s *fakeSender) Drained(sid uint16) bool { return !s.busy[sid] }

func (s *fakeSender) Fresh(sids []uint16) bool {
	for _, sid := range sids {
		if s.used[sid] {
			return false
		}
	}
	return len(sids) > 0 || len(s.used) == 0
}

func (s *fakeSender) ResetStreams(sids []uint16) {
	if len(sids) == 0 {
		clear(s.used)
	}
	for _, sid := range sids {
		delete(s.used, sid)
	}
}

func (s *fakeSender) Arrivals() uint64           { return s.arrivals }
func (s *fakeSender) Pause(sid uint16, _ uint64) { s.paused[sid] = true }
func (s *fakeSender) PauseAll(uint64)            { s.all = true }
func (s *fakeSender) Resume(sid uint16)          { delete(s.paused, sid) }
func (s *fakeSender) ResumeAll()                 { s.all = false }
func (s *fakeSender) Reschedule()                {}

// fakeReceiver is a receiving side without data: the test says which TSNs came.
type fakeReceiver struct {
	streams  int
	cum      seq.TSN
	holds    bool       // data is held back
	unread   bool       // the user has not taken everything
	resets   [][]uint16 // streams that were reset
	violates bool       // what is held back violates the protocol
	assoc    *fakeAssoc
}

func (r *fakeReceiver) ok() bool {
	if r.violates {
		r.assoc.closed = true
	}
	return !r.violates
}

func (r *fakeReceiver) Streams() int     { return r.streams }
func (r *fakeReceiver) SetStreams(n int) { r.streams = n }
func (r *fakeReceiver) CumTSN() seq.TSN  { return r.cum }
func (r *fakeReceiver) Highest() seq.TSN { return r.cum }
func (r *fakeReceiver) ForceSack()       {}
func (r *fakeReceiver) Refuse()          {}

func (r *fakeReceiver) ResetStreams(sids []uint16) bool {
	r.holds, r.resets = false, append(r.resets, sids)
	return r.ok()
}

func (r *fakeReceiver) DeferReset([]uint16, seq.TSN) { r.holds = true }
func (r *fakeReceiver) DeferredUntil() seq.TSN       { return r.cum }
func (r *fakeReceiver) AdvanceDefer(seq.TSN) bool    { return r.ok() }
func (r *fakeReceiver) Unread([]uint16) bool         { return r.unread }
func (r *fakeReceiver) Pressed() bool                { return false }
func (r *fakeReceiver) Restart(next seq.TSN) (_, ok bool) {
	r.holds, r.cum, r.resets = false, next-1, append(r.resets, nil)
	return true, r.ok()
}

func (r *fakeReceiver) Undefer(keep bool, _ []uint16, _ seq.TSN) bool {
	r.holds = keep
	return r.ok()
}

// outcome is what a request was told at its end.
type outcome struct {
	id  uint32
	err error
}

type fakeAssoc struct {
	tx           *fakeSender
	rx           *fakeReceiver
	closed, mute bool
	data         int // the data path
	timer        clock.Time
	alive        []int
	replies      [][]byte
	forwards     int
	done         []outcome
	in, out      [][]uint16 // streams of which the user was told
	outErr       []error
	added        int
}

func (a *fakeAssoc) Sender() Sender               { return a.tx }
func (a *fakeAssoc) Receiver() Receiver           { return a.rx }
func (a *fakeAssoc) Closed() bool                 { return a.closed }
func (a *fakeAssoc) CanSend() bool                { return !a.closed && !a.mute }
func (a *fakeAssoc) DataPath() int                { return a.data }
func (a *fakeAssoc) ReplyPath(from int) int       { return from }
func (a *fakeAssoc) Alive(path int)               { a.alive = append(a.alive, path) }
func (a *fakeAssoc) Room(int) int                 { return 1400 }
func (a *fakeAssoc) RTO(int) clock.Time           { return rto }
func (a *fakeAssoc) Jitter(clock.Time) clock.Time { return 0 }
func (a *fakeAssoc) SetTimer(at clock.Time)       { a.timer = at }
func (a *fakeAssoc) Respond(_ int, params []byte) {
	a.replies = append(a.replies, slices.Clone(params))
}
func (a *fakeAssoc) Forward(wire.Chunk)    { a.forwards++ }
func (a *fakeAssoc) TSNsReset()            {}
func (a *fakeAssoc) InReset(sids []uint16) { a.in = append(a.in, sids) }
func (a *fakeAssoc) Added()                { a.added++ }
func (a *fakeAssoc) Done(id uint32, err error) {
	if id != 0 {
		a.done = append(a.done, outcome{id, err})
	}
}

func (a *fakeAssoc) OutReset(sids []uint16, err error) {
	a.out, a.outErr = append(a.out, sids), append(a.outErr, err)
}

// handlerTest is a handler with an association that the test is in control of.
type handlerTest struct {
	t   *testing.T
	h   Handler
	tx  *fakeSender
	rx  *fakeReceiver
	as  *fakeAssoc
	now clock.Time
}

func newHandlerTest(t *testing.T, cfg Config) *handlerTest {
	t.Helper()
	as := &fakeAssoc{}
	x := &handlerTest{t: t, as: as, now: sec,
		tx: &fakeSender{streams: 1000, next: ourTSN,
			busy: map[uint16]bool{}, used: map[uint16]bool{}, paused: map[uint16]bool{}},
		rx: &fakeReceiver{streams: 1000, cum: peerTSN - 1, assoc: as}}
	if cfg.InStreams == 0 {
		cfg.InStreams, cfg.MaxOutStreams = 2000, 2000
	}
	as.tx, as.rx = x.tx, x.rx
	x.h.Open(cfg, as, ourTSN, peerTSN)
	return x
}

// check fails the test if an invariant does not hold.
func (x *handlerTest) check() {
	x.t.Helper()
	if err := x.h.Verify(); err != nil {
		x.t.Fatal(err)
	}
}

// sent returns the parameters of the request that is due.
func (x *handlerTest) sent() (list []wire.Param) {
	x.t.Helper()
	x.check()
	if !x.h.Due() {
		x.t.Fatal("no request is due")
	}
	size := x.h.Size()
	b := x.h.Append(nil)
	if len(b) != wire.Padded(size) {
		x.t.Errorf("%d bytes were appended, the size was %d", len(b), size)
	}
	it := wire.NewChunks(b)
	it.Next()
	y, ok := Parse(it.Chunk())
	if !ok {
		x.t.Fatalf("malformed request % x", b)
	}
	for ps := wire.NewParams(y.Params); ps.Next(); {
		list = append(list, ps.Param())
	}
	return list
}

// take hands a chunk with parameters of the peer's to the handler.
func (x *handlerTest) take(params ...[]byte) {
	x.t.Helper()
	x.h.Handle(x.now, 0, wire.ReConfig{Params: slices.Concat(params...)})
	x.check()
}

// answer has the peer answer the last request that was begun.
func (x *handlerTest) answer(r wire.ReConfigResult) {
	x.t.Helper()
	x.take(wire.AppendReConfigResponse(nil, wire.ReConfigResponse{RespSeq: x.h.NextSeq() - 1, Result: r}))
}

// replied returns the last response, and forgets all.
func (x *handlerTest) replied() wire.ReConfigResponse {
	x.t.Helper()
	if len(x.as.replies) == 0 {
		x.t.Fatal("no response")
	}
	it := wire.NewParams(x.as.replies[len(x.as.replies)-1])
	it.Next()
	r, err := wire.ParseReConfigResponse(it.Param())
	if err != nil {
		x.t.Fatal(err)
	}
	x.as.replies = nil
	return r
}

func (x *handlerTest) wantDone(want ...outcome) {
	x.t.Helper()
	if !slices.EqualFunc(x.as.done, want, func(a, b outcome) bool { return a.id == b.id && errors.Is(a.err, b.err) }) {
		x.t.Errorf("outcomes %v, want %v", x.as.done, want)
	}
}

// A reset waits until its streams are drained; they are paused until the peer has answered.
func TestResetWaitsForItsStreams(t *testing.T) {
	x := newHandlerTest(t, Config{})
	x.tx.busy[3], x.tx.used[3], x.tx.used[4] = true, true, true
	x.h.ResetStreams(x.now, 1, []uint16{3, 2, 3})
	if x.h.Due() || !x.tx.paused[2] || !x.tx.paused[3] || x.tx.paused[4] {
		t.Fatalf("due %v, paused %v", x.h.Due(), x.tx.paused)
	}
	delete(x.tx.busy, 3)
	x.h.Begin(x.now)
	list := x.sent()
	r, err := wire.ParseOutgoingReset(list[0])
	if err != nil || r.ReqSeq != ourTSN || r.RespSeq != peerTSN-1 || r.LastTSN != ourTSN-1 || r.Streams.Len() != 2 {
		t.Errorf("request %+v, %v", r, err)
	}
	x.answer(wire.ReConfigPerformed)
	if x.tx.used[3] || !x.tx.used[4] || len(x.tx.paused) != 0 || x.h.Len() != 0 {
		t.Errorf("used %v, paused %v, %d requests", x.tx.used, x.tx.paused, x.h.Len())
	}
	x.wantDone(outcome{1, nil})
	if len(x.as.out) != 1 || !slices.Equal(x.as.out[0], []uint16{2, 3}) || len(x.as.alive) != 1 {
		t.Errorf("told of %v; path alive %v", x.as.out, x.as.alive)
	}
}

// RFC 6525, Section 5.1.1: "there MUST NOT be more than one request in flight".
func TestOneRequestInFlight(t *testing.T) {
	x := newHandlerTest(t, Config{})
	for id := range uint32(MaxRequests) {
		x.h.AddStreams(x.now, id+1, 1, 0)
	}
	if !x.h.Full() {
		t.Error("not full")
	}
	for id := range uint32(MaxRequests) {
		if p, err := wire.ParseAddOutgoing(x.sent()[0]); err != nil || p.ReqSeq != ourTSN+id {
			t.Fatalf("request %d: %+v, %v", id, p, err)
		}
		if x.h.Due() {
			t.Fatal("another request is due")
		}
		x.answer(wire.ReConfigPerformed)
	}
	if x.tx.streams != 1000+MaxRequests || x.as.added != MaxRequests || len(x.as.done) != MaxRequests {
		t.Errorf("%d streams, told %d times, %d outcomes", x.tx.streams, x.as.added, len(x.as.done))
	}
}

// A list of streams that is too long for one request takes several; the first that is denied
// ends it.
func TestLongListIsSplit(t *testing.T) {
	sids := make([]uint16, 2*MaxResetStreams+10)
	for i := range sids {
		sids[i] = uint16(i)
	}
	for _, denied := range []int{-1, 0, 1} {
		x := newHandlerTest(t, Config{})
		x.h.ResetStreams(x.now, 7, sids)
		n := 0
		for ; x.h.Due(); n++ {
			x.sent()
			if len(x.tx.paused) != len(sids)-n*MaxResetStreams {
				t.Errorf("request %d: %d streams are paused", n, len(x.tx.paused))
			}
			if n == denied {
				x.answer(wire.ReConfigDenied)
			} else {
				x.answer(wire.ReConfigPerformed)
			}
		}
		want := map[int]int{-1: 3, 0: 1, 1: 2}[denied]
		if n != want || len(x.tx.paused) != 0 {
			t.Errorf("%d requests, want %d; %d streams are paused", n, want, len(x.tx.paused))
		}
		if denied < 0 {
			x.wantDone(outcome{7, nil})
		} else {
			x.wantDone(outcome{7, requests.ErrDenied})
		}
	}
}

// Section 5.2.2: a reset of streams whose data has not all come is performed once it has.
func TestPeersResetWaitsForData(t *testing.T) {
	x := newHandlerTest(t, Config{})
	req := wire.AppendOutgoingReset(nil, wire.OutgoingReset{ReqSeq: peerTSN, LastTSN: peerTSN + 4}, []uint16{9})
	for range 2 { // and its retransmission
		x.take(req)
		if r := x.replied(); r.Result != wire.ReConfigInProgress || r.RespSeq != peerTSN {
			t.Fatalf("response %+v", r)
		}
	}
	if !x.rx.holds || !x.h.HoldsData() || len(x.rx.resets) != 0 {
		t.Fatalf("data is held back %v, resets %v", x.rx.holds, x.rx.resets)
	}
	x.rx.cum = peerTSN + 4
	x.h.Progress(x.now)
	x.check()
	if r := x.replied(); r.Result != wire.ReConfigPerformed || x.h.HoldsData() || len(x.rx.resets) != 1 {
		t.Errorf("response %+v, resets %v", r, x.rx.resets)
	}
	if len(x.as.in) != 1 || !slices.Equal(x.as.in[0], []uint16{9}) {
		t.Errorf("told of %v", x.as.in)
	}
}

// Section 5.2.2: so is a reset of streams on which there is something for the user to take.
func TestPeersResetWaitsForTheUser(t *testing.T) {
	x := newHandlerTest(t, Config{})
	x.rx.unread = true
	x.take(wire.AppendOutgoingReset(nil, wire.OutgoingReset{ReqSeq: peerTSN, LastTSN: uint32(x.rx.cum)}, []uint16{9}))
	if r := x.replied(); r.Result != wire.ReConfigInProgress || !x.h.Deferred() || len(x.as.in) != 0 {
		t.Fatalf("response %+v, told of %v", r, x.as.in)
	}
	x.h.Progress(x.now)
	if len(x.rx.resets) != 0 {
		t.Fatalf("resets %v before the user had taken what came", x.rx.resets)
	}
	x.rx.unread = false
	x.h.Progress(x.now)
	x.check()
	if r := x.replied(); r.Result != wire.ReConfigPerformed || x.h.Deferred() || len(x.as.in) != 1 {
		t.Errorf("response %+v, told of %v", r, x.as.in)
	}
}

// Section 5.2.4: the peer's SSN/TSN reset waits until ours is acknowledged, and names TSNs
// that are 2^31 beyond.
func TestPeersTSNReset(t *testing.T) {
	x := newHandlerTest(t, Config{})
	x.tx.busy[0] = true
	x.take(wire.AppendTSNReset(nil, peerTSN))
	if r := x.replied(); r.Result != wire.ReConfigInProgress || !x.tx.all {
		t.Fatalf("response %+v, paused %v", r, x.tx.all)
	}
	delete(x.tx.busy, 0)
	x.h.Progress(x.now)
	x.check()
	r := x.replied()
	if r.Result != wire.ReConfigPerformed || r.ReceiverNextTSN != peerTSN+1<<31 || r.SenderNextTSN != ourTSN {
		t.Errorf("response %+v", r)
	}
	if x.tx.all || !x.h.OtherSpace(1<<30+1) || x.h.OtherSpace(1<<30) {
		t.Errorf("paused %v, other numbers %v", x.tx.all, x.h.OtherSpace(1<<30+1))
	}
}

// Section 5.1.4: only one SSN/TSN reset is sent within 30 seconds, and none while the peer's
// waits; data that comes meanwhile is held back.
func TestOwnTSNReset(t *testing.T) {
	x := newHandlerTest(t, Config{})
	x.h.ResetTSNs(x.now, 1)
	x.h.ResetTSNs(x.now, 2)
	x.sent()
	if !x.rx.holds || !x.h.ResettingTSNs() {
		t.Fatalf("data is held back %v", x.rx.holds)
	}
	x.take(wire.AppendReConfigResponse(nil, wire.ReConfigResponse{RespSeq: ourTSN, Result: wire.ReConfigPerformed,
		HasTSNs: true, SenderNextTSN: 77, ReceiverNextTSN: 99}))
	if x.rx.cum != 76 || x.tx.next != 99 || x.rx.holds {
		t.Errorf("cumulative TSN %d, next TSN %d, held back %v", x.rx.cum, x.tx.next, x.rx.holds)
	}
	if x.h.Due() || x.as.timer != x.now+MSL || !x.tx.all {
		t.Errorf("another request is due %v, timer at %d, paused %v", x.h.Due(), x.as.timer, x.tx.all)
	}
	x.h.DropResets(errors.ErrUnsupported)
	x.check()
	x.wantDone(outcome{1, nil}, outcome{2, errors.ErrUnsupported})
	if x.tx.all {
		t.Error("streams are paused without a request")
	}
}

// Two ends that ask each other for an outgoing reset do not wait for each other for ever: the
// request that is answered by "in progress" yields to the one that answers the peer's.
func TestRequestYieldsToTheAnswer(t *testing.T) {
	x := newHandlerTest(t, Config{})
	x.tx.used[5] = true
	x.h.ResetIncoming(x.now, 1, []uint16{6})
	x.sent()
	x.take(wire.AppendIncomingReset(nil, peerTSN, []uint16{5}))
	if r := x.replied(); r.Result != wire.ReConfigInProgress {
		t.Fatalf("response %+v", r)
	}
	x.take(wire.AppendReConfigResponse(nil, wire.ReConfigResponse{RespSeq: ourTSN, Result: wire.ReConfigInProgress}))
	r, err := wire.ParseOutgoingReset(x.sent()[0])
	if err != nil || r.RespSeq != peerTSN || r.ReqSeq != ourTSN+1 {
		t.Fatalf("answer %+v, %v", r, err)
	}
	x.answer(wire.ReConfigPerformed)
	if p, err := wire.ParseIncomingReset(x.sent()[0]); err != nil || p.ReqSeq != ourTSN {
		t.Errorf("then %+v, %v", p, err)
	}
	// The peer's outgoing reset is the answer.
	answer := wire.OutgoingReset{ReqSeq: peerTSN + 1, RespSeq: ourTSN, LastTSN: peerTSN - 1}
	x.take(wire.AppendOutgoingReset(nil, answer, []uint16{6}))
	x.wantDone(outcome{1, nil})
}

// "In progress" spares the path an error, for the transmission that was answered.
func TestInProgressIsNoError(t *testing.T) {
	x := newHandlerTest(t, Config{})
	x.h.AddStreams(x.now, 1, 1, 0)
	x.sent()
	x.answer(wire.ReConfigInProgress)
	if x.as.timer != x.now+rto || !x.h.TakeAnswered() || x.h.TakeAnswered() {
		t.Errorf("timer at %d", x.as.timer)
	}
	x.h.Repeat(2)
	if x.h.Path() != 2 {
		t.Errorf("repeated to path %d", x.h.Path())
	}
	x.h.MovePath(2, 4)
	if x.h.Path() != 4 {
		t.Errorf("path %d after its removal", x.h.Path())
	}
	x.sent()
	for !x.h.GiveUp(x.now, errors.ErrUnsupported) {
	}
	x.check()
	x.wantDone(outcome{1, errors.ErrUnsupported})
}

// Requests that the configuration denies, or that exceed its limits, change nothing.
func TestDenied(t *testing.T) {
	x := newHandlerTest(t, Config{Deny: Streams | TSNs, InStreams: 1001, MaxOutStreams: 1000})
	for i, tc := range []struct {
		req  func(seq uint32) []byte
		want wire.ReConfigResult
	}{
		{func(seq uint32) []byte {
			return wire.AppendOutgoingReset(nil, wire.OutgoingReset{ReqSeq: seq, LastTSN: peerTSN - 1}, nil)
		}, wire.ReConfigDenied},
		{func(seq uint32) []byte { return wire.AppendIncomingReset(nil, seq, nil) }, wire.ReConfigDenied},
		{func(seq uint32) []byte { return wire.AppendTSNReset(nil, seq) }, wire.ReConfigDenied},
		{func(seq uint32) []byte { return wire.AppendAddOutgoing(nil, wire.AddStreams{ReqSeq: seq, Streams: 1}) },
			wire.ReConfigPerformed},
		{func(seq uint32) []byte { return wire.AppendAddOutgoing(nil, wire.AddStreams{ReqSeq: seq, Streams: 1}) },
			wire.ReConfigDenied},
		{func(seq uint32) []byte { return wire.AppendAddIncoming(nil, wire.AddStreams{ReqSeq: seq, Streams: 1}) },
			wire.ReConfigDenied},
		{func(seq uint32) []byte { return wire.AppendTSNReset(nil, seq+5) }, wire.ReConfigBadSequence},
	} {
		x.take(tc.req(x.h.PeerSeq()))
		if r := x.replied(); r.Result != tc.want {
			t.Errorf("request %d: %v, want %v", i, r.Result, tc.want)
		}
	}
	if x.rx.streams != 1001 || x.tx.streams != 1000 || len(x.rx.resets) != 0 || x.h.HoldsData() {
		t.Errorf("%d and %d streams, resets %v", x.rx.streams, x.tx.streams, x.rx.resets)
	}
}

// After a violation of the protocol the handler leaves the association, which has ended, alone.
func TestViolationEndsTheChunk(t *testing.T) {
	x := newHandlerTest(t, Config{})
	x.rx.violates = true
	x.take(wire.AppendOutgoingReset(nil, wire.OutgoingReset{ReqSeq: peerTSN, LastTSN: peerTSN - 1}, nil),
		wire.AppendIncomingReset(nil, peerTSN+1, nil))
	if len(x.as.replies) != 0 || len(x.as.in) != 0 || x.h.PeerSeq() != peerTSN+1 {
		t.Errorf("%d responses, told of %v, next request %d", len(x.as.replies), x.as.in, x.h.PeerSeq())
	}
}
