package verbs

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/rdmap"
)

// windowed is a pair of queue pairs of one device over a pipe.
type windowed struct {
	t      *testing.T
	pd     *PD
	cq     *CQ
	qa, qb *QP
	run    func()
	mr     *MR // of the side that binds: b
	local  *MR
}

func newWindowed(t *testing.T) *windowed {
	t.Helper()
	d := bare(t)
	w := &windowed{t: t}
	w.cq, _ = d.NewCQ(100)
	cfg := QPConfig{SendCQ: w.cq, RecvCQ: w.cq, SignalAll: true}
	var p interface{ Run() int }
	w.qa, w.qb, p = piped(t, d, cfg, cfg)
	w.run = func() { p.Run() }
	w.pd = w.qa.pd
	w.mr, _ = w.pd.Register(bytes.Repeat([]byte{1}, 100), LocalWrite|MWBind)
	w.local, _ = w.pd.Register(bytes.Repeat([]byte{9}, 100), LocalWrite)
	return w
}

// do posts to b and wants success.
func (w *windowed) do(wr SendWR) {
	w.t.Helper()
	if err := w.qb.PostSend(wr); err != nil {
		w.t.Fatal(err)
	}
	w.run()
	want(w.t, w.cq, wr.ID, StatusSuccess)
}

// write writes n bytes from a.
func (w *windowed) write(stag uint32, to uint64, n int) {
	w.t.Helper()
	if err := w.qa.PostSend(SendWR{Op: OpWrite, SGL: []SGE{w.local.Slice(0, n)}, Remote: RemoteBuf{STag: stag, TO: to}}); err != nil {
		w.t.Fatal(err)
	}
	w.run()
	want(w.t, w.cq, 0, StatusSuccess)
}

func TestWindowBindAndInvalidate(t *testing.T) {
	w := newWindowed(t)
	mw, err := w.pd.AllocMW()
	if err != nil {
		t.Fatal(err)
	}
	bind := &Bind{MW: mw, MR: w.mr, Off: 10, Len: 20, Base: 1 << 40, Access: RemoteWrite | RemoteRead}
	w.do(SendWR{ID: 1, Op: OpBindMW, Bind: bind})
	if !mw.Bound() {
		t.Fatal("window is not bound")
	}
	w.write(mw.STag(), 1<<40+5, 3)
	exp := bytes.Repeat([]byte{1}, 100)
	copy(exp[15:], []byte{9, 9, 9})
	if !bytes.Equal(w.mr.Bytes(), exp) {
		t.Errorf("memory = %v", w.mr.Bytes())
	}
	// What it is bound to cannot go away, nor can it have a new STag.
	for name, err := range map[string]error{"region": w.mr.Close(), "domain": w.pd.Close(),
		"reregister": w.mr.Reregister(ChangeAccess, nil, nil, 0), "renew": mw.Renew()} {
		if !errors.Is(err, ErrBusy) {
			t.Errorf("%s of a bound window: %v", name, err)
		}
	}
	w.do(SendWR{ID: 2, Op: OpLocalInvalidate, Invalidate: mw.STag()})
	if mw.Bound() {
		t.Error("window is bound after a local invalidate")
	}
	// Again under a new STag, and invalidated by the peer.
	old := mw.STag()
	if err := mw.Renew(); err != nil || mw.STag() == old {
		t.Fatalf("Renew: %v", err)
	}
	w.do(SendWR{ID: 3, Op: OpBindMW, Bind: bind})
	w.qb.PostRecv(RecvWR{ID: 4})
	w.qa.PostSend(SendWR{ID: 5, Op: OpSendInvalidate, Invalidate: mw.STag()})
	w.run()
	want(t, w.cq, 5, StatusSuccess)
	if wc := want(t, w.cq, 4, StatusSuccess); wc.Flags&WithInvalidate == 0 || wc.Invalidated != mw.STag() || mw.Bound() {
		t.Errorf("completion %+v, bound %v", wc, mw.Bound())
	}
	if err := w.mr.Close(); err != nil {
		t.Errorf("region no window is bound to: %v", err)
	}
	if err := mw.Close(); err != nil {
		t.Error(err)
	}
	if err := mw.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("closing again: %v", err)
	}
	// The old STag is not known any more, and the stream ends for naming it.
	w.qa.PostSend(SendWR{Op: OpWrite, SGL: []SGE{w.local.Slice(0, 1)}, Remote: RemoteBuf{STag: old}})
	w.run()
	if !errors.Is(w.qb.Err(), ddp.FaultSTag) {
		t.Errorf("write by an old STag: %v", w.qb.Err())
	}
}

