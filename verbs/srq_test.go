package verbs

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddptest"
	"github.com/weftstack/weft/rdmap"
)

// shared connects n queue pairs to peers of the same device; those of the second
// list receive from srq.
func shared(t *testing.T, d *Device, pd *PD, srq *SRQ, cq *CQ, n int) (qa, qb []*QP, pipes []*ddptest.Pipe) {
	t.Helper()
	for i := range n {
		p := ddptest.NewPipe(uint64(i), 200)
		a, err := pd.NewQP(QPConfig{SendCQ: cq, RecvCQ: cq})
		if err != nil {
			t.Fatal(err)
		}
		b, err := pd.NewQP(QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq})
		if err != nil {
			t.Fatal(err)
		}
		join(p, a, b)
		qa, qb, pipes = append(qa, a), append(qb, b), append(pipes, p)
	}
	return qa, qb, pipes
}

// join connects two queue pairs over a pipe.
func join(p *ddptest.Pipe, a, b *QP) {
	for i, qp := range []*QP{a, b} {
		end := []*ddptest.End{p.A, p.B}[i]
		end.Attach(qp.stream())
		qp.stream().Bind(end)
		qp.stream().Start(16)
	}
}

func TestSRQServesManyQueuePairs(t *testing.T) {
	const qps, rounds, size = 8, 20, 500
	d := bare(t)
	pd := d.AllocPD()
	cq, _ := d.NewCQ(1000)
	srq, err := pd.NewSRQ(SRQConfig{Depth: qps, MaxSGE: 2, Context: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	qa, _, pipes := shared(t, d, pd, srq, cq, qps)
	mr, _ := pd.Register(make([]byte, qps*size), LocalWrite)
	src, _ := pd.Register(make([]byte, qps*size), 0)
	post := func(slot int) {
		t.Helper()
		off := slot * size
		if err := srq.PostRecv(RecvWR{ID: uint64(slot), SGL: []SGE{mr.Slice(off, 100), mr.Slice(off+100, size-100)}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range qps {
		post(i)
	}
	if err := srq.PostRecv(RecvWR{}); !errors.Is(err, ErrQueueFull) {
		t.Errorf("receive over the depth: %v", err)
	}
	for round := range rounds {
		for i, qp := range qa {
			b := src.Bytes()[i*size : (i+1)*size]
			fillPattern(b, byte(round*qps+i))
			if err := qp.PostSend(SendWR{Op: OpSend, SGL: []SGE{src.Slice(i*size, size)}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range pipes {
			p.Run()
		}
		var wc [qps + 1]WC
		if n := cq.Poll(wc[:]); n != qps {
			t.Fatalf("round %d: %d completions, want %d", round, n, qps)
		}
		for _, c := range wc[:qps] {
			i := int(c.QP.Num()-qa[0].Num()) / 2 // the sender's index
			slot := int(c.ID)
			if c.Status != StatusSuccess || !c.Recv || c.Len != size ||
				!bytes.Equal(mr.Bytes()[slot*size:(slot+1)*size], src.Bytes()[i*size:(i+1)*size]) {
				t.Fatalf("round %d: completion %+v of sender %d", round, c, i)
			}
			post(slot)
		}
	}
	if a := srq.Query(); a.Depth != qps || a.MaxSGE != 2 || a.Posted != qps || a.Limit != 0 || srq.Context() != "mine" || srq.PD() != pd {
		t.Errorf("attributes %+v", a)
	}
}

func TestSRQLimitEvent(t *testing.T) {
	d := bare(t)
	pd := d.AllocPD()
	cq, _ := d.NewCQ(100)
	srq, _ := pd.NewSRQ(SRQConfig{Depth: 10, Limit: 8})
	qa, _, p := shared(t, d, pd, srq, cq, 1)
	if err := srq.PostRecv(make([]RecvWR, 10)...); err != nil {
		t.Fatal(err)
	}
	send := func(n, events int) {
		t.Helper()
		for range n {
			qa[0].PostSend(SendWR{Op: OpSend})
			p[0].Run()
		}
		for range events {
			if e, ok := d.PollEvent(); !ok || e.Type != EventSRQLimit || e.SRQ != srq {
				t.Errorf("event %v", e)
			}
		}
		if e, ok := d.PollEvent(); ok {
			t.Errorf("unexpected event %v", e)
		}
	}
	send(2, 0)
	send(1, 1) // seven left
	send(1, 0) // once
	if srq.Query().Limit != 0 {
		t.Error("limit is still armed")
	}
	if err := srq.SetLimit(11); !errors.Is(err, ErrLimit) {
		t.Errorf("limit over the depth: %v", err)
	}
	srq.SetLimit(7)
	send(1, 1) // below it already
	if err := srq.Resize(4); !errors.Is(err, ErrLimit) {
		t.Errorf("resized below what is posted: %v", err)
	}
	if err := srq.Resize(20); err != nil {
		t.Error(err)
	}
	if err := srq.PostRecv(make([]RecvWR, 15)...); err != nil {
		t.Error(err)
	}
	send(20, 0)
}

// TestSRQFairShare: RFC 5040, Section 8.1.2, item 8, and RFC 5042, Section 6.4:
// one peer cannot take all receives, and what it holds can be seen. A message takes a
// receive in its turn, so a peer has one, whatever it sends; the rest is memory that
// counts against the receive buffer of its association.
func TestSRQFairShare(t *testing.T) {
	const depth = 32
	d := bare(t)
	pd := d.AllocPD()
	cq, _ := d.NewCQ(1000)
	srq, _ := pd.NewSRQ(SRQConfig{Depth: depth})
	mr, _ := pd.Register(make([]byte, 100), LocalWrite)
	qa, qb, pipes := shared(t, d, pd, srq, cq, 2)
	for range depth {
		if err := srq.PostRecv(RecvWR{SGL: []SGE{mr.Slice(0, 100)}}); err != nil {
			t.Fatal(err)
		}
	}
	// Messages that never end, as many as the peer likes.
	const many = 10 * depth
	for msn := range uint32(many) {
		pipes[0].A.Inject(append(ddp.AppendHeader(nil, &ddp.Header{Ctrl: rdmap.Control(rdmap.Send), MSN: msn + 1}), 1))
	}
	pipes[0].Run()
	if a := qb[0].Query(); a.RecvQueued != 1 || a.State != StateRTS {
		t.Errorf("hostile peer holds %d receives in state %v, want 1", a.RecvQueued, a.State)
	}
	if got := srq.Query().Posted; got != depth-1 {
		t.Errorf("%d receives left, want %d", got, depth-1)
	}
	if got := pipes[0].B.Held(); got < many*ddp.UntaggedHeaderLen || got > many*300 {
		t.Errorf("%d bytes are held of %d messages", got, many)
	}
	// The other queue pair goes on.
	qa[1].PostSend(SendWR{Op: OpSend, Inline: []byte("x")})
	pipes[1].Run()
	var wc [depth]WC
	if n := cq.Poll(wc[:]); n != 1 || wc[0].Status != StatusSuccess || wc[0].QP != qb[1] {
		t.Errorf("other queue pair: %d completions, %+v", n, wc[0])
	}
	// What the peer held is flushed, and the end announced.
	qb[0].Close()
	pipes[0].Run()
	if n := cq.Poll(wc[:]); n != 1 || wc[0].Status != StatusFlush || !wc[0].Recv || pipes[0].B.Held() != 0 {
		t.Errorf("%d completions, first %+v, %d bytes held", n, wc[0], pipes[0].B.Held())
	}
}

// TestSRQRunsDry: a message that finds the queue empty waits for a receive, and no
// message of another queue pair, nor a later one, is in its way then.
func TestSRQRunsDry(t *testing.T) {
	const msgs = 50
	d := bare(t)
	pd := d.AllocPD()
	cq, _ := d.NewCQ(1000)
	srq, _ := pd.NewSRQ(SRQConfig{Depth: 4})
	qa, qb, pipes := shared(t, d, pd, srq, cq, 2)
	for i := range uint64(msgs) {
		for _, qp := range qa {
			if err := qp.PostSend(SendWR{Op: OpImm, Imm: i}); err != nil {
				t.Fatal(err)
			}
		}
		if i == msgs/2 {
			pipes[0].Run()
			pipes[1].Run()
		}
	}
	var wc [1]WC
	if n := cq.Poll(wc[:]); n > 0 || qb[0].State() != StateRTS || qb[1].State() != StateRTS {
		t.Fatalf("%d completions, states %v and %v", n, qb[0].State(), qb[1].State())
	}
	var next [2]uint64
	for i := range uint64(2 * msgs) {
		if err := srq.PostRecv(RecvWR{ID: i}); err != nil {
			t.Fatal(err)
		}
		for k := range pipes {
			pipes[k].Run()
		}
		if n := cq.Poll(wc[:]); n != 1 || wc[0].Status != StatusSuccess || wc[0].ID != i {
			t.Fatalf("after receive %d: %d completions, %+v", i, n, wc[0])
		}
		k := 0
		if wc[0].QP == qb[1] {
			k = 1
		}
		if wc[0].Imm != next[k] {
			t.Fatalf("message %d of queue pair %d, want %d", wc[0].Imm, k, next[k])
		}
		next[k]++
	}
	for k := range pipes {
		if pipes[k].B.Held() != 0 || next[k] != msgs {
			t.Errorf("queue pair %d: %d bytes held, %d messages", k, pipes[k].B.Held(), next[k])
		}
	}
}

func TestSRQLifecycle(t *testing.T) {
	d := bare(t)
	pd, other := d.AllocPD(), d.AllocPD()
	cq, _ := d.NewCQ(10)
	for name, cfg := range map[string]SRQConfig{"depth": {Depth: MaxSRQDepth + 1}, "list": {MaxSGE: MaxSGE + 1},
		"limit": {Depth: 4, Limit: 5}, "negative": {Depth: -1}} {
		if _, err := pd.NewSRQ(cfg); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	srq, _ := pd.NewSRQ(SRQConfig{Depth: 4, MaxSGE: 1})
	mr, _ := pd.Register(make([]byte, 10), LocalWrite)
	ro, _ := pd.Register(make([]byte, 10), 0)
	for name, wr := range map[string]RecvWR{"read-only": {SGL: []SGE{ro.Slice(0, 1)}},
		"too long": {SGL: []SGE{mr.Slice(0, 1), mr.Slice(1, 1)}}} {
		if err := srq.PostRecv(RecvWR{SGL: []SGE{mr.Slice(0, 1)}}, wr); !errors.Is(err, ErrSGL) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := other.NewQP(QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq}); !errors.Is(err, ErrInvalid) {
		t.Errorf("queue pair of another domain: %v", err)
	}
	qp, err := pd.NewQP(QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq})
	if err != nil {
		t.Fatal(err)
	}
	if err := qp.PostRecv(RecvWR{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("receive posted to the queue pair: %v", err)
	}
	srq.PostRecv(RecvWR{SGL: []SGE{mr.Slice(0, 1)}})
	for name, err := range map[string]error{"srq": srq.Close(), "pd": pd.Close(), "mr": mr.Close(), "cq": cq.Close()} {
		if !errors.Is(err, ErrBusy) {
			t.Errorf("closing the %s in use: %v", name, err)
		}
	}
	qp.Close()
	<-qp.Done()
	if err := srq.Close(); err != nil {
		t.Error(err)
	}
	if err := srq.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("closing again: %v", err)
	}
	if err := srq.PostRecv(RecvWR{}); !errors.Is(err, ErrClosed) {
		t.Errorf("posting to a closed queue: %v", err)
	}
	if _, err := pd.NewQP(QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq}); !errors.Is(err, ErrClosed) {
		t.Errorf("queue pair with a closed queue: %v", err)
	}
	for name, err := range map[string]error{"mr": mr.Close(), "ro": ro.Close(), "pd": pd.Close(), "cq": cq.Close()} {
		if err != nil {
			t.Errorf("closing the %s: %v", name, err)
		}
	}
}

// TestSRQRunsDryOverTCP: the connection is not read while messages wait for receives,
// and nothing of it is lost.
func TestSRQRunsDryOverTCP(t *testing.T) {
	const msgs = 200
	a, b := newTCPNode(t, Config{}), newTCPNode(t, Config{})
	srq, err := b.pd.NewSRQ(SRQConfig{Depth: 1})
	if err != nil {
		t.Fatal(err)
	}
	qa, qb := connectTCP(t, a, b, QPConfig{SendDepth: msgs}, QPConfig{SRQ: srq})
	for i := range uint64(msgs) {
		if err := qa.PostSend(SendWR{Op: OpImm, Imm: i}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(msgs) {
		if err := srq.PostRecv(RecvWR{ID: i}); err != nil {
			t.Fatal(err)
		}
		if wc := want(t, b.rcq, i, StatusSuccess); wc.Imm != i {
			t.Fatalf("message %d, want %d", wc.Imm, i)
		}
	}
	// A message that waits does not keep the connection from ending.
	if err := qa.PostSend(SendWR{Op: OpImm}); err != nil {
		t.Fatal(err)
	}
	qb.Close()
	wantDone(t, qb, ErrDisconnected)
	qa.Close()
	<-qa.Done()
}
