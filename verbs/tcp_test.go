package verbs

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpmpa"
	"github.com/weftstack/weft/rdmap"
)

// newTCPNode makes a node without an SCTP transport.
func newTCPNode(t *testing.T, cfg Config) *node {
	t.Helper()
	return nodeOn(t, nil, cfg)
}

// connectTCP connects a queue pair of a to one of b.
func connectTCP(t *testing.T, a, b *node, ca, cb QPConfig) (qa, qb *QP) {
	t.Helper()
	ctx := testContext(t)
	l, err := b.dev.ListenTCP(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	qa, qb = a.qp(ca), b.qp(cb)
	accept := func() (*ConnRequest, error) {
		r, err := l.Accept(ctx)
		if err == nil && r.RemoteTCP == nil {
			t.Error("a request from nowhere")
		}
		return r, err
	}
	meet(t, qb, accept, func(p ConnParams) (ConnInfo, error) { return a.dev.ConnectTCP(ctx, l.Addr().String(), qa, p) })
	return qa, qb
}

func TestWriteReadSendOverTCP(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ca, cb Config
	}{
		{"default", Config{}, Config{}},
		{"markers", Config{TCP: ddpmpa.Params{Markers: true}}, Config{TCP: ddpmpa.Params{Markers: true}}},
		{"no CRC", Config{TCP: ddpmpa.Params{NoCRC: true}}, Config{TCP: ddpmpa.Params{NoCRC: true}}},
		{"revision 1", Config{TCPRevision1: true}, Config{}},
		{"small window", Config{Window: 1}, Config{Window: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := newTCPNode(t, tt.ca), newTCPNode(t, tt.cb)
			qa, qb := connectTCP(t, a, b, QPConfig{}, QPConfig{})
			writeReadSend(t, a, b, qa, qb, 3<<20+5)
		})
	}
}

func TestAcceptingSideSendsFirstOverTCP(t *testing.T) {
	// RFC 6581, Section 9.2: the initiator sends an RTR indication by itself.
	a, b := newTCPNode(t, Config{}), newTCPNode(t, Config{})
	qa, qb := connectTCP(t, a, b, QPConfig{IRD: 3, ORD: 9}, QPConfig{IRD: 5, ORD: 7})
	if qa.ORD() != 5 || qb.ORD() != 3 {
		t.Errorf("ORD %d and %d, want 5 and 3", qa.ORD(), qb.ORD())
	}
	if err := qa.PostRecv(RecvWR{ID: 1, SGL: []SGE{a.mr(8, LocalWrite).Slice(0, 8)}}); err != nil {
		t.Fatal(err)
	}
	if err := qb.PostSend(SendWR{Op: OpSend, Inline: []byte("first")}); err != nil {
		t.Fatal(err)
	}
	want(t, a.rcq, 1, StatusSuccess)
	if err := qb.Disconnect(testContext(t)); err != nil {
		t.Fatal(err)
	}
	wantDone(t, qa, ErrDisconnected)
}

func TestTerminateOverTCP(t *testing.T) {
	a, b := newTCPNode(t, Config{}), newTCPNode(t, Config{})
	src, dst := a.mr(100, LocalWrite), b.mr(50, RemoteWrite|RemoteRead)
	for _, tt := range []struct {
		name string
		wr   SendWR
		want ddp.Fault
	}{
		{"write out of bounds", SendWR{Op: OpWrite, SGL: []SGE{src.Slice(0, 51)}, Remote: dst.Remote()}, ddp.FaultBounds},
		{"read out of bounds", SendWR{Op: OpRead, SGL: []SGE{src.Slice(0, 51)}, Remote: dst.Remote()}, rdmap.FaultBounds},
		{"send without receive", SendWR{Op: OpSend, Inline: []byte("x")}, ddp.FaultNoBuffer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			qa, qb := connectTCP(t, a, b, QPConfig{}, QPConfig{})
			if err := qa.PostSend(tt.wr); err != nil {
				t.Fatal(err)
			}
			wantDone(t, qa, tt.want)
			wantDone(t, qb, tt.want)
			var te *TerminateError
			if !errors.As(qa.Err(), &te) || !te.ByPeer {
				t.Errorf("the side that is at fault ends with %v", qa.Err())
			}
		})
	}
}

