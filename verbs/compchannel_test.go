package verbs

import (
	"context"
	"errors"
	"testing"
)

func TestCQResize(t *testing.T) {
	d := bare(t)
	cq, _ := d.NewCQ(4)
	qa, qb, p := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq, SignalAll: true}, QPConfig{SendCQ: cq, RecvCQ: cq})
	mr, _ := qb.pd.Register(make([]byte, 8), RemoteWrite)
	id, next := uint64(0), uint64(0)
	fill := func(n int) {
		t.Helper()
		for range n {
			if err := qa.PostSend(SendWR{ID: id, Op: OpWrite, Inline: []byte("x"), Remote: mr.Remote()}); err != nil {
				t.Fatal(err)
			}
			id++
		}
		p.Run()
	}
	drain := func(n int) {
		t.Helper()
		for range n {
			want(t, cq, next, StatusSuccess)
			next++
		}
	}
	fill(3)
	drain(2) // so that it wraps
	fill(3)
	if cq.Len() != 4 || cq.Depth() != 4 {
		t.Fatalf("%d of %d", cq.Len(), cq.Depth())
	}
	if err := cq.Resize(3); !errors.Is(err, ErrBusy) {
		t.Errorf("smaller than what is queued: %v", err)
	}
	for _, n := range []int{0, -1, MaxCQ + 1} {
		if err := cq.Resize(n); !errors.Is(err, ErrLimit) {
			t.Errorf("depth %d: %v", n, err)
		}
	}
	if err := cq.Resize(40); err != nil {
		t.Fatal(err)
	}
	fill(36)
	drain(39)
	if err := cq.Resize(2); err != nil {
		t.Fatal(err)
	}
	fill(1)
	drain(2)
	if qa.State() != StateRTS {
		t.Errorf("state %v: %v", qa.State(), qa.Err())
	}
	qa.Close()
	qb.Close()
	p.Run()
	if err := cq.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cq.Resize(10); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestCQOverflowRaisesAnEvent(t *testing.T) {
	d := bare(t)
	small, _ := d.NewCQ(1)
	big, _ := d.NewCQ(100)
	qa, qb, p := piped(t, d, QPConfig{SendCQ: small, RecvCQ: big, SignalAll: true}, QPConfig{SendCQ: big, RecvCQ: big})
	other, otherPeer, p2 := piped(t, d, QPConfig{SendCQ: big, RecvCQ: big, SignalAll: true}, QPConfig{SendCQ: big, RecvCQ: big})
	qb.PostRecv(make([]RecvWR, 4)...)
	for range 4 {
		qa.PostSend(SendWR{Op: OpImm})
	}
	if e := wantEvent(t, d, EventCQError); e.CQ != small || !errors.Is(e.Err, ErrCQOverflow) {
		t.Errorf("event %v", e)
	}
	if e := wantEvent(t, d, EventQPFatal); e.QP != qa || !errors.Is(e.Err, ErrCQOverflow) {
		t.Errorf("event %v", e)
	}
	p.Run()
	if n := big.Len(); n == 0 || n > 100 {
		t.Errorf("%d completions", n)
	}
	big.Poll(make([]WC, 100))
	// A queue pair of another queue goes on, data and all.
	otherPeer.PostRecv(RecvWR{ID: 8})
	other.PostSend(SendWR{ID: 7, Op: OpImm})
	p2.Run()
	want(t, big, 7, StatusSuccess)
	want(t, big, 8, StatusSuccess)
}

func TestCompChannel(t *testing.T) {
	d := bare(t)
	ch, err := d.NewCompChannel()
	if err != nil {
		t.Fatal(err)
	}
	const n = 5
	var cqs [n]*CQ
	var qps [n]*QP
	run := make([]func() int, n)
	for i := range cqs {
		cqs[i], _ = ch.NewCQ(10)
		qa, qb, p := piped(t, d, QPConfig{SendCQ: cqs[i], RecvCQ: cqs[i]}, QPConfig{SendCQ: cqs[i], RecvCQ: cqs[i]})
		qb.PostRecv(make([]RecvWR, 8)...)
		qps[i], run[i] = qa, p.Run
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	send := func(i int) { qps[i].PostSend(SendWR{Op: OpSend}); run[i]() }
	send(0)
	if _, err := ch.GetEvent(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("event of a queue that is not armed: %v", err)
	}
	for _, i := range []int{3, 1, 4} {
		cqs[i].Notify(false)
		send(i)
		send(i) // one event for both
	}
	for _, i := range []int{3, 1, 4} {
		if cq, err := ch.GetEvent(testContext(t)); err != nil || cq != cqs[i] {
			t.Fatalf("event of another queue than %d: %v", i, err)
		}
	}
	if _, err := ch.GetEvent(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("an event too many: %v", err)
	}
	got := make(chan *CQ, 1)
	go func() {
		cq, _ := ch.GetEvent(testContext(t))
		got <- cq
	}()
	cqs[2].Notify(false)
	send(2)
	if cq := <-got; cq != cqs[2] {
		t.Error("who waits got another queue")
	}
	if err := ch.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("channel with queues: %v", err)
	}
	if err := d.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("device with a channel: %v", err)
	}
	if _, err := ch.NewCQ(0); !errors.Is(err, ErrLimit) {
		t.Errorf("impossible queue: %v", err)
	}
}

// TestEverythingInUseRefusesToClose closes all objects from the wrong end, and
// then from the right one.
func TestEverythingInUseRefusesToClose(t *testing.T) {
	d := bare(t)
	ch, _ := d.NewCompChannel()
	pd := d.AllocPD()
	scq, _ := d.NewCQ(10)
	rcq, _ := ch.NewCQ(10)
	srq, _ := pd.NewSRQ(SRQConfig{})
	mr, _ := pd.Register(make([]byte, 10), LocalWrite|MWBind)
	mw, _ := pd.AllocMW()
	fast, _ := pd.AllocMR(10)
	qp, err := pd.NewQP(QPConfig{SendCQ: scq, RecvCQ: rcq, SRQ: srq})
	if err != nil {
		t.Fatal(err)
	}
	srq.PostRecv(RecvWR{SGL: []SGE{mr.Slice(0, 1)}})
	mw.r.Bind(mr.buf, 0, RemoteRead, nil, mr.r)
	type closer struct {
		name string
		o    interface{ Close() error }
	}
	order := []closer{{"qp", qp}, {"srq", srq}, {"mw", mw}, {"mr", mr}, {"fast mr", fast}, {"send cq", scq},
		{"recv cq", rcq}, {"channel", ch}, {"pd", pd}, {"device", d}}
	for _, c := range order[1:] {
		if c.name == "mw" || c.name == "fast mr" {
			continue // may be closed at any time
		}
		if err := c.o.Close(); !errors.Is(err, ErrBusy) {
			t.Errorf("%s in use: %v", c.name, err)
		}
	}
	for _, c := range order {
		if err := c.o.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := c.o.Close(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s again: %v", c.name, err)
		}
	}
	if n := d.Stats().Regions; n != 0 {
		t.Errorf("%d regions left", n)
	}
	if _, err := d.NewCompChannel(); !errors.Is(err, ErrClosed) {
		t.Errorf("channel of a closed device: %v", err)
	}
	if _, err := d.AllocPD().NewSRQ(SRQConfig{}); !errors.Is(err, ErrClosed) {
		t.Errorf("shared receive queue of a closed device: %v", err)
	}
}
