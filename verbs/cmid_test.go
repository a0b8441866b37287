package verbs

import (
	"context"
	"errors"
	"testing"
	"time"
)

// wantCM takes the next event of a channel and checks it.
func wantCM(t *testing.T, c *CMChannel, typ CMEventType) CMEvent {
	t.Helper()
	e, err := c.GetEvent(testContext(t))
	if err != nil {
		t.Fatalf("waiting for %q: %v", typ, err)
	}
	if e.Type != typ {
		t.Fatalf("event %q (%v), want %q", e.Type, e.Err, typ)
	}
	return e
}

// cmNode is a node with an event channel.
type cmNode struct {
	*node
	ch *CMChannel
}

func newCMNode(t *testing.T, cfg Config) *cmNode {
	t.Helper()
	n := &cmNode{node: newNode(t, cfg)}
	var err error
	if n.ch, err = n.dev.NewCMChannel(); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *cmNode) id(value any) *CMID {
	n.t.Helper()
	id, err := n.ch.NewID(value)
	if err != nil {
		n.t.Fatal(err)
	}
	return id
}

func (n *cmNode) create(id *CMID) {
	n.t.Helper()
	if err := id.CreateQP(n.pd, QPConfig{SendCQ: n.cq, RecvCQ: n.rcq, SendDepth: 4, RecvDepth: 4}); err != nil {
		n.t.Fatal(err)
	}
}

// resolve brings an identifier to where it can connect to b.
func (n *cmNode) resolve(b *cmNode, id *CMID) {
	n.t.Helper()
	if err := id.ResolveAddr(b.dev.Addr().String(), testTimeout); err != nil {
		n.t.Fatal(err)
	}
	wantCM(n.t, n.ch, CMAddrResolved)
	if err := id.ResolveRoute(testTimeout); err != nil {
		n.t.Fatal(err)
	}
	wantCM(n.t, n.ch, CMRouteResolved)
	n.create(id)
}

// wantDisconnected waits until an identifier is disconnected, and closes it with
// its queue pair.
func wantDisconnected(t *testing.T, ch *CMChannel, id *CMID) {
	t.Helper()
	if e := wantCM(t, ch, CMDisconnected); e.ID != id || !errors.Is(e.Err, ErrDisconnected) {
		t.Errorf("disconnected %+v", e)
	}
	wantDone(t, id.QP(), ErrDisconnected)
	id.QP().Close()
	if err := id.Close(); err != nil {
		t.Error(err)
	}
	if err := id.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed again: %v", err)
	}
}

func TestCMConnectAndDisconnect(t *testing.T) {
	a, b := newCMNode(t, Config{}), newCMNode(t, Config{})
	server := b.id("server")
	if err := server.Listen(0); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		client := a.id(round)
		a.resolve(b, client)
		if err := client.Connect(ConnParams{PrivateData: []byte("hello")}); err != nil {
			t.Fatal(err)
		}
		e := wantCM(t, b.ch, CMConnectRequest)
		if e.Listen != server || e.ID == server || string(e.PrivateData) != "hello" || e.PeerIRD != DefaultReadDepth ||
			e.ID.Context() != "server" || !e.ID.RemoteAddr().Equal(a.dev.Addr()) {
			t.Fatalf("request %+v", e)
		}
		accepted := e.ID
		b.create(accepted)
		if err := accepted.Accept(ConnParams{PrivateData: []byte("welcome")}); err != nil {
			t.Fatal(err)
		}
		wantCM(t, b.ch, CMEstablished)
		if e := wantCM(t, a.ch, CMEstablished); e.ID != client || string(e.PrivateData) != "welcome" {
			t.Fatalf("established %+v", e)
		}
		if err := client.QP().PostSend(SendWR{ID: 3, Op: OpRead, Flags: Signaled}); err != nil {
			t.Fatal(err)
		}
		want(t, a.cq, 3, StatusSuccess)
		if err := client.Close(); !errors.Is(err, ErrBusy) {
			t.Errorf("closing an identifier with a queue pair: %v", err)
		}
		end := []*CMID{client, accepted}[round%2]
		if err := end.Disconnect(); err != nil {
			t.Fatal(err)
		}
		wantDisconnected(t, a.ch, client)
		wantDisconnected(t, b.ch, accepted)
	}
	if err := b.ch.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("channel with an identifier: %v", err)
	}
	server.Close()
	for _, n := range []*cmNode{a, b} {
		if err := n.ch.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := a.ch.NewID(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("identifier of a closed channel: %v", err)
	}
}