func TestRejectOverTCP(t *testing.T) {
	a, b := newTCPNode(t, Config{}), newTCPNode(t, Config{Backlog: 1})
	l, err := b.dev.ListenTCP(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // each decision makes room
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			r, err := l.Accept(testContext(t))
			if err != nil {
				t.Error(err)
				return
			}
			if err := r.Reject([]byte("no")); err != nil {
				t.Error(err)
			}
			if err := r.Reject(nil); !errors.Is(err, ErrDisconnected) {
				t.Errorf("second answer: %v", err)
			}
		}()
		qp := a.qp(QPConfig{})
		info, err := a.dev.ConnectTCP(testContext(t), l.Addr().String(), qp, ConnParams{})
		if info.PeerIRD != 0 || info.PeerORD != 0 {
			// RFC 6581, Section 9.1: "MUST pass the responder provided IRD and
			// ORD to the ULP for both MPA Accept and Reject".
			t.Errorf("a rejection with depths: %+v", info)
		}
		var re *RejectError
		if !errors.As(err, &re) || string(re.PrivateData) != "no" {
			t.Fatalf("ConnectTCP: %v", err)
		}
		<-qp.Done()
		<-answered
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(testContext(t)); err != ErrClosed {
		t.Errorf("Accept on a closed listener: %v", err)
	}
	qp := a.qp(QPConfig{})
	if _, err := a.dev.ConnectTCP(testContext(t), l.Addr().String(), qp, ConnParams{}); err == nil {
		t.Error("connected to a closed listener")
	}
	<-qp.Done()
}

func TestBacklogOverTCP(t *testing.T) {
	b := newTCPNode(t, Config{Backlog: 2})
	l, err := b.dev.ListenTCP(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	// Two may take their time to send a request; the third ends the first.
	if n, err := conns[0].Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d octets", n)
	}
	l.Close()
	for _, c := range conns {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a connection is open after Close")
		}
	}
}

// answerTCP has a hand-made responder answer a connection.
func answerTCP(t *testing.T, f ddpmpa.Frame, qp *QP, a *node) (c net.Conn, err error) {
	t.Helper()
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer nl.Close()
	got := make(chan net.Conn, 1)
	go func() {
		defer close(got)
		c, err := nl.Accept()
		if err != nil {
			return
		}
		if _, err := ddpmpa.Respond(testContext(t), c.(*net.TCPConn), ddpmpa.Params{}); err != nil {
			t.Error(err)
		}
		c.Write(ddpmpa.AppendFrame(nil, &f))
		got <- c
	}()
	_, err = a.dev.ConnectTCP(testContext(t), nl.Addr().String(), qp, ConnParams{})
	return <-got, err
}

func TestStartupTerminatesOverTCP(t *testing.T) {
	// RFC 6581, Sections 9.1 and 9.2: Layer 2, Error Type 0, Error Codes 6
	// and 7.
	for _, tt := range []struct {
		name string
		e    ddp.Enhanced
		err  error
		want ddp.Fault
	}{
		{"insufficient IRD", ddp.Enhanced{ORD: 5, IRD: 4, PeerToPeer: true, RTRWrite: true}, ErrReadDepth, ddpmpa.FaultIRD},
		{"no RTR option", ddp.Enhanced{PeerToPeer: true}, ErrRTR, ddpmpa.FaultRTR},
		{"RTR option without the depth for it", ddp.Enhanced{PeerToPeer: true, RTRRead: true}, ErrRTR, ddpmpa.FaultRTR},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newTCPNode(t, Config{})
			qp := a.qp(QPConfig{IRD: 4})
			c, err := answerTCP(t, ddpmpa.Frame{Reply: true, CRC: true, Revision: 2, IsEnhanced: true, Enhanced: tt.e}, qp, a)
			if !errors.Is(err, tt.err) {
				t.Errorf("ConnectTCP: %v, want %v", err, tt.err)
			}
			wantDone(t, qp, tt.want)
			defer c.Close()
			var stream bytes.Buffer
			if _, err := stream.ReadFrom(c); err != nil {
				t.Fatal(err)
			}
			d, found := ddpmpa.NewDeframer(false, true), false
			for b := stream.Bytes(); len(b) > 0; {
				u, n, err := d.Next(b)
				if err != nil || n == 0 {
					t.Fatalf("% x: %v", b, err)
				}
				h, p, _ := ddp.ParseHeader(u)
				if !h.Tagged && h.QN == rdmap.QueueTerminate {
					term, ok := rdmap.ParseTerminate(p)
					found = ok && term.Fault == tt.want
				}
				b = b[n:]
			}
			if !found {
				t.Errorf("no Terminate message for %v in % x", tt.want, stream.Bytes())
			}
		})
	}
}

