package verbs

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
)

// testTimeout bounds each wait of a test.
const testTimeout = 5 * time.Minute

// node is a device on a loopback transport, with a domain and queues.
type node struct {
	t   *testing.T
	tr  *sctp.Transport
	dev *Device
	pd  *PD
	cq  *CQ // send
	rcq *CQ // receive
	l   *Listener
}

func newNode(t *testing.T, cfg Config) *node {
	t.Helper()
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return nodeOn(t, tr, cfg)
}

// nodeOn makes a node on a transport.
func nodeOn(t *testing.T, tr *sctp.Transport, cfg Config) *node {
	t.Helper()
	cfg.Transport = tr
	dev, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, tr: tr, dev: dev, pd: dev.AllocPD()}
	for _, cq := range []**CQ{&n.cq, &n.rcq} {
		if *cq, err = dev.NewCQ(1024); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

func (n *node) qp(cfg QPConfig) *QP {
	n.t.Helper()
	cfg.SendCQ, cfg.RecvCQ = n.cq, n.rcq
	qp, err := n.pd.NewQP(cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	return qp
}

func (n *node) mr(size int, access Access) *MR {
	n.t.Helper()
	mr, err := n.pd.Register(make([]byte, size), access)
	if err != nil {
		n.t.Fatal(err)
	}
	return mr
}

// connect connects a queue pair of a to one of b.
func connect(t *testing.T, a, b *node, ca, cb QPConfig) (qa, qb *QP) {
	t.Helper()
	ctx := testContext(t)
	if b.l == nil {
		l, err := b.dev.Listen()
		if err != nil {
			t.Fatal(err)
		}
		b.l = l
	}
	qa, qb = a.qp(ca), b.qp(cb)
	meet(t, qb, func() (*ConnRequest, error) { return b.l.Accept(ctx) }, func(p ConnParams) (ConnInfo, error) {
		return a.dev.Connect(ctx, b.dev.Addr(), qa, p)
	})
	return qa, qb
}

// meet has one end dial and the other accept with qb, and checks that each gets
// the private data of the other.
func meet(t *testing.T, qb *QP, accept func() (*ConnRequest, error), dial func(ConnParams) (ConnInfo, error)) {
	t.Helper()
	errc := make(chan error, 1)
	go func() {
		r, err := accept()
		if err == nil {
			if string(r.PrivateData) != "from a" {
				t.Errorf("private data of the request = %q", r.PrivateData)
			}
			err = r.Accept(qb, ConnParams{PrivateData: []byte("from b")})
		}
		errc <- err
	}()
	info, err := dial(ConnParams{PrivateData: []byte("from a")})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-errc; err != nil {
		t.Fatal(err)
	}
	if string(info.PrivateData) != "from b" {
		t.Errorf("private data = %q", info.PrivateData)
	}
}

// want waits for the next completion of a queue and checks it.
func want(t *testing.T, cq *CQ, id uint64, st Status) WC {
	t.Helper()
	var wc [1]WC
	if _, err := cq.Wait(testContext(t), wc[:]); err != nil {
		t.Fatalf("waiting for completion %d: %v", id, err)
	}
	if wc[0].ID != id || wc[0].Status != st {
		t.Fatalf("completion = %d %v (%v), want %d %v", wc[0].ID, wc[0].Status, wc[0].Err(), id, st)
	}
	return wc[0]
}

// wantDone waits until a queue pair is at its end and checks why.
func wantDone(t *testing.T, qp *QP, target error) {
	t.Helper()
	select {
	case <-qp.Done():
	case <-testContext(t).Done():
		t.Fatalf("queue pair is in state %v, error %v", qp.State(), qp.Err())
	}
	if err := qp.Err(); !errors.Is(err, target) {
		t.Errorf("end of queue pair = %v, want %v", err, target)
	}
	if qp.State() != StateError {
		t.Errorf("state = %v, want ERROR", qp.State())
	}
}

func fillPattern(b []byte, salt byte) {
	for i := range b {
		b[i] = byte(i*31+i>>9) ^ salt
	}
}
