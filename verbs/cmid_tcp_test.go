package verbs

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

func newTCPCMNode(t *testing.T, cfg Config) *cmNode {
	t.Helper()
	n := &cmNode{node: newTCPNode(t, cfg)}
	var err error
	if n.ch, err = n.dev.NewCMChannel(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.dev.Close() })
	return n
}

// listen makes an identifier that listens.
func (n *cmNode) listen(value any, backlog int) *CMID {
	n.t.Helper()
	id := n.id(value)
	if err := id.ListenTCP("127.0.0.1:0", backlog); err != nil {
		n.t.Fatal(err)
	}
	return id
}

// dial makes an identifier that connects to an address.
func (n *cmNode) dial(addr string, p ConnParams) *CMID {
	n.t.Helper()
	id := n.id(nil)
	if err := id.ResolveTCP(addr, testTimeout); err != nil {
		n.t.Fatal(err)
	}
	wantCM(n.t, n.ch, CMAddrResolved)
	if got := id.RemoteTCP(); got == nil || got.String() != addr {
		n.t.Errorf("resolved %v, want %s", got, addr)
	}
	if err := id.ResolveRoute(testTimeout); err != nil {
		n.t.Fatal(err)
	}
	wantCM(n.t, n.ch, CMRouteResolved)
	n.create(id)
	if err := id.Connect(p); err != nil {
		n.t.Fatal(err)
	}
	return id
}

func TestCMOverTCP(t *testing.T) {
	a, b := newTCPCMNode(t, Config{}), newTCPCMNode(t, Config{})
	// Two listeners on one device.
	servers := []*CMID{b.listen("first", 0), b.listen("second", 0)}
	for round := range 4 {
		server := servers[round%2]
		client := a.dial(server.ListenAddr().String(), ConnParams{PrivateData: []byte("hello")})
		e := wantCM(t, b.ch, CMConnectRequest)
		accepted := e.ID
		if e.Listen != server || accepted == server || string(e.PrivateData) != "hello" || e.PeerIRD != DefaultReadDepth ||
			accepted.Context() != server.Context() || accepted.RemoteTCP() == nil || accepted.ListenAddr() != nil {
			t.Fatalf("request %+v", e)
		}
		b.create(accepted)
		if err := accepted.Accept(ConnParams{PrivateData: []byte("welcome")}); err != nil {
			t.Fatal(err)
		}
		wantCM(t, b.ch, CMEstablished)
		if e := wantCM(t, a.ch, CMEstablished); e.ID != client || string(e.PrivateData) != "welcome" || e.PeerIRD != DefaultReadDepth {
			t.Fatalf("established %+v", e)
		}
		if err := client.QP().PostSend(SendWR{ID: 3, Op: OpRead, Flags: Signaled}); err != nil {
			t.Fatal(err)
		}
		want(t, a.cq, 3, StatusSuccess)
		if err := []*CMID{client, accepted}[round/2].Disconnect(); err != nil {
			t.Fatal(err)
		}
		wantDisconnected(t, a.ch, client)
		wantDisconnected(t, b.ch, accepted)
	}
	for _, s := range servers {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, n := range []*cmNode{a, b} {
		if err := n.ch.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCMOverTCPRejects(t *testing.T) {
	a, b := newTCPCMNode(t, Config{}), newTCPCMNode(t, Config{})
	server := b.listen(nil, 2)
	addr := server.ListenAddr().String()
	id := a.dial(addr, ConnParams{})
	r := wantCM(t, b.ch, CMConnectRequest)
	if err := r.ID.Reject([]byte("no")); err != nil {
		t.Error(err)
	}
	var rejected *RejectError
	if e := wantCM(t, a.ch, CMRejected); e.ID != id || string(e.PrivateData) != "no" || !errors.As(e.Err, &rejected) {
		t.Errorf("rejected: %+v", e)
	}
	r.ID.Close()
	// Two wait; a third is beyond the backlog.
	for range 2 {
		a.dial(addr, ConnParams{})
	}
	r, last := wantCM(t, b.ch, CMConnectRequest), wantCM(t, b.ch, CMConnectRequest)
	over := a.dial(addr, ConnParams{})
	if e := wantCM(t, a.ch, CMConnectError); e.ID != over || e.Err == nil {
		t.Errorf("over the backlog: %+v", e)
	}
	// A request that is closed without an answer, and makes room for another.
	r.ID.Close()
	wantCM(t, a.ch, CMConnectError)
	unseen := a.dial(addr, ConnParams{})
	waits := testContext(t)
	for tick := time.NewTicker(time.Millisecond); ; { // until its event is there
		b.ch.mu.Lock()
		n := len(b.ch.queue)
		b.ch.mu.Unlock()
		if n == 1 {
			break
		}
		select {
		case <-tick.C:
		case <-waits.Done():
			t.Fatal("no request")
		}
	}
	// One that nobody has seen goes with the listener, one that was seen does not.
	server.Close()
	if e := wantCM(t, a.ch, CMConnectError); e.ID != unseen {
		t.Errorf("listener closed: %+v", e)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := b.ch.GetEvent(gone); err == nil {
		t.Errorf("event %v of a closed listener", e.Type)
	}
	b.create(last.ID)
	if err := last.ID.Accept(ConnParams{}); err != nil {
		t.Fatal(err)
	}
	wantCM(t, b.ch, CMEstablished)
	wantCM(t, a.ch, CMEstablished)
	// Nobody listens any more.
	id = a.dial(addr, ConnParams{})
	if e := wantCM(t, a.ch, CMConnectError); e.ID != id || e.Err == nil {
		t.Errorf("nobody listens: %+v", e)
	}
}

func TestCMOverTCPTimesOut(t *testing.T) {
	a := newTCPCMNode(t, Config{})
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	id := a.dial(silent.Addr().String(), ConnParams{Timeout: 50 * time.Millisecond})
	if e := wantCM(t, a.ch, CMUnreachable); e.ID != id || !errors.Is(e.Err, context.DeadlineExceeded) {
		t.Errorf("unanswered: %+v", e)
	}
	wantDone(t, id.QP(), context.DeadlineExceeded)
	// Closed while it connects: no event, and the connection is given up.
	id = a.dial(silent.Addr().String(), ConnParams{})
	qp := id.QP()
	qp.Close()
	if err := id.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-qp.Done():
	case <-testContext(t).Done():
		t.Error("the queue pair does not end")
	}
	for _, addr := range []string{"127.0.0.1", "127.0.0.1:no such service", ":::1"} {
		id := a.id(nil)
		if err := id.ResolveTCP(addr, testTimeout); err != nil {
			t.Fatal(err)
		}
		if e := wantCM(t, a.ch, CMAddrError); e.ID != id || e.Err == nil {
			t.Errorf("%s: %+v", addr, e)
		}
	}
	id = a.id(nil)
	for name, err := range map[string]error{"backlog": id.ListenTCP("127.0.0.1:0", -1), "address": id.ListenTCP("127.0.0.1", 0)} {
		if err == nil {
			t.Errorf("%s: it listens", name)
		}
	}
	if id.ListenAddr() != nil {
		t.Error("it listens")
	}
	if err := id.ListenTCP("127.0.0.1:0", 0); err != nil {
		t.Errorf("after errors: %v", err)
	}
	if err := id.ResolveTCP("127.0.0.1:1", 1); !errors.Is(err, ErrCMState) {
		t.Errorf("resolving what listens: %v", err)
	}
}