func TestCMReject(t *testing.T) {
	a, b := newCMNode(t, Config{}), newCMNode(t, Config{})
	// Nobody listens.
	id := a.id(nil)
	a.resolve(b, id)
	id.Connect(ConnParams{})
	if e := wantCM(t, a.ch, CMRejected); !errors.Is(e.Err, ErrRefused) {
		t.Errorf("nobody listens: %v", e.Err)
	}
	server := b.id(nil)
	if err := server.Listen(2); err != nil {
		t.Fatal(err)
	}
	if err := b.id(nil).Listen(0); !errors.Is(err, ErrBusy) {
		t.Errorf("second listener: %v", err)
	}
	id = a.id(nil)
	a.resolve(b, id)
	id.Connect(ConnParams{})
	r := wantCM(t, b.ch, CMConnectRequest)
	if err := r.ID.Reject(make([]byte, MaxPrivateData+1)); !errors.Is(err, ErrPrivateData) {
		t.Errorf("private data: %v", err)
	}
	if err := r.ID.Reject([]byte("no")); err != nil {
		t.Error(err)
	}
	var rej *RejectError
	if e := wantCM(t, a.ch, CMRejected); string(e.PrivateData) != "no" || !errors.As(e.Err, &rej) {
		t.Errorf("rejected: %+v", e)
	}
	r.ID.Close()
	// Beyond the backlog, and by closing a request that waits.
	for i := range byte(3) {
		id := a.id(i)
		a.resolve(b, id)
		id.Connect(ConnParams{PrivateData: []byte{i}})
		defer id.QP().Close()
	}
	over := wantCM(t, a.ch, CMRejected)
	if !errors.Is(over.Err, ErrRefused) {
		t.Errorf("over the backlog: %v", over.Err)
	}
	r = wantCM(t, b.ch, CMConnectRequest)
	r.ID.Close()
	e := wantCM(t, a.ch, CMRejected)
	if !errors.Is(e.Err, ErrRefused) || e.ID == over.ID || e.ID.Context() != r.PrivateData[0] {
		t.Errorf("closed without an answer: %v", e.Err)
	}
	// One that nobody has seen goes with the listener.
	server.Close()
	if last := wantCM(t, a.ch, CMRejected); !errors.Is(last.Err, ErrRefused) || last.ID == over.ID || last.ID == e.ID {
		t.Errorf("listener closed: %v", last.Err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := b.ch.GetEvent(ctx); err == nil {
		t.Errorf("event %v of a closed listener", e.Type)
	}
}

func TestCMTimeouts(t *testing.T) {
	a, b := newCMNode(t, Config{}), newCMNode(t, Config{})
	b.id(nil).Listen(0)
	id := a.id(nil)
	a.resolve(b, id)
	id.Connect(ConnParams{Timeout: time.Millisecond}) // nobody answers
	if e := wantCM(t, a.ch, CMUnreachable); !errors.Is(e.Err, context.DeadlineExceeded) {
		t.Errorf("unanswered: %v", e.Err)
	}
	wantDone(t, id.QP(), context.DeadlineExceeded)
	if err := id.Connect(ConnParams{}); !errors.Is(err, ErrCMState) {
		t.Errorf("connecting again: %v", err)
	}
	// The blocking form has the same.
	qp := a.qp(QPConfig{})
	if _, err := a.dev.Connect(t.Context(), b.dev.Addr(), qp, ConnParams{Timeout: time.Millisecond}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Connect: %v", err)
	}
	// Nobody is there.
	gone := newNode(t, Config{})
	nowhere := gone.dev.Addr().String()
	gone.tr.Close()
	id = a.id(nil)
	id.ResolveAddr(nowhere, testTimeout)
	wantCM(t, a.ch, CMAddrResolved)
	id.ResolveRoute(20 * time.Millisecond)
	if e := wantCM(t, a.ch, CMRouteError); e.Err == nil {
		t.Error("no reason")
	}
	// It may be tried again, or given up: then there is no event.
	if err := id.ResolveRoute(testTimeout); err != nil {
		t.Error(err)
	}
	if err := id.Close(); err != nil {
		t.Error(err)
	}
	id = a.id(nil)
	id.ResolveAddr("not an address", testTimeout)
	if e := wantCM(t, a.ch, CMAddrError); e.ID != id {
		t.Error("event of another identifier")
	}
}

func TestCMStates(t *testing.T) {
	a := newCMNode(t, Config{})
	id := a.id(nil)
	for name, err := range map[string]error{"route": id.ResolveRoute(1), "connect": id.Connect(ConnParams{}),
		"accept": id.Accept(ConnParams{}), "reject": id.Reject(nil), "disconnect": id.Disconnect()} {
		if !errors.Is(err, ErrCMState) {
			t.Errorf("%s of a fresh identifier: %v", name, err)
		}
	}
	if err := id.Connect(ConnParams{PrivateData: make([]byte, MaxPrivateData+1)}); !errors.Is(err, ErrPrivateData) {
		t.Errorf("private data: %v", err)
	}
	if err := id.CreateQP(newDevice(Config{}).AllocPD(), QPConfig{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("domain of another device: %v", err)
	}
	a.create(id)
	if err := id.CreateQP(a.pd, QPConfig{SendCQ: a.cq, RecvCQ: a.rcq}); !errors.Is(err, ErrCMState) {
		t.Errorf("second queue pair: %v", err)
	}
	if err := id.Listen(-1); !errors.Is(err, ErrLimit) {
		t.Errorf("negative backlog: %v", err)
	}
	id.QP().Close()
	id.Close()
	for name, err := range map[string]error{"listen": id.Listen(0), "resolve": id.ResolveAddr("127.0.0.1/1", 1),
		"create": id.CreateQP(a.pd, QPConfig{})} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s of a closed identifier: %v", name, err)
		}
	}
	if err := a.dev.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("device with a channel: %v", err)
	}
}

