package verbs

import (
	"context"
	"errors"
	"testing"

	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/rdmap"
)

// answerWith has b answer a connection of a with arbitrary enhanced data.
func answerWith(t *testing.T, a, b *node, ca, cb QPConfig, e ddpsctp.Enhanced) (qa, qb *QP, err error) {
	t.Helper()
	l, err := b.dev.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	qa, qb = a.qp(ca), b.qp(cb)
	go func() {
		r, err := l.Accept(testContext(t))
		if err != nil {
			return
		}
		r.r.Accept(qb.stream(), func(s *ddpsctp.Session) error {
			qb.stream().Bind(s)
			return qb.stream().Start(qb.cfg.ORD)
		}, e, nil)
	}()
	_, err = a.dev.Connect(testContext(t), b.dev.Addr(), qa, ConnParams{})
	return qa, qb, err
}

func TestInsufficientIRD(t *testing.T) {
	// RFC 6581, Section 9.1: "the TERM message MUST contain Layer 2, Error
	// Type 0, Error Code 6."
	a, b := newNode(t, Config{}), newNode(t, Config{})
	qa, qb, err := answerWith(t, a, b, QPConfig{IRD: 4}, QPConfig{}, ddpsctp.Enhanced{IRD: 4, ORD: 5})
	if !errors.Is(err, ErrReadDepth) {
		t.Errorf("Connect: %v", err)
	}
	wantDone(t, qa, rdmap.FaultInsufficientIRD)
	wantDone(t, qb, rdmap.FaultInsufficientIRD)
}

func TestDepthsLeftToTheULP(t *testing.T) {
	// RFC 6581, Section 9.1: "An all ones value (0x3FFF) indicates that
	// automatic negotiation of the IRD or ORD is not desired".
	a, b := newNode(t, Config{}), newNode(t, Config{})
	qa, _, err := answerWith(t, a, b, QPConfig{ORD: 7}, QPConfig{}, ddpsctp.Enhanced{IRD: ddpsctp.ULPDepth, ORD: ddpsctp.ULPDepth})
	if err != nil || qa.ORD() != 7 {
		t.Errorf("Connect: %v, ORD %d, want 7", err, qa.ORD())
	}
}

func TestResponderLeavesDepthsToTheULP(t *testing.T) {
	// RFC 6581, Section 9.1: "by leaving its local endpoint IRD value unchanged
	// and setting the IRD to 0x3FFF in its reply message", and the same for ORD.
	qp := newNode(t, Config{}).qp(QPConfig{IRD: 5, ORD: 6})
	for _, tt := range []struct{ peerIRD, peerORD, ird, ord, own int }{
		{ddpsctp.ULPDepth, ddpsctp.ULPDepth, ddpsctp.ULPDepth, ddpsctp.ULPDepth, 6},
		{ddpsctp.ULPDepth, 2, 5, ddpsctp.ULPDepth, 6},
		{3, ddpsctp.ULPDepth, ddpsctp.ULPDepth, 3, 3},
		{9, 9, 5, 6, 6},
	} {
		e, own := (&ConnRequest{PeerIRD: tt.peerIRD, PeerORD: tt.peerORD}).depths(qp)
		if e.IRD != tt.ird || e.ORD != tt.ord || own != tt.own {
			t.Errorf("request with IRD %#x, ORD %#x: answer %+v and ORD %d, want %+v", tt.peerIRD, tt.peerORD, e, own, tt)
		}
	}
}

func TestRequestsTakenBackDoNotPileUp(t *testing.T) {
	const backlog = 4
	a, b := newNode(t, Config{}), newNode(t, Config{Backlog: backlog})
	l, err := b.dev.Listen()
	if err != nil {
		t.Fatal(err)
	}
	takeBack(t, a, b, l.wake, backlog, func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.waiting)
	})
}

func TestConnectToSelf(t *testing.T) {
	n := newNode(t, Config{})
	if _, err := n.dev.Connect(testContext(t), n.dev.Addr(), n.qp(QPConfig{}), ConnParams{}); !errors.Is(err, ddpsctp.ErrSelf) {
		t.Errorf("Connect: %v, want %v", err, ddpsctp.ErrSelf)
	}
}

// TestConnectBothWaysAtOnce makes both devices open the association, and a
// session on it, at the same time.
func TestConnectBothWaysAtOnce(t *testing.T) {
	for range 20 {
		n := [2]*node{newNode(t, Config{}), newNode(t, Config{})}
		errs := make(chan error, 4)
		var ls [2]*Listener
		for i, x := range n {
			var err error
			if ls[i], err = x.dev.Listen(); err != nil {
				t.Fatal(err)
			}
		}
		for i, x := range n {
			l := ls[i]
			in, out := x.qp(QPConfig{SendDepth: 4, RecvDepth: 4}), x.qp(QPConfig{SendDepth: 4, RecvDepth: 4})
			go func() {
				r, err := l.Accept(testContext(t))
				if err == nil {
					err = r.Accept(in, ConnParams{})
				}
				errs <- err
			}()
			go func() {
				_, err := x.dev.Connect(testContext(t), n[1-i].dev.Addr(), out, ConnParams{})
				errs <- err
			}()
		}
		for range 4 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		for _, x := range n {
			if st := x.dev.Stats(); st.Associations != 1 || st.Collided != 0 {
				t.Errorf("%d associations, %d collisions", st.Associations, st.Collided)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// takeBack has many peers ask for a connection and take that back: those that
// wait, as the last function counts them, must stay few.
func takeBack(t *testing.T, a, b *node, wake doorbell, backlog int, waiting func() int) {
	t.Helper()
	arrived := 0
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := a.dev.Connect(ctx, b.dev.Addr(), a.qp(QPConfig{SendDepth: 1, RecvDepth: 1}), ConnParams{})
			done <- err
		}()
		select {
		case <-wake: // it has arrived
			arrived++
			cancel()
			<-done
		case err := <-done: // refused: those before are not taken back yet
			cancel()
			if !errors.Is(err, ErrRefused) {
				t.Fatal(err)
			}
		}
		if n := waiting(); n > backlog {
			t.Fatalf("%d requests wait, want at most %d", n, backlog)
		}
	}
	if arrived <= backlog {
		t.Errorf("only %d requests arrived", arrived)
	}
}
