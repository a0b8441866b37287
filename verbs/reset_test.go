package verbs

import (
	"context"
	"errors"
	"testing"
)

// A queue pair that was connected can be connected again, as often as one likes.
func TestResetAndConnectAgain(t *testing.T) {
	for _, tt := range []struct {
		name    string
		a, b    *node
		connect func(a, b *node, qa, qb *QP)
	}{
		{"SCTP", newNode(t, Config{}), newNode(t, Config{}), func(a, b *node, qa, qb *QP) {
			ctx := testContext(t)
			meet(t, qb, func() (*ConnRequest, error) { return b.l.Accept(ctx) }, func(p ConnParams) (ConnInfo, error) {
				return a.dev.Connect(ctx, b.dev.Addr(), qa, p)
			})
		}},
		{"TCP", newTCPNode(t, Config{}), newTCPNode(t, Config{}), func(a, b *node, qa, qb *QP) {
			ctx := testContext(t)
			l, err := b.dev.ListenTCP(ctx, "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			meet(t, qb, func() (*ConnRequest, error) { return l.Accept(ctx) }, func(p ConnParams) (ConnInfo, error) {
				return a.dev.ConnectTCP(ctx, l.Addr().String(), qa, p)
			})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := tt.a, tt.b
			if a.tr != nil {
				l, err := b.dev.Listen()
				if err != nil {
					t.Fatal(err)
				}
				b.l = l
			}
			qa, qb := a.qp(QPConfig{}), b.qp(QPConfig{})
			num := qa.Num()
			msg := b.mr(8, LocalWrite)
			for round := range uint64(20) {
				tt.connect(a, b, qa, qb)
				for id := range uint64(2) {
					if err := qb.PostRecv(RecvWR{ID: 10*round + id, SGL: []SGE{msg.Slice(0, 8)}}); err != nil {
						t.Fatal(err)
					}
				}
				if err := qa.PostSend(SendWR{ID: round, Op: OpSend, Flags: Signaled, Inline: []byte{byte(round)}}); err != nil {
					t.Fatal(err)
				}
				want(t, b.rcq, 10*round, StatusSuccess)
				want(t, a.cq, round, StatusSuccess)
				if msg.Bytes()[0] != byte(round) {
					t.Errorf("round %d: %d arrived", round, msg.Bytes()[0])
				}
				ended := qa.Done()
				if round%2 == 0 {
					if err := qa.Reset(testContext(t)); err != nil {
						t.Fatal(err)
					}
				} else { // as with ibv_modify_qp
					if err := qa.Modify(QPAttr{State: StateIdle}, AttrState); !errors.Is(err, ErrQPState) {
						t.Fatalf("idle while it is connected: %v", err)
					}
					qa.Modify(QPAttr{State: StateError}, AttrState)
					wantDone(t, qa, ErrDisconnected)
					if err := qa.Modify(QPAttr{State: StateIdle}, AttrState); err != nil {
						t.Fatal(err)
					}
				}
				select {
				case <-ended:
				default:
					t.Error("reset, and not done")
				}
				if qa.State() != StateIdle || qa.Err() != nil || qa.Num() != num || qa.ORD() != DefaultReadDepth {
					t.Fatalf("reset: state %v, %v, number %d, ORD %d", qa.State(), qa.Err(), qa.Num(), qa.ORD())
				}
				select {
				case <-qa.Done():
					t.Fatal("done before it has begun again")
				default:
				}
				wantDone(t, qb, ErrDisconnected)
				want(t, b.rcq, 10*round+1, StatusFlush)
				if err := qb.Reset(testContext(t)); err != nil {
					t.Fatal(err)
				}
			}
			qa.Close()
			if err := qa.Reset(testContext(t)); !errors.Is(err, ErrClosed) {
				t.Errorf("reset of a closed queue pair: %v", err)
			}
			if err := a.cq.Close(); err != nil {
				t.Errorf("the queue pair still uses its queue: %v", err)
			}
		})
	}
}

