package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/weftstack/weft/verbs"
)

// Parameters of a measurement with perftest's own programs, ib_send_bw -R and so
// on: the two sides agree on little, so that both have to be given the same.
const (
	peerPort      = 18515
	peerRecvDepth = 512  // receives posted, of send
	minRecvDepth  = 3    // a third of them is worth a credit
	writeBWCount  = 5000 // iterations of ib_write_bw
	peerReadDepth = 128  // reads under way, of either side
	peerPage      = 4096 // of our cycle buffer
	peerLine      = 64   // bytes of a cache line
	maxPeerPage   = 1 << 20
	peerCredits   = 16 // room for credits among the sends
	// peerSetup bounds the wait for the queue pairs of the measurement once the
	// control connection is there, peerPause is between attempts.
	peerSetup = 30 * time.Second
	peerPause = 50 * time.Millisecond
	// peerGoodbye bounds the wait for the other side to disconnect.
	peerGoodbye = 5 * time.Second
)

// peerEnd is our end of a measurement with a program of perftest.
type peerEnd struct {
	*options
	client   bool
	addr     string             // of the server
	listener *verbs.TCPListener // of the server
	device   *verbs.Device
	pd       *verbs.PD
	ctl      *peerControl
	patient  bool // the other side is to disconnect first
	page     int  // of the cycle buffer, the same on both sides
	tx, rx   int  // work requests posted at a time
	cq       *verbs.CQ
	qps      []*peerQP
	wc       []verbs.WC
	swr      [1]verbs.SendWR
	rwr      [1]verbs.RecvWR
	sge      [1]verbs.SGE
}

// peerQP is a queue pair of the measurement.
type peerQP struct {
	index    int
	qp       *verbs.QP
	out      *verbs.MR // what is sent or written, or where reads go
	in       *verbs.MR // where sends and the peer's writes go, and its reads find
	credit   *verbs.MR // where the peer counts what it has received
	remote   verbs.RemoteBuf
	posted   int // sends
	ended    int
	received int
	renewed  int // receives posted
}

// runPeer measures with a program of perftest: with a host as its client,
// without one as its server.
func runPeer(ctx context.Context, o *options) error {
	e := &peerEnd{options: o, client: o.host != "", tx: min(o.Window, o.iterations), rx: min(o.recvDepth, o.iterations),
		wc: make([]verbs.WC, 64)}
	e.addr = net.JoinHostPort(o.host, strconv.Itoa(o.port))
	dev, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer dev.Close()
	e.device, e.pd = dev, dev.AllocPD()
	if err := e.open(ctx); err != nil {
		return err
	}
	rows, err := e.measure(ctx)
	if err == nil && o.json {
		err = json.NewEncoder(os.Stdout).Encode(rows)
	} else if err == nil {
		fmt.Println(perftestLine)
	}
	e.close(ctx, err == nil)
	return err
}

// open connects, and agrees with the other side on what perftest agrees on.
func (e *peerEnd) open(ctx context.Context) (err error) {
	if !e.client {
		if e.listener, err = e.device.ListenTCP(ctx, e.addr); err != nil {
			return err
		}
		if e.listening != nil {
			e.listening(e.listener.Addr())
		}
		if !e.json {
			fmt.Printf("\n************************************\n* Waiting for client to connect... *\n************************************\n")
		}
	}
	if e.ctl, err = e.newControl(ctx); err != nil {
		return err
	}
	err = e.setup(ctx)
	if err != nil {
		e.close(ctx, false)
	}
	return err
}

