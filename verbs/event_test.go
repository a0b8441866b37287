package verbs

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddptest"
)

// wantEvent takes events until one is of the given type.
func wantEvent(t *testing.T, d *Device, typ EventType) Event {
	t.Helper()
	ctx := testContext(t)
	for {
		e, err := d.GetEvent(ctx)
		if err != nil {
			t.Fatalf("waiting for %q: %v", typ, err)
		}
		t.Logf("event: %v", e)
		if e.Type == typ {
			return e
		}
	}
}

func TestQPEvents(t *testing.T) {
	// What a side does wrong is a request or access error at the other, and
	// fatal here.
	for _, tt := range []struct {
		name string
		wr   SendWR
		want EventType
	}{
		{"access", SendWR{Op: OpWrite, Inline: []byte("x"), Remote: RemoteBuf{STag: 77}}, EventQPAccessError},
		{"read access", SendWR{Op: OpFetchAdd, Remote: RemoteBuf{STag: 77}}, EventQPAccessError},
		{"no receive", SendWR{Op: OpImm}, EventQPRequestError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := bare(t)
			cq, _ := d.NewCQ(100)
			qa, qb, p := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq}, QPConfig{SendCQ: cq, RecvCQ: cq})
			if tt.wr.Op == OpFetchAdd {
				mr, _ := qa.pd.Register(make([]byte, 8), LocalWrite)
				tt.wr.SGL = []SGE{mr.Slice(0, 8)}
			}
			qa.PostSend(tt.wr)
			p.Run()
			if e := wantEvent(t, d, tt.want); e.QP != qb || e.Err == nil || !strings.Contains(e.String(), "QP") {
				t.Errorf("event %v", e)
			}
			if e := wantEvent(t, d, EventQPFatal); e.QP != qa || !errors.As(e.Err, new(*TerminateError)) {
				t.Errorf("event %v", e)
			}
			if e, ok := d.PollEvent(); ok {
				t.Errorf("unexpected %v", e)
			}
		})
	}
	// A graceful end and an abort of one's own are no errors.
	d := bare(t)
	cq, _ := d.NewCQ(100)
	for _, end := range []func(a, b *QP){func(a, _ *QP) { a.stream().Close() }, func(a, _ *QP) { a.Close() },
		func(a, _ *QP) { a.Modify(QPAttr{State: StateError}, AttrState) }} {
		qa, qb, p := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq}, QPConfig{SendCQ: cq, RecvCQ: cq})
		end(qa, qb)
		p.Run()
		if qa.State() != StateError || qb.State() != StateError {
			t.Errorf("states %v and %v", qa.State(), qb.State())
		}
		if e, ok := d.PollEvent(); ok {
			t.Errorf("unexpected %v", e)
		}
	}
}

func TestLossOfTheAssociationIsSeenByAll(t *testing.T) {
	// RFC 5043, Section 11.3, and the events of it.
	const n = 20
	a, b := newNode(t, Config{}), newNode(t, Config{})
	var qps [n]*QP
	for i := range qps {
		qps[i], _ = connect(t, a, b, QPConfig{SendDepth: 4, RecvDepth: 4}, QPConfig{SendDepth: 4, RecvDepth: 4})
	}
	if e := wantEvent(t, a.dev, EventPeerUp); e.Addr != b.dev.Addr().Addrs[0] {
		t.Errorf("event %v, want address %v", e, b.dev.Addr())
	}
	b.dev.Associations()[0].Abort("test")
	seen := make(map[*QP]bool)
	down := false
	for len(seen) < n || !down {
		e, err := a.dev.GetEvent(testContext(t))
		if err != nil {
			t.Fatalf("%d queue pairs, peer down %v: %v", len(seen), down, err)
		}
		switch e.Type {
		case EventQPFatal:
			seen[e.QP] = true
		case EventPeerDown:
			down = e.Err != nil
		}
	}
	for i, qp := range qps {
		if !seen[qp] {
			t.Errorf("queue pair %d raised no event", i)
		}
		wantDone(t, qp, qp.Err())
	}
}

func TestEventsAreBounded(t *testing.T) {
	d := bare(t)
	cq, _ := d.NewCQ(1)
	for i := range MaxEvents + 10 {
		d.events.push(Event{Type: EventCQError, CQ: cq, Err: numbered(i)})
	}
	if got := d.Stats().EventsLost; got != 10 {
		t.Errorf("%d events lost, want 10", got)
	}
	for i := range MaxEvents {
		if e, ok := d.PollEvent(); !ok || e.Err != numbered(i+10) {
			t.Fatalf("event %d: %v", i, e)
		}
	}
	if _, ok := d.PollEvent(); ok {
		t.Error("an event too many")
	}
}