func TestWindowViolations(t *testing.T) {
	// A window does not grant what it was not bound for.
	for _, tt := range []struct {
		name string
		wr   SendWR
		want ddp.Fault
	}{
		{"before", SendWR{Op: OpWrite, Remote: RemoteBuf{TO: 99}}, ddp.FaultBounds},
		{"past the end", SendWR{Op: OpWrite, Remote: RemoteBuf{TO: 118}}, ddp.FaultBounds},
		{"read", SendWR{Op: OpRead, Remote: RemoteBuf{TO: 100}}, rdmap.FaultAccess},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWindowed(t)
			mw, _ := w.pd.AllocMW()
			w.do(SendWR{Op: OpBindMW, Bind: &Bind{MW: mw, MR: w.mr, Off: 10, Len: 20, Base: 100, Access: RemoteWrite}})
			tt.wr.Remote.STag, tt.wr.SGL = mw.STag(), []SGE{w.local.Slice(0, 3)}
			w.qa.PostSend(tt.wr)
			w.run()
			if !errors.Is(w.qb.Err(), tt.want) {
				t.Errorf("end = %v, want %v", w.qb.Err(), tt.want)
			}
			if !bytes.Equal(w.mr.Bytes(), bytes.Repeat([]byte{1}, 100)) {
				t.Error("memory changed")
			}
		})
	}
	// It is for the peer of one queue pair (RFC 5040, Section 8.1.1, item 2).
	w := newWindowed(t)
	mw, _ := w.pd.AllocMW()
	w.do(SendWR{Op: OpBindMW, Bind: &Bind{MW: mw, MR: w.mr, Len: 20, Access: RemoteWrite}})
	w.qb.PostSend(SendWR{Op: OpWrite, SGL: []SGE{w.local.Slice(0, 1)}, Remote: RemoteBuf{STag: mw.STag()}})
	w.run()
	if !errors.Is(w.qa.Err(), ddp.FaultNotAssociated) {
		t.Errorf("other stream: %v, want %v", w.qa.Err(), ddp.FaultNotAssociated)
	}
}

func TestBindFails(t *testing.T) {
	w := newWindowed(t)
	mw, _ := w.pd.AllocMW()
	bind := &Bind{MW: mw, MR: w.mr, Len: 20, Access: RemoteWrite}
	w.do(SendWR{Op: OpBindMW, Bind: bind})
	// Bound already: found when it is carried out, and the end of the stream.
	w.qb.PostSend(SendWR{ID: 7, Op: OpBindMW, Bind: bind}, SendWR{ID: 8, Op: OpSend})
	w.run()
	want(t, w.cq, 7, StatusBind)
	want(t, w.cq, 8, StatusFlush)
	var te *TerminateError
	if !errors.As(w.qb.Err(), &te) || te.ByPeer || te.Header.HasDDP {
		t.Errorf("end = %v", w.qb.Err())
	}
	if !errors.As(w.qa.Err(), &te) || !te.ByPeer {
		t.Errorf("end of the peer = %v", w.qa.Err())
	}
	if err := w.mr.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("region with a window: %v", err)
	}
	mw.Invalidate()
	if err := w.mr.Close(); err != nil {
		t.Errorf("pins are left: %v", err)
	}

	w = newWindowed(t)
	w.qb.PostSend(SendWR{ID: 1, Op: OpLocalInvalidate, Invalidate: 12345})
	w.run()
	want(t, w.cq, 1, StatusLocalProtection)
	if !errors.As(w.qa.Err(), &te) {
		t.Errorf("end after an invalidate of nothing = %v", w.qa.Err())
	}
}

