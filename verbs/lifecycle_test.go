package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp"
)

func TestManyQueuePairsShareOneAssociation(t *testing.T) {
	const n = 64
	a, b := newNode(t, Config{}), newNode(t, Config{})
	la, err := a.dev.Listen()
	if err != nil {
		t.Fatal(err)
	}
	a.l = la
	var pairs [n][2]*QP
	for i := range pairs {
		if i%2 == 0 {
			pairs[i][0], pairs[i][1] = connect(t, a, b, QPConfig{SendDepth: 8, RecvDepth: 8}, QPConfig{SendDepth: 8, RecvDepth: 8})
		} else {
			pairs[i][1], pairs[i][0] = connect(t, b, a, QPConfig{SendDepth: 8, RecvDepth: 8}, QPConfig{SendDepth: 8, RecvDepth: 8})
		}
	}
	for _, x := range []*node{a, b} {
		if got := x.tr.Stats().Associations; got != 1 {
			t.Errorf("%d associations, want 1", got)
		}
		if st := x.dev.Stats(); st.Associations != 1 || st.Initiated != n/2 || st.Accepted != n/2 || st.Killed+st.Dropped+st.Collided != 0 || st.Regions != n {
			t.Errorf("counters %+v", st)
		}
	}
	const size = 20000
	src, dst := a.mr(n*size, LocalWrite), b.mr(n*size, RemoteWrite)
	fillPattern(src.Bytes(), 3)
	var wg sync.WaitGroup
	for i := range pairs {
		wg.Go(func() {
			// The completion of a write says nothing about the peer's memory;
			// that of a read after it does.
			to := dst.Remote().At(uint64(i * size))
			if err := pairs[i][0].PostSend(
				SendWR{Op: OpWrite, SGL: []SGE{src.Slice(i*size, size)}, Remote: to},
				SendWR{ID: uint64(i), Op: OpRead, Flags: Signaled, Remote: to}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := make(map[uint64]bool)
	var wc [16]WC
	for len(seen) < n {
		k, err := a.cq.Wait(testContext(t), wc[:])
		if err != nil {
			t.Fatal(err)
		}
		for i := range k {
			if wc[i].Status != StatusSuccess || seen[wc[i].ID] || wc[i].QP != pairs[wc[i].ID][0] {
				t.Fatalf("completion %+v: %v", wc[i], wc[i].Err())
			}
			seen[wc[i].ID] = true
		}
	}
	for i := range pairs {
		// For the race detector, which does not see packets.
		if err := pairs[i][1].PostRecv(RecvWR{}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(src.Bytes(), dst.Bytes()) {
		t.Error("memory differs")
	}
	// Closing them all frees their streams: as many again fit.
	for round := range 3 {
		for i := range pairs {
			if err := pairs[i][0].Disconnect(testContext(t)); err != nil {
				t.Fatal(err)
			}
			wantDone(t, pairs[i][1], ErrDisconnected)
			pairs[i][0].Close()
			pairs[i][1].Close()
			pairs[i][0], pairs[i][1] = connect(t, a, b, QPConfig{SendDepth: 8, RecvDepth: 8}, QPConfig{SendDepth: 8, RecvDepth: 8})
		}
		_ = round
	}
}

func TestStreamsRunOut(t *testing.T) {
	a, b := newNode(t, Config{Streams: 4}), newNode(t, Config{Streams: 4})
	for range 4 {
		connect(t, a, b, QPConfig{}, QPConfig{})
	}
	if _, err := a.dev.Connect(testContext(t), b.dev.Addr(), a.qp(QPConfig{}), ConnParams{}); err == nil {
		t.Error("a fifth queue pair on four streams")
	}
}

func TestRejectAndRefuse(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{Backlog: 2})
	qp := a.qp(QPConfig{})
	if _, err := a.dev.Connect(testContext(t), b.dev.Addr(), qp, ConnParams{}); !errors.Is(err, ErrRefused) {
		t.Errorf("nobody listens: %v", err)
	}
	wantDone(t, qp, ErrRefused)
	l, err := b.dev.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.dev.Listen(); !errors.Is(err, ErrBusy) {
		t.Errorf("second listener: %v", err)
	}
	go func() {
		r, err := l.Accept(testContext(t))
		if err == nil && string(r.PrivateData) == "please" && r.Remote.Equal(a.dev.Addr()) {
			r.Reject([]byte("no room"))
		}
	}()
	qp = a.qp(QPConfig{})
	_, err = a.dev.Connect(testContext(t), b.dev.Addr(), qp, ConnParams{PrivateData: []byte("please")})
	var rej *RejectError
	if !errors.As(err, &rej) || string(rej.PrivateData) != "no room" {
		t.Errorf("rejected: %v", err)
	}
	if _, err := a.dev.Connect(testContext(t), b.dev.Addr(), qp, ConnParams{}); !errors.Is(err, ErrQPState) {
		t.Errorf("connecting a queue pair again: %v", err)
	}
	// Two requests may wait, the third is refused (RFC 5043, Section 6.4).
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := a.dev.Connect(ctx, b.dev.Addr(), a.qp(QPConfig{}), ConnParams{})
			errs <- err
		}()
	}
	if err := <-errs; !errors.Is(err, ErrRefused) {
		t.Errorf("over the backlog: %v", err)
	}
	cancel()
	for range 2 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
	}
	// The requests were taken back; there is room again, sooner or later.
	r, err := l.Accept(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for {
		err := r.Accept(b.qp(QPConfig{}), ConnParams{})
		if err == nil || errors.Is(err, ErrDisconnected) {
			break
		}
		t.Fatal(err)
	}
	l.Close()
	if _, err := l.Accept(testContext(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("closed listener: %v", err)
	}
	if _, err := a.dev.Connect(testContext(t), b.dev.Addr(), a.qp(QPConfig{}), ConnParams{PrivateData: make([]byte, MaxPrivateData+1)}); !errors.Is(err, ErrPrivateData) {
		t.Errorf("private data: %v", err)
	}
}

func TestNotADDPEndpoint(t *testing.T) {
	// RFC 5043, Section 11.1, in both roles.
	a, b := newNode(t, Config{}), newNode(t, Config{})
	other := ddpsctp.Adaptation + 1
	for name, cfg := range map[string]*sctp.Config{"none": nil, "another": {Adaptation: &other}} {
		plain, err := b.tr.Listen(0, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.dev.Connect(testContext(t), plain.Addr(), a.qp(QPConfig{}), ConnParams{}); err == nil {
			t.Errorf("indication %s: connected", name)
		}
		as, err := plain.Connect(testContext(t), a.dev.Addr())
		if err == nil {
			select {
			case <-as.Done():
			case <-testContext(t).Done():
				t.Errorf("indication %s: the association was kept", name)
			}
		}
	}
}

// Nothing can be sent before the peer has agreed (RFC 5043, Section 6.6).
func TestNothingIsPostedBeforeConnecting(t *testing.T) {
	qp := newNode(t, Config{}).qp(QPConfig{})
	for _, op := range []Opcode{OpSend, OpWrite, OpRead, OpImm} {
		if err := qp.PostSend(SendWR{Op: op}); !errors.Is(err, ErrQPState) {
			t.Errorf("%v: %v", op, err)
		}
	}
}

func TestReadDepthsAreNegotiated(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{})
	for _, tt := range []struct {
		ca, cb     QPConfig
		orda, ordb int
	}{
		{QPConfig{IRD: 4, ORD: 8}, QPConfig{IRD: 2, ORD: 1}, 2, 1},
		{QPConfig{IRD: 4, ORD: 1}, QPConfig{IRD: 9, ORD: 9}, 1, 4},
		{QPConfig{IRD: -1, ORD: 3}, QPConfig{IRD: 3, ORD: 3}, 3, 0},
		{QPConfig{IRD: 3, ORD: 3}, QPConfig{IRD: -1, ORD: 2}, 0, 2},
	} {
		qa, qb := connect(t, a, b, tt.ca, tt.cb)
		if qa.ORD() != tt.orda || qb.ORD() != tt.ordb {
			t.Errorf("%+v, %+v: ORD %d and %d, want %d and %d", tt.ca, tt.cb, qa.ORD(), qb.ORD(), tt.orda, tt.ordb)
		}
	}
}

func TestDisconnectFlushes(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{})
	qa, qb := connect(t, a, b, QPConfig{}, QPConfig{})
	mr := b.mr(10, LocalWrite)
	for i := range 3 {
		if err := qb.PostRecv(RecvWR{ID: uint64(i), SGL: []SGE{mr.Slice(0, 10)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := mr.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("region named by receives: %v, want %v", err, ErrBusy)
	}
	if err := b.pd.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("domain in use: %v", err)
	}
	if err := b.rcq.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("completion queue in use: %v", err)
	}
	if err := b.dev.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("device in use: %v", err)
	}
	if err := qa.PostSend(SendWR{Op: OpSend, Inline: []byte("bye")}); err != nil {
		t.Fatal(err)
	}
	if err := qa.Disconnect(testContext(t)); err != nil {
		t.Fatal(err)
	}
	want(t, b.rcq, 0, StatusSuccess)
	for i := range 2 {
		wc := want(t, b.rcq, uint64(i+1), StatusFlush)
		if !errors.Is(wc.Err(), ErrWRFlush) || !errors.Is(wc.Err(), ErrDisconnected) {
			t.Errorf("error of a flushed receive: %v", wc.Err())
		}
	}
	if err := qa.PostSend(SendWR{Op: OpImm}); !errors.Is(err, ErrQPState) {
		t.Errorf("PostSend after the end: %v", err)
	}
	if err := qb.PostRecv(RecvWR{}); !errors.Is(err, ErrQPState) {
		t.Errorf("PostRecv after the end: %v", err)
	}
	wantDone(t, qb, ErrDisconnected)
	for _, f := range []func() error{qa.Close, qb.Close, mr.Close, b.pd.Close, b.cq.Close, b.rcq.Close} {
		if err := f(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if b.l != nil {
		b.l.Close()
	}
	if err := b.dev.Close(); err != nil {
		t.Errorf("closing the device: %v", err)
	}
	for _, f := range []func() error{qb.Close, mr.Close, b.pd.Close, b.cq.Close, b.dev.Close} {
		if err := f(); !errors.Is(err, ErrClosed) {
			t.Errorf("second close: %v, want %v", err, ErrClosed)
		}
	}
}

func TestPeerVanishes(t *testing.T) {
	// If what tells of the end is lost the peer is given up within seconds, but not
	// while the machine has other things to do for a moment.
	a, b := newNode(t, Config{SCTP: &sctp.Config{RTOInitial: 20 * time.Millisecond, RTOMin: 10 * time.Millisecond, RTOMax: time.Second, MaxRetransmits: 10}}), newNode(t, Config{})
	qa, _ := connect(t, a, b, QPConfig{}, QPConfig{})
	src := a.mr(1<<20, 0)
	dst := b.mr(1<<20, RemoteWrite).Remote()
	b.tr.Close()
	if err := qa.PostSend(SendWR{ID: 1, Op: OpWrite, SGL: []SGE{src.Slice(0, 1<<20)}, Remote: dst}); err == nil {
		want(t, a.cq, 1, StatusFlush)
	}
	select {
	case <-qa.Done():
	case <-testContext(t).Done():
		t.Fatalf("state %v", qa.State())
	}
	if qa.Err() == nil {
		t.Error("no error")
	}
	if err := src.Close(); err != nil {
		t.Errorf("region after the end: %v", err)
	}
}

func TestCloseOfConnectedQP(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{})
	qa, qb := connect(t, a, b, QPConfig{}, QPConfig{})
	src := a.mr(1<<20, 0)
	dst := b.mr(1<<20, RemoteWrite)
	if err := qa.PostSend(SendWR{ID: 1, Op: OpWrite, Flags: Signaled, SGL: []SGE{src.Slice(0, 1<<20)}, Remote: dst.Remote()}); err != nil {
		t.Fatal(err)
	}
	qa.Close()
	var wc [1]WC
	if _, err := a.cq.Wait(testContext(t), wc[:]); err != nil || wc[0].ID != 1 {
		t.Fatalf("completion %+v, %v", wc[0], err)
	}
	wantDone(t, qa, ErrDisconnected)
	wantDone(t, qb, ErrDisconnected)
	if err := src.Close(); err != nil {
		t.Errorf("region after its completion: %v", err)
	}
}

func TestSendInvalidateOverLoopback(t *testing.T) {
	a, b := newNode(t, Config{}), newNode(t, Config{})
	qa, qb := connect(t, a, b, QPConfig{}, QPConfig{})
	mr, err := b.pd.RegisterFor(qb, make([]byte, 100), RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := qb.PostRecv(RecvWR{ID: 1}); err != nil {
		t.Fatal(err)
	}
	if err := qa.PostSend(SendWR{Op: OpWrite, Inline: []byte("data"), Remote: mr.Remote()},
		SendWR{Op: OpSendInvalidate, Invalidate: mr.STag()}); err != nil {
		t.Fatal(err)
	}
	wc := want(t, b.rcq, 1, StatusSuccess)
	if wc.Flags&WithInvalidate == 0 || wc.Invalidated != mr.STag() || !mr.Invalidated() || string(mr.Bytes()[:4]) != "data" {
		t.Errorf("completion %+v, invalidated %v", wc, mr.Invalidated())
	}
}

func TestConcurrentUse(t *testing.T) {
	// Several goroutines post to one queue pair in both directions.
	a, b := newNode(t, Config{}), newNode(t, Config{})
	qa, qb := connect(t, a, b, QPConfig{SendDepth: 64, RecvDepth: 64}, QPConfig{SendDepth: 64, RecvDepth: 64})
	const workers, each = 4, 50
	ma, mb := a.mr(1<<16, RemoteRead|RemoteWrite|RemoteAtomic), b.mr(1<<16, RemoteRead|RemoteWrite|RemoteAtomic)
	var wg sync.WaitGroup
	run := func(n *node, qp *QP, local *MR, remote RemoteBuf) {
		free := make(chan struct{}, 64)
		for range cap(free) {
			free <- struct{}{}
		}
		wg.Go(func() {
			var wc [8]WC
			for done := 0; done < workers*each; {
				k, err := n.cq.Wait(testContext(t), wc[:])
				if err != nil {
					t.Error(err)
					return
				}
				for i := range k {
					if wc[i].Status != StatusSuccess {
						t.Error(wc[i].Err())
						return
					}
					free <- struct{}{}
				}
				done += k
			}
		})
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					<-free
					off := 1<<15 + w*4096
					wr := SendWR{Op: OpWrite, Flags: Signaled, SGL: []SGE{local.Slice(w*4096, 4096)}, Remote: remote.At(uint64(off))}
					switch i % 3 {
					case 1:
						wr.Op, wr.SGL, wr.Remote = OpRead, []SGE{local.Slice(off, 2048)}, remote.At(uint64(w*4096))
					case 2:
						wr.Op, wr.SGL, wr.Remote, wr.Operand = OpFetchAdd, []SGE{local.Slice(1<<14+w*8, 8)}, remote.At(1<<14+1024), 1
					}
					// Reads and writes of the peer overlap: only the protocol
					// is looked at, not the data.
					if wr.Op == OpRead {
						wr.SGL = []SGE{local.Slice(1<<14+4096+w*2048, 2048)}
						wr.Remote = remote.At(uint64(1<<13 + w*8))
					}
					if err := qp.PostSend(wr); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	run(a, qa, ma, mb.Remote())
	run(b, qb, mb, ma.Remote())
	wg.Wait()
	if qa.State() != StateRTS || qb.State() != StateRTS {
		t.Errorf("states %v, %v: %v", qa.State(), qb.State(), qa.Err())
	}
}

func TestLimits(t *testing.T) {
	n := newNode(t, Config{})
	for name, cfg := range map[string]QPConfig{
		"send depth": {SendDepth: MaxDepth + 1}, "receive depth": {RecvDepth: MaxDepth + 1},
		"list": {MaxSendSGE: MaxSGE + 1}, "inline": {MaxInline: MaxInline + 1}, "IRD": {IRD: MaxReadDepth + 1},
	} {
		cfg.SendCQ, cfg.RecvCQ = n.cq, n.rcq
		if _, err := n.pd.NewQP(cfg); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := n.pd.NewQP(QPConfig{SendCQ: n.cq}); !errors.Is(err, ErrLimit) {
		t.Errorf("without a receive queue: %v", err)
	}
	for _, depth := range []int{0, -1, MaxCQ + 1} {
		if _, err := n.dev.NewCQ(depth); !errors.Is(err, ErrLimit) {
			t.Errorf("queue of %d: %v", depth, err)
		}
	}
	for _, size := range []int{-1, MaxRegion + 1} {
		if _, err := n.pd.AllocMR(size); !errors.Is(err, ErrLimit) {
			t.Errorf("region of %d: %v", size, err)
		}
	}
	if _, err := n.pd.Register(nil, 0x80); !errors.Is(err, ErrAccess) {
		t.Errorf("undefined right: %v", err)
	}
	if mr := n.mr(1, RemoteWrite); mr.Access() != RemoteWrite|LocalWrite {
		t.Errorf("rights = %b", mr.Access())
	}
}

func TestStatusStrings(t *testing.T) {
	for _, s := range []fmt.Stringer{StateRTS, State(99), StatusFlush, Status(99), OpRead, Opcode(99)} {
		if s.String() == "" {
			t.Errorf("%#v has no name", s)
		}
	}
}