// Receives of one that never was connected are flushed; a connection that
// failed leaves nothing behind.
func TestResetBeforeConnecting(t *testing.T) {
	a, b := newTCPNode(t, Config{}), newTCPNode(t, Config{})
	qa := a.qp(QPConfig{})
	mr := a.mr(8, LocalWrite)
	recv := RecvWR{ID: 4, SGL: []SGE{mr.Slice(0, 8)}}
	if err := qa.PostRecv(recv); err != nil {
		t.Fatal(err)
	}
	if err := qa.Reset(testContext(t)); err != nil {
		t.Fatal(err)
	}
	want(t, a.rcq, 4, StatusFlush)
	ctx := testContext(t)
	l, err := b.dev.ListenTCP(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	if _, err := a.dev.ConnectTCP(ctx, addr, qa, ConnParams{}); err == nil {
		t.Fatal("nobody listens, and it connects")
	}
	if err := qa.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if l, err = b.dev.ListenTCP(ctx, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	qb := b.qp(QPConfig{})
	meet(t, qb, func() (*ConnRequest, error) { return l.Accept(ctx) }, func(p ConnParams) (ConnInfo, error) {
		return a.dev.ConnectTCP(ctx, l.Addr().String(), qa, p)
	})
	if err := qa.PostRecv(recv); err != nil {
		t.Fatal(err)
	}
	if err := qb.PostSend(SendWR{Op: OpSend, Inline: []byte("again")}); err != nil {
		t.Fatal(err)
	}
	if wc := want(t, a.rcq, 4, StatusSuccess); wc.Len != 5 {
		t.Errorf("%d bytes, want 5", wc.Len)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	// What is done at once may win.
	if err := qa.Reset(gone); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("reset with a context that is done: %v", err)
	}
}

// What one peer was granted through a queue pair is not granted to the next, and
// rights that were taken away are back.
func TestResetEndsGrants(t *testing.T) {
	a, b := newTCPNode(t, Config{}), newTCPNode(t, Config{})
	qa, qb := a.qp(QPConfig{}), b.qp(QPConfig{})
	ctx := testContext(t)
	l, err := b.dev.ListenTCP(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	own, err := b.pd.RegisterFor(qb, make([]byte, 8), RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	open := b.mr(8, RemoteWrite)
	write := func(to *MR, status Status) {
		t.Helper()
		meet(t, qb, func() (*ConnRequest, error) { return l.Accept(ctx) }, func(p ConnParams) (ConnInfo, error) {
			return a.dev.ConnectTCP(ctx, l.Addr().String(), qa, p)
		})
		wr := []SendWR{{ID: 1, Op: OpWrite, Flags: Signaled, Inline: []byte{1}, Remote: to.Remote()}, {ID: 2, Op: OpRead, Flags: Signaled}}
		if err := qa.PostSend(wr...); err != nil {
			t.Fatal(err)
		}
		if status == StatusSuccess {
			want(t, a.cq, 1, status)
			want(t, a.cq, 2, status)
		} else {
			var terminated *TerminateError
			<-qa.Done()
			if !errors.As(qa.Err(), &terminated) {
				t.Errorf("the peer's write ends with %v", qa.Err())
			}
			for range 2 {
				var wc [1]WC
				a.cq.Wait(ctx, wc[:])
			}
		}
		for _, qp := range []*QP{qa, qb} {
			if err := qp.Reset(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(own, StatusSuccess)
	write(own, StatusRemoteAccess)
	if err := qb.Modify(QPAttr{}, AttrAccess); err != nil {
		t.Fatal(err)
	}
	write(open, StatusRemoteAccess)
	write(open, StatusSuccess)
}

// Posting while somebody resets is refused or flushed, and never lost.
func TestResetWhilePosting(t *testing.T) {
	a, b := newTCPNode(t, Config{}), newTCPNode(t, Config{})
	qa, qb := connectTCP(t, a, b, QPConfig{}, QPConfig{})
	defer qb.Close()
	mr := a.mr(8, LocalWrite)
	started, stop, posted := make(chan struct{}), make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			if qa.PostRecv(RecvWR{SGL: []SGE{mr.Slice(0, 8)}}) == nil {
				n++
			}
			qa.PostSend(SendWR{Op: OpSend, Inline: []byte{1}})
			qa.Query()
			if n == 1 {
				close(started)
				n++
			}
			select {
			case <-stop:
				posted <- n - 1
				return
			default:
			}
		}
	}()
	<-started
	if err := qa.Reset(testContext(t)); err != nil {
		t.Fatal(err)
	}
	close(stop)
	n := <-posted
	if err := qa.Reset(testContext(t)); err != nil {
		t.Fatal(err)
	}
	flushed := 0
	for wc := make([]WC, 64); ; {
		m := a.rcq.Poll(wc)
		if m == 0 {
			break
		}
		flushed += m
	}
	if flushed != n {
		t.Errorf("%d receives completed of %d", flushed, n)
	}
}