func TestConnectTCPCanceled(t *testing.T) {
	// The peer takes the connection and says nothing.
	nl, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer nl.Close()
	a := newTCPNode(t, Config{})
	qp := a.qp(QPConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := nl.Accept(); err == nil {
			defer c.Close()
			c.Read(make([]byte, 1))
			cancel()
			<-qp.Done()
		}
	}()
	if _, err := a.dev.ConnectTCP(ctx, nl.Addr().String(), qp, ConnParams{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ConnectTCP: %v", err)
	}
	wantDone(t, qp, context.Canceled)
	if _, err := a.dev.Connect(ctx, a.dev.Addr(), a.qp(QPConfig{}), ConnParams{}); err != ErrNoTransport {
		t.Errorf("Connect without a transport: %v", err)
	}
}

func TestPeerVanishesOverTCP(t *testing.T) {
	a, b := newTCPNode(t, Config{}), newTCPNode(t, Config{})
	qa, qb := connectTCP(t, a, b, QPConfig{}, QPConfig{})
	src, dst := a.mr(1<<20, LocalWrite), b.mr(1<<20, RemoteWrite)
	for id := range uint64(50) {
		if err := qa.PostSend(SendWR{ID: id, Op: OpWrite, Flags: Signaled, SGL: []SGE{src.Slice(0, 1<<20)}, Remote: dst.Remote()}); err != nil {
			t.Fatal(err)
		}
	}
	b.dev.mu.Lock()
	for ch := range b.dev.tcp.channels {
		go ch.Kill()
	}
	b.dev.mu.Unlock()
	wantDone(t, qb, ddpmpa.ErrClosed)
	select {
	case <-qa.Done():
	case <-testContext(t).Done():
		t.Fatalf("queue pair is in state %v", qa.State())
	}
	got := 0
	var wc [64]WC
	for n := a.cq.Poll(wc[:]); n > 0; n = a.cq.Poll(wc[:]) {
		got += n
	}
	if got != 50 {
		t.Errorf("%d completions, want 50", got)
	}
}

func TestTCPDeviceCloses(t *testing.T) {
	a, b := newTCPNode(t, Config{}), newTCPNode(t, Config{})
	qa, qb := connectTCP(t, a, b, QPConfig{}, QPConfig{})
	for _, qp := range []*QP{qa, qb} {
		if err := qp.Close(); err != nil {
			t.Fatal(err)
		}
		<-qp.Done()
	}
	for _, n := range []*node{a, b} {
		if _, err := n.dev.ListenTCP(t.Context(), "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		for _, c := range []interface{ Close() error }{n.cq, n.rcq, n.pd, n.dev} {
			if err := c.Close(); err != nil {
				t.Errorf("%T: %v", c, err)
			}
		}
		if len(n.dev.tcp.listeners) != 0 {
			t.Error("a listener is left")
		}
		if _, err := n.dev.ListenTCP(t.Context(), "127.0.0.1:0"); err != ErrClosed {
			t.Errorf("ListenTCP on a closed device: %v", err)
		}
	}
}

// Connections that say nothing, more than the backlog, keep nobody from a listener.
func TestIdleConnectionsLeaveTheListenerOpen(t *testing.T) {
	const backlog = 4
	a, b := newTCPNode(t, Config{}), newTCPNode(t, Config{Backlog: backlog})
	l, err := b.dev.ListenTCP(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for range 4 * backlog {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(t.Context())
		if err == nil {
			err = r.Accept(b.qp(QPConfig{}), ConnParams{})
		}
		accepted <- err
	}()
	if _, err := a.dev.ConnectTCP(t.Context(), l.Addr().String(), a.qp(QPConfig{}), ConnParams{}); err != nil {
		t.Errorf("behind %d idle connections: %v", 4*backlog, err)
	}
	if err := <-accepted; err != nil {
		t.Error(err)
	}
}
