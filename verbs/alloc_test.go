package verbs

import (
	"context"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// TestLocalWorkDoesNotAllocate: binding and invalidating, posting to a shared
// receive queue, events of completion queues, and queries.
func TestLocalWorkDoesNotAllocate(t *testing.T) {
	w := newWindowed(t)
	mw, err := w.pd.AllocMW()
	if err != nil {
		t.Fatal(err)
	}
	fast, err := w.pd.AllocMR(50)
	if err != nil {
		t.Fatal(err)
	}
	d := w.pd.dev
	ch, _ := d.NewCompChannel()
	cq, _ := ch.NewCQ(16)
	qp, _, _ := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq, SignalAll: true}, QPConfig{SendCQ: cq, RecvCQ: cq})
	ctx := context.Background()
	fast2, err := qp.pd.AllocMR(50)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 50)
	bind, reg, reg2 := &Bind{MW: mw, MR: w.mr, Len: 50, Access: RemoteWrite}, &Bind{MR: fast, Buf: buf}, &Bind{MR: fast2, Buf: buf}
	post := func(qp *QP, wr ...SendWR) {
		if err := qp.PostSend(wr...); err != nil {
			t.Fatal(err)
		}
	}
	var wc [8]WC
	for name, f := range map[string]func(){
		"windows and fast registration": func() {
			post(w.qb, SendWR{Op: OpBindMW, Bind: bind}, SendWR{Op: OpFastRegister, Bind: reg},
				SendWR{Op: OpLocalInvalidate, Invalidate: mw.STag()}, SendWR{Op: OpLocalInvalidate, Invalidate: fast.STag()})
			if n := w.cq.Poll(wc[:]); n != 4 {
				t.Fatalf("%d completions: %v", n, wc[0].Err())
			}
		},
		"completion channel": func() {
			cq.Notify(false)
			post(qp, SendWR{Op: OpFastRegister, Bind: reg2}, SendWR{Op: OpLocalInvalidate, Invalidate: fast2.STag()})
			if got, err := ch.GetEvent(ctx); got != cq || err != nil {
				t.Fatal(err)
			}
			cq.Poll(wc[:])
		},
		"queries": func() {
			if w.qb.Query().State != StateRTS || d.Query().MaxSGE == 0 {
				t.Fatal("wrong state")
			}
		},
		"SQD": func() {
			w.qb.Modify(QPAttr{State: StateSQD}, AttrState)
			w.qb.Modify(QPAttr{State: StateRTS}, AttrState)
			d.PollEvent()
		},
	} {
		f()
		if n := testing.AllocsPerRun(100, f); n != 0 && !testenv.Race {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestSRQDoesNotAllocate moves messages by a shared receive queue over real
// sockets.
func TestSRQDoesNotAllocate(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{})
	srq, err := b.pd.NewSRQ(SRQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	qa, _ := connect(t, a, b, QPConfig{}, QPConfig{SRQ: srq})
	mr := b.mr(4000, LocalWrite)
	src := a.mr(4000, 0)
	ctx := testContext(t)
	var wc [4]WC
	sgl, rsgl := []SGE{src.Slice(0, 4000)}, []SGE{mr.Slice(0, 4000)}
	run := func() {
		if err := srq.PostRecv(RecvWR{SGL: rsgl}); err != nil {
			t.Fatal(err)
		}
		if err := qa.PostSend(SendWR{Op: OpSend, Flags: Signaled, SGL: sgl}); err != nil {
			t.Fatal(err)
		}
		for _, cq := range []*CQ{b.rcq, a.cq} {
			if _, err := cq.Wait(ctx, wc[:]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 100 {
		run()
	}
	// The layers below and the runtime may allocate now and then.
	if n := testing.AllocsPerRun(300, run); n >= 2 && !testenv.Race {
		t.Errorf("%v allocations for a message", n)
	}
}

// TestBusyPoll moves messages without ever waiting: the consumer polls device and
// queue.
func TestBusyPoll(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{})
	qa, qb := connect(t, a, b, QPConfig{}, QPConfig{})
	ctx := testContext(t)
	poll := func(n *node, cq *CQ) {
		t.Helper()
		var wc [1]WC
		for cq.Poll(wc[:]) == 0 {
			n.dev.Poll()
			if ctx.Err() != nil {
				t.Fatal("nothing came")
			}
		}
		if wc[0].Status != StatusSuccess {
			t.Fatal(wc[0].Err())
		}
	}
	for range 200 {
		if err := qb.PostRecv(RecvWR{}); err != nil {
			t.Fatal(err)
		}
		if err := qa.PostSend(SendWR{Op: OpImm, Flags: Signaled}); err != nil {
			t.Fatal(err)
		}
		poll(b, b.rcq)
		poll(a, a.cq)
	}
}