type numbered int

func (numbered) Error() string { return "numbered" }

func TestGetEventEnds(t *testing.T) {
	d := bare(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.GetEvent(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := d.GetEvent(testContext(t))
			errs <- err
		}()
	}
	d.Close()
	for range 2 {
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("closed device: %v", err)
		}
	}
}

func TestSQD(t *testing.T) {
	d := bare(t)
	cq, _ := d.NewCQ(100)
	cfg := QPConfig{SendCQ: cq, RecvCQ: cq, SignalAll: true}
	qa, qb, p := piped(t, d, cfg, cfg)
	mr, _ := qa.pd.Register(make([]byte, 5000), RemoteRead|RemoteWrite)
	state := func(want State, draining bool) {
		t.Helper()
		if a := qa.Query(); a.State != want || a.Draining != draining {
			t.Errorf("state %v, draining %v, want %v, %v", a.State, a.Draining, want, draining)
		}
	}
	read := SendWR{ID: 1, Op: OpRead, SGL: []SGE{mr.Slice(0, 2000)}, Remote: mr.Remote().At(2000)}
	if err := qa.PostSend(read); err != nil {
		t.Fatal(err)
	}
	if err := qa.Modify(QPAttr{State: StateSQD}, AttrState); err != nil {
		t.Fatal(err)
	}
	state(StateSQD, true)
	if _, ok := d.PollEvent(); ok {
		t.Error("event before the read was answered")
	}
	if err := qa.PostSend(SendWR{ID: 2, Op: OpWrite, Inline: []byte("x"), Remote: mr.Remote()}); err != nil {
		t.Errorf("posting in SQD: %v", err)
	}
	p.Run()
	want(t, cq, 1, StatusSuccess)
	if e := wantEvent(t, d, EventSQDrained); e.QP != qa {
		t.Errorf("event %v", e)
	}
	state(StateSQD, false)
	if a := qa.Query(); a.SendQueued != 1 || cq.Len() != 0 {
		t.Errorf("%d requests queued and %d completions while drained", a.SendQueued, cq.Len())
	}
	// The peer's reads are still answered.
	qb.PostSend(SendWR{ID: 3, Op: OpRead, Remote: mr.Remote(), SGL: []SGE{mr.Slice(4000, 100)}})
	p.Run()
	want(t, cq, 3, StatusSuccess)
	if err := qa.Modify(QPAttr{State: StateRTS}, AttrState); err != nil {
		t.Fatal(err)
	}
	p.Run()
	want(t, cq, 2, StatusSuccess)
	state(StateRTS, false)
	// Drained at once when there is nothing to wait for; closing ends it.
	qa.Modify(QPAttr{State: StateSQD}, AttrState)
	wantEvent(t, d, EventSQDrained)
	qa.PostSend(SendWR{ID: 4, Op: OpWrite, Inline: []byte("y"), Remote: mr.Remote()})
	if err := qa.Modify(QPAttr{State: StateClosing}, AttrState); err != nil {
		t.Fatal(err)
	}
	p.Run()
	want(t, cq, 4, StatusSuccess)
	state(StateError, false)
	for _, st := range []State{StateRTS, StateSQD, StateClosing, StateTerminate} {
		if err := qa.Modify(QPAttr{State: st}, AttrState); !errors.Is(err, ErrQPState) {
			t.Errorf("from ERROR to %v: %v", st, err)
		}
	}
	if err := qa.Modify(QPAttr{State: StateIdle}, AttrState); err != nil {
		t.Errorf("from ERROR to IDLE: %v", err)
	}
	state(StateIdle, false)
}