// setup is what comes before the measurement, in the order of perftest.
func (e *peerEnd) setup(ctx context.Context) error {
	if err := e.agree(ctx); err != nil {
		return err
	}
	// The server listens again once it has the first of these messages.
	if _, err := e.ctl.shake(ctx, peerDest{}); err != nil {
		return err
	}
	if err := e.connectQPs(ctx); err != nil {
		return err
	}
	if _, err := e.ctl.shake(ctx, peerDest{}); err != nil {
		return err
	}
	if !e.json {
		e.printPerftestHeader()
	}
	// Keys go over twice, with other messages before, between or after.
	send := e.Mode == "send"
	if e.Latency && !send {
		if err := e.sync(ctx); err != nil {
			return err
		}
	}
	for round := range 2 {
		for _, q := range e.qps {
			theirs, err := e.ctl.shake(ctx, e.dest(q))
			if err != nil {
				return err
			}
			q.remote = verbs.RemoteBuf{STag: theirs.key, TO: theirs.address}
		}
		if send == (round == 0) {
			if err := e.sync(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// sync exchanges a message that says nothing new.
func (e *peerEnd) sync(ctx context.Context) error {
	_, err := e.ctl.shake(ctx, e.dest(e.qps[0]))
	return err
}

// dest is what we tell of a queue pair.
func (e *peerEnd) dest(q *peerQP) peerDest {
	at := q.in.Remote()
	if q.credit != nil {
		at = q.credit.Remote()
	}
	return peerDest{reads: peerReadDepth, qpn: q.qp.Num(), key: at.STag, address: at.TO}
}

// connectQPs makes and connects the queue pairs of the measurement.
func (e *peerEnd) connectQPs(ctx context.Context) (err error) {
	if e.cq, err = e.device.NewCQ(e.Assocs * (e.tx + peerCredits + e.rx)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, peerSetup)
	defer cancel()
	for i := range e.Assocs {
		q := &peerQP{index: i}
		if err := e.memory(q); err != nil {
			return err
		}
		if e.client {
			err = e.connect(ctx, q)
		} else {
			err = e.accept(ctx, q)
		}
		if err != nil {
			return fmt.Errorf("queue pair %d of the measurement: %w", i, err)
		}
		e.qps = append(e.qps, q)
	}
	return nil
}

// memory registers the memory of a queue pair.
func (e *peerEnd) memory(q *peerQP) (err error) {
	size := max(e.sizes()[len(e.sizes())-1], e.page)
	if q.out, err = e.pd.Register(make([]byte, size), verbs.LocalWrite); err != nil {
		return err
	}
	// perftest gives both rights for reads on iWARP.
	access := map[string]verbs.Access{"send": verbs.LocalWrite, "write": verbs.RemoteWrite,
		"read": verbs.RemoteRead | verbs.RemoteWrite}[e.Mode]
	if q.in, err = e.pd.Register(make([]byte, size), access); err != nil {
		return err
	}
	if e.Mode == "send" && !e.Latency {
		q.credit, err = e.pd.Register(make([]byte, creditLen), verbs.RemoteWrite)
	}
	return err
}

func (e *peerEnd) newQP(q *peerQP) (err error) {
	q.qp, err = e.pd.NewQP(verbs.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: e.tx + peerCredits, RecvDepth: e.rx,
		IRD: peerReadDepth, ORD: peerReadDepth})
	return err
}

// connect connects a queue pair. The server may not listen again yet.
func (e *peerEnd) connect(ctx context.Context, q *peerQP) error {
	for {
		if err := e.newQP(q); err != nil {
			return err
		}
		_, err := e.device.ConnectTCP(ctx, e.addr, q.qp, verbs.ConnParams{})
		if err == nil {
			return nil
		}
		q.qp.Close()
		pause := time.NewTimer(peerPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(err, ctx.Err())
		}
	}
}

func (e *peerEnd) accept(ctx context.Context, q *peerQP) error {
	req, err := e.listener.Accept(ctx)
	if err != nil {
		return err
	}
	if err := e.newQP(q); err != nil {
		req.Reject(nil)
		return err
	}
	return req.Accept(q.qp, verbs.ConnParams{})
}

// close disconnects: gracefully, within a time, if the measurement is over. Linux
// siw flushes what it has not completed when it is disconnected, even what has
// arrived, so perftest may not be done yet: it is to go first.
func (e *peerEnd) close(ctx context.Context, gracefully bool) {
	ctx, cancel := context.WithTimeout(ctx, peerGoodbye)
	defer cancel()
	if gracefully && e.patient {
		for _, q := range e.qps {
			select {
			case <-q.qp.Done():
			case <-ctx.Done():
			}
		}
	}
	qps := []*verbs.QP{}
	for _, q := range e.qps {
		qps = append(qps, q.qp)
	}
	for _, qp := range append(qps, e.ctl.qp) {
		if gracefully {
			qp.Disconnect(ctx)
		}
		qp.Close()
	}
}