func TestCMLostConnection(t *testing.T) {
	a, b := newCMNode(t, Config{}), newCMNode(t, Config{})
	b.id(nil).Listen(0)
	id := a.id(nil)
	a.resolve(b, id)
	id.Connect(ConnParams{})
	r := wantCM(t, b.ch, CMConnectRequest)
	b.create(r.ID)
	if err := r.ID.Accept(ConnParams{}); err != nil {
		t.Fatal(err)
	}
	wantCM(t, a.ch, CMEstablished)
	wantCM(t, b.ch, CMEstablished)
	b.dev.Associations()[0].Abort("test")
	for _, n := range []*cmNode{a, b} {
		if e := wantCM(t, n.ch, CMDisconnected); e.Err == nil || errors.Is(e.Err, ErrDisconnected) {
			t.Errorf("lost: %v", e.Err)
		}
	}
}

func TestCMRequestsTakenBackDoNotPileUp(t *testing.T) {
	const backlog = 4
	a, b := newNode(t, Config{}), newCMNode(t, Config{Backlog: backlog})
	server := b.id(nil)
	if err := server.Listen(0); err != nil {
		t.Fatal(err)
	}
	takeBack(t, a, b.node, b.ch.wake, backlog, func() int {
		b.ch.mu.Lock()
		defer b.ch.mu.Unlock()
		return len(b.ch.queue)
	})
	server.Close()
	if err := b.ch.Close(); err != nil {
		t.Errorf("identifiers are left: %v", err)
	}
}