func TestModifyAndQuery(t *testing.T) {
	d := bare(t)
	pd := d.AllocPD()
	cq, _ := d.NewCQ(100)
	rcq, _ := d.NewCQ(100)
	cfg := QPConfig{SendCQ: cq, RecvCQ: rcq, SendDepth: 5, RecvDepth: 6, MaxSendSGE: 2, MaxRecvSGE: 3, MaxInline: 7,
		IRD: 8, ORD: 9, SignalAll: true}
	qa, _ := pd.NewQP(cfg)
	qb, _ := pd.NewQP(QPConfig{SendCQ: cq, RecvCQ: rcq, ORD: 4})
	if a := qa.Query(); a.State != StateIdle || a.Access != remoteAccess {
		t.Errorf("before: %+v", a)
	}
	p := ddptest.NewPipe(1, 1426)
	join(p, qa, qb)
	qa.PostRecv(RecvWR{}, RecvWR{})
	got := qa.Query()
	exp := QPAttr{State: StateRTS, Access: remoteAccess, IRD: 8, ORD: 9, SendDepth: 5, RecvDepth: 6, MaxSendSGE: 2,
		MaxRecvSGE: 3, MaxInline: 7, SignalAll: true, RecvQueued: 2, SendCQ: cq, RecvCQ: rcq}
	if got != exp {
		t.Errorf("attributes = %+v,\nwant %+v", got, exp)
	}
	if qa.Num() == qb.Num() || qa.Num() == 0 {
		t.Errorf("numbers %d and %d", qa.Num(), qb.Num())
	}
	for name, err := range map[string]error{
		"undefined attribute": qa.Modify(QPAttr{}, 0x80), "local right": qa.Modify(QPAttr{Access: LocalWrite}, AttrAccess)} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := qa.Modify(QPAttr{ORD: 10}, AttrORD); !errors.Is(err, ErrLimit) {
		t.Errorf("ORD over that of the queue pair: %v", err)
	}
	if err := qa.Modify(QPAttr{ORD: 2}, AttrORD); err != nil || qa.ORD() != 2 {
		t.Errorf("ORD = %d, %v", qa.ORD(), err)
	}
	// Rights of one queue pair, whatever the region grants.
	mr, _ := pd.Register(make([]byte, 10), RemoteRead|RemoteWrite)
	if err := qb.Modify(QPAttr{Access: RemoteRead}, AttrAccess); err != nil || qb.Query().Access != RemoteRead {
		t.Errorf("Modify: %v, access %v", err, qb.Query().Access)
	}
	qa.PostSend(SendWR{Op: OpRead, Remote: mr.Remote()}, SendWR{Op: OpRead, Remote: mr.Remote(), SGL: []SGE{mr.Slice(0, 1)}})
	p.Run()
	want(t, cq, 0, StatusSuccess)
	want(t, cq, 0, StatusSuccess)
	qa.PostSend(SendWR{Op: OpWrite, Remote: mr.Remote(), Inline: []byte("x")})
	p.Run()
	if !errors.Is(qb.Err(), ddp.FaultSTag) || mr.Bytes()[0] != 0 {
		t.Errorf("write without the right: %v", qb.Err())
	}
}

func TestDeviceAttributesAreTrue(t *testing.T) {
	d := newDevice(Config{Streams: 7, Backlog: 9})
	a := d.Query()
	if a.MaxQPPerPeer != 7 || a.Backlog != 9 || a.MaxMessage != 1<<32-1 || a.MaxEvents != MaxEvents || a.MaxPrivateData != 508 {
		t.Errorf("attributes %+v", a)
	}
	if a := newDevice(Config{}).Query(); a.MaxQPPerPeer != 1024 || a.Backlog != 128 {
		t.Errorf("defaults %+v", a)
	}
	pd := d.AllocPD()
	cq, err := d.NewCQ(100)
	if err != nil {
		t.Fatal(err)
	}
	at := func(f func(*QPConfig)) error {
		cfg := QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: 1}
		f(&cfg)
		qp, err := pd.NewQP(cfg)
		if err == nil {
			qp.Close()
		}
		return err
	}
	for name, f := range map[string]func(*QPConfig, int){
		"send depth":    func(c *QPConfig, d int) { c.SendDepth = a.MaxQPWR + d },
		"receive depth": func(c *QPConfig, d int) { c.RecvDepth = a.MaxQPWR + d },
		"send list":     func(c *QPConfig, d int) { c.MaxSendSGE = a.MaxSGE + d },
		"receive list":  func(c *QPConfig, d int) { c.MaxRecvSGE = a.MaxSGE + d },
		"inline":        func(c *QPConfig, d int) { c.MaxInline = a.MaxInline + d },
		"IRD":           func(c *QPConfig, d int) { c.IRD = a.MaxQPRdAtom + d },
		"ORD":           func(c *QPConfig, d int) { c.ORD = a.MaxQPInitRdAtom + d },
	} {
		if err := at(func(c *QPConfig) { f(c, 0) }); err != nil {
			t.Errorf("%s at the limit: %v", name, err)
		}
		if err := at(func(c *QPConfig) { f(c, 1) }); !errors.Is(err, ErrLimit) {
			t.Errorf("%s over the limit: %v", name, err)
		}
	}
	if cq, err := d.NewCQ(1); err != nil || !errors.Is(cq.Resize(a.MaxCQE+1), ErrLimit) {
		t.Error("completion queue over the limit")
	}
	if _, err := pd.NewSRQ(SRQConfig{Depth: a.MaxSRQWR + 1}); !errors.Is(err, ErrLimit) {
		t.Errorf("shared receive queue over the limit: %v", err)
	}
}