func TestFastRegistration(t *testing.T) {
	w := newWindowed(t)
	mr, err := w.pd.AllocMR(64)
	if err != nil {
		t.Fatal(err)
	}
	if mr.Len() != 64 || mr.Bytes() != nil || mr.Access() != 0 || !mr.Invalidated() || mr.Remote().Len != 64 {
		t.Errorf("fresh region: %d bytes, access %v, invalidated %v", mr.Len(), mr.Access(), mr.Invalidated())
	}
	stags := map[uint32]bool{}
	for round := range 3 {
		buf := bytes.Repeat([]byte{byte(round)}, 64)
		reg := SendWR{Op: OpFastRegister, Bind: &Bind{MR: mr, Buf: buf[8:56], Access: RemoteWrite}}
		// Registered, advertised, used and invalidated in order.
		w.qa.PostRecv(RecvWR{ID: 50})
		if err := w.qb.PostSend(reg, SendWR{ID: 1, Op: OpSend}); err != nil {
			t.Fatal(err)
		}
		w.run()
		if wc := want(t, w.cq, 0, StatusSuccess); wc.Op != OpFastRegister {
			t.Errorf("completion of a %v", wc.Op)
		}
		want(t, w.cq, 1, StatusSuccess)
		want(t, w.cq, 50, StatusSuccess)
		w.write(mr.STag(), 40, 8)
		exp := bytes.Repeat([]byte{byte(round)}, 64)
		copy(exp[48:56], bytes.Repeat([]byte{9}, 8))
		if !bytes.Equal(buf, exp) {
			t.Errorf("memory = %v", buf)
		}
		if err := mr.Renew(); !errors.Is(err, ErrBusy) {
			t.Errorf("Renew of a registered region: %v", err)
		}
		w.do(SendWR{ID: 2, Op: OpLocalInvalidate, Invalidate: mr.STag()})
		stags[mr.STag()] = true
		if err := mr.Renew(); err != nil {
			t.Fatal(err)
		}
	}
	if len(stags) != 3 {
		t.Errorf("%d different STags, want 3", len(stags))
	}
	if err := w.qb.PostSend(SendWR{Op: OpSend, SGL: []SGE{mr.Slice(0, 1)}}); !errors.Is(err, ErrSGL) {
		t.Errorf("in a list: %v", err)
	}
	if err := mr.Close(); err != nil {
		t.Error(err)
	}
}