func TestSignaling(t *testing.T) {
	// Unsignaled work requests complete without a completion, but free their
	// place; with SignalAll each has one.
	d := bare(t)
	cq, _ := d.NewCQ(1000)
	for _, all := range []bool{false, true} {
		qa, qb, p := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 4, SignalAll: all}, QPConfig{SendCQ: cq, RecvCQ: cq})
		mr, _ := qb.pd.Register(make([]byte, 5000), RemoteWrite)
		for i := range 20 {
			wr := SendWR{ID: uint64(i), Op: OpWrite, SGL: []SGE{mr.Slice(0, 2500)}, Remote: mr.Remote().At(2500)}
			if i%4 == 3 {
				wr.Flags = Signaled
			}
			if err := qa.PostSend(wr); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			p.Run()
			if all || i%4 == 3 {
				want(t, cq, uint64(i), StatusSuccess)
			} else if cq.Len() != 0 {
				t.Fatalf("request %d has a completion", i)
			}
		}
	}
}

func TestSGLists(t *testing.T) {
	// Lists of several elements, some empty, gather and scatter; inline data may
	// be used again at once.
	d := bare(t)
	cq, _ := d.NewCQ(100)
	qa, qb, p := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq}, QPConfig{SendCQ: cq, RecvCQ: cq})
	mr, _ := qa.pd.Register([]byte("abcdefghijklmnopqrstuvwxyz"), LocalWrite|RemoteRead)
	dst, _ := qa.pd.Register(make([]byte, 26), LocalWrite)
	qb.PostRecv(RecvWR{ID: 1, SGL: []SGE{dst.Slice(20, 2), dst.Slice(0, 0), dst.Slice(0, 1), dst.Slice(5, 10)}})
	qa.PostSend(SendWR{Op: OpSend, SGL: []SGE{mr.Slice(25, 1), mr.Slice(0, 0), mr.Slice(0, 3), mr.Slice(10, 2)}})
	p.Run()
	if wc := want(t, cq, 1, StatusSuccess); wc.Len != 6 {
		t.Errorf("%d bytes, want 6", wc.Len)
	}
	if got, want := string(dst.Bytes()), "b\x00\x00\x00\x00ckl\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00za\x00\x00\x00\x00"; got != want {
		t.Errorf("memory = %q, want %q", got, want)
	}
	inline := []byte("inline")
	qb.PostRecv(RecvWR{ID: 2, SGL: []SGE{dst.Slice(0, 6)}})
	qa.PostSend(SendWR{Op: OpSend, Inline: inline})
	copy(inline, "xxxxxx")
	p.Run()
	want(t, cq, 2, StatusSuccess)
	if got := string(dst.Bytes()[:6]); got != "inline" {
		t.Errorf("inline data = %q", got)
	}
	// A read scatters, too.
	qb.PostSend(SendWR{ID: 3, Op: OpRead, Flags: Signaled, Remote: mr.Remote().At(4), SGL: []SGE{dst.Slice(24, 2), dst.Slice(0, 3)}})
	p.Run()
	want(t, cq, 3, StatusSuccess)
	if got := string(dst.Bytes()[24:]) + string(dst.Bytes()[:3]); got != "efghi" {
		t.Errorf("read = %q", got)
	}
}

func TestClosedObjectsTakeTheirEventsAlong(t *testing.T) {
	d := bare(t)
	cq, _ := d.NewCQ(1000)
	other, _ := d.NewCQ(10)
	// Queue pairs that end badly and are closed do not pile up, though nobody
	// takes the events.
	for range 100 {
		qa, qb, p := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq}, QPConfig{SendCQ: cq, RecvCQ: cq})
		d.events.push(Event{Type: EventCQError, CQ: other})
		qa.PostSend(SendWR{Op: OpImm}) // no receive
		p.Run()
		d.events.mu.Lock()
		if d.events.n < 3 {
			t.Errorf("%d events", d.events.n)
		}
		d.events.mu.Unlock()
		qa.Close()
		qb.Close()
	}
	for i := range 100 {
		if e, ok := d.PollEvent(); !ok || e.CQ != other {
			t.Fatalf("event %d: %v", i, e)
		}
	}
	if e, ok := d.PollEvent(); ok {
		t.Errorf("%v of a closed queue pair", e)
	}
	d.events.push(Event{Type: EventCQError, CQ: other})
	other.Close()
	if e, ok := d.PollEvent(); ok {
		t.Errorf("%v of a closed queue", e)
	}
}