func TestBindChecks(t *testing.T) {
	w := newWindowed(t)
	mw, _ := w.pd.AllocMW()
	fast, _ := w.pd.AllocMR(10)
	plain, _ := w.pd.Register(make([]byte, 10), LocalWrite)
	ro, _ := w.pd.Register(make([]byte, 10), MWBind)
	pd2 := w.pd.dev.AllocPD()
	mw2, _ := pd2.AllocMW()
	mr2, _ := pd2.Register(make([]byte, 10), MWBind)
	gone, _ := w.pd.AllocMW()
	gone.Close()
	for _, tt := range []struct {
		name string
		op   Opcode
		b    *Bind
		want error
	}{
		{"nothing", OpBindMW, nil, ErrWorkRequest},
		{"no window", OpBindMW, &Bind{MR: w.mr}, ErrWorkRequest},
		{"no region", OpBindMW, &Bind{MW: mw}, ErrWorkRequest},
		{"past the end", OpBindMW, &Bind{MW: mw, MR: w.mr, Off: 90, Len: 11}, ErrWorkRequest},
		{"negative", OpBindMW, &Bind{MW: mw, MR: w.mr, Off: -1, Len: 1}, ErrWorkRequest},
		{"fast region", OpBindMW, &Bind{MW: mw, MR: fast}, ErrWorkRequest},
		{"region without the right", OpBindMW, &Bind{MW: mw, MR: plain, Len: 1}, ErrAccess},
		{"write to read-only", OpBindMW, &Bind{MW: mw, MR: ro, Len: 1, Access: RemoteWrite}, ErrAccess},
		{"local right", OpBindMW, &Bind{MW: mw, MR: w.mr, Len: 1, Access: LocalWrite}, ErrWorkRequest},
		{"window of another domain", OpBindMW, &Bind{MW: mw2, MR: w.mr, Len: 1}, ErrWorkRequest},
		{"region of another domain", OpBindMW, &Bind{MW: mw, MR: mr2, Len: 1}, ErrWorkRequest},
		{"closed window", OpBindMW, &Bind{MW: gone, MR: w.mr, Len: 1}, ErrWorkRequest},
		{"fast, too long", OpFastRegister, &Bind{MR: fast, Buf: make([]byte, 11)}, ErrWorkRequest},
		{"fast, ordinary region", OpFastRegister, &Bind{MR: w.mr, Buf: make([]byte, 1)}, ErrWorkRequest},
	} {
		good := SendWR{Op: OpBindMW, Bind: &Bind{MW: mw, MR: w.mr, Len: 1}}
		if err := w.qb.PostSend(good, SendWR{Op: tt.op, Bind: tt.b}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	// Nothing was posted, and nothing is held.
	for _, o := range []interface{ Close() error }{mw, fast, w.mr, ro, plain} {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.pd.AllocMR(-1); !errors.Is(err, ErrLimit) {
		t.Errorf("region of -1 bytes: %v", err)
	}
}

func TestWindowPostedIsBusy(t *testing.T) {
	w := newWindowed(t)
	mw, _ := w.pd.AllocMW()
	w.qb.Modify(QPAttr{State: StateSQD}, AttrState)
	if err := w.qb.PostSend(SendWR{ID: 1, Op: OpBindMW, Bind: &Bind{MW: mw, MR: w.mr, Len: 1}}); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"close": mw.Close(), "renew": mw.Renew(), "region": w.mr.Close()} {
		if !errors.Is(err, ErrBusy) {
			t.Errorf("%s while posted: %v", name, err)
		}
	}
	w.qb.Modify(QPAttr{State: StateRTS}, AttrState)
	want(t, w.cq, 1, StatusSuccess)
	if !mw.Bound() {
		t.Error("not bound")
	}
}

func TestReregister(t *testing.T) {
	w := newWindowed(t)
	mr, err := w.pd.RegisterAt(bytes.Repeat([]byte{1}, 10), 1000, RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	old, pd2 := mr.STag(), w.pd.dev.AllocPD()
	buf := make([]byte, 20)
	if err := mr.Reregister(ChangeTranslation|ChangeAccess, pd2, buf, RemoteWrite); err != nil {
		t.Fatal(err)
	}
	if mr.STag() == old || mr.Len() != 20 || mr.Access() != RemoteWrite|LocalWrite || mr.pd != w.pd || mr.Remote().TO != 1000 {
		t.Errorf("after: %d bytes, rights %b, TO %d", mr.Len(), mr.Access(), mr.Remote().TO)
	}
	w.write(mr.STag(), 1000, 4)
	if !bytes.Equal(buf[:5], []byte{9, 9, 9, 9, 0}) {
		t.Errorf("memory = %v", buf)
	}
	if err := mr.Reregister(ChangePD, pd2, nil, 0); err != nil || mr.pd != pd2 || mr.Len() != 20 {
		t.Errorf("change of domain: %v", err)
	}
	if err := pd2.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("new domain: %v", err)
	}
	foreign := newDevice(Config{}).AllocPD()
	scoped, _ := w.pd.RegisterFor(w.qa, buf, RemoteRead)
	fast, _ := w.pd.AllocMR(1)
	for name, err := range map[string]error{"other device": mr.Reregister(ChangePD, foreign, nil, 0),
		"undefined change": mr.Reregister(8, nil, nil, 0), "scoped": scoped.Reregister(ChangeAccess, nil, nil, 0),
		"fast": fast.Reregister(ChangeAccess, nil, nil, 0), "renew": mr.Renew()} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := mr.Reregister(ChangeAccess, nil, nil, 0x80); !errors.Is(err, ErrAccess) || mr.Access()&RemoteWrite == 0 {
		t.Errorf("undefined right: %v", err)
	}
	// The old STag is gone.
	w.qa.PostSend(SendWR{Op: OpRead, Remote: RemoteBuf{STag: old, TO: 1000}, SGL: []SGE{w.local.Slice(0, 1)}})
	w.run()
	if !errors.Is(w.qb.Err(), rdmap.FaultSTag) {
		t.Errorf("old STag: %v", w.qb.Err())
	}
}
