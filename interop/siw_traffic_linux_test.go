package interop

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/weftstack/weft/ddp/ddpmpa"
	"github.com/weftstack/weft/verbs"
)

// siwEnd is our end of a connection with the peer: a device, a queue pair and
// memory.
type siwEnd struct {
	t   *testing.T
	ctx context.Context
	dev *verbs.Device
	pd  *verbs.PD
	cq  *verbs.CQ
	qp  *verbs.QP
	mr  *verbs.MR
}

func newSiwEnd(t *testing.T, cfg verbs.Config, size int, access verbs.Access, qc verbs.QPConfig) *siwEnd {
	t.Helper()
	ctx, cancel := context.WithTimeout(within(t), 2*siwPatience)
	t.Cleanup(cancel)
	e := &siwEnd{t: t, ctx: ctx}
	var err error
	if e.dev, err = verbs.Open(cfg); err != nil {
		t.Fatal(err)
	}
	e.pd = e.dev.AllocPD()
	if e.cq, err = e.dev.NewCQ(1024); err != nil {
		t.Fatal(err)
	}
	if e.mr, err = e.pd.Register(make([]byte, size), access); err != nil {
		t.Fatal(err)
	}
	qc.SendCQ, qc.RecvCQ = e.cq, e.cq
	if e.qp, err = e.pd.NewQP(qc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.qp.Close(); e.dev.Close() })
	return e
}

// wc waits for the next completion, which must be a success.
func (e *siwEnd) wc(id uint64) verbs.WC {
	e.t.Helper()
	var wc [1]verbs.WC
	if _, err := e.cq.Wait(e.ctx, wc[:]); err != nil {
		e.t.Fatalf("no completion %d: %v (%v)", id, err, e.qp.Err())
	}
	if wc[0].ID != id || wc[0].Status != verbs.StatusSuccess {
		e.t.Fatalf("completion %+v, %v, want %d", wc[0], wc[0].Err(), id)
	}
	return wc[0]
}

func (e *siwEnd) post(wr ...verbs.SendWR) {
	e.t.Helper()
	if err := e.qp.PostSend(wr...); err != nil {
		e.t.Fatal(err, e.qp.Err())
	}
}

func (e *siwEnd) recv(id uint64, off, n int) {
	e.t.Helper()
	if err := e.qp.PostRecv(verbs.RecvWR{ID: id, SGL: []verbs.SGE{e.mr.Slice(off, n)}}); err != nil {
		e.t.Fatal(err)
	}
}

// siwMemory is memory of the peer.
func siwMemory(t *testing.T, p *siwPeer, kind string, size int, rights string) verbs.RemoteBuf {
	t.Helper()
	f := p.fields(2, "%s %d %s", kind, size, rights)
	stag, err1 := strconv.ParseUint(f[0], 0, 32)
	to, err2 := strconv.ParseUint(f[1], 0, 64)
	if err1 != nil || err2 != nil {
		t.Fatal(f)
	}
	return verbs.RemoteBuf{STag: uint32(stag), TO: to, Len: uint64(size)}
}

// siwConnected is a connection with a peer in the guest.
type siwConnected struct {
	*siwEnd
	peer   *siwPeer
	remote verbs.RemoteBuf // memory of the peer
	second verbs.RemoteBuf // and that of another protection domain
}

// siwOptions say how to connect.
type siwOptions struct {
	accept bool // the peer connects
	cfg    verbs.Config
	qc     verbs.QPConfig
	access verbs.Access // to our memory
	rights string       // to the peer's
	size   int
	recvs  int  // receives of 16 KiB that the peer posts at once
	silent bool // the peer that connects sends nothing by itself
}

const siwRecvSize = 16 << 10

// connectSiw connects with a new peer.
func connectSiw(t *testing.T, g *siw, o siwOptions) *siwConnected {
	t.Helper()
	if o.size == 0 {
		o.size = 1 << 20
	}
	if o.rights == "" {
		o.rights = "rw"
	}
	c := &siwConnected{siwEnd: newSiwEnd(t, o.cfg, o.size, o.access|verbs.LocalWrite, o.qc), peer: g.newPeer(t)}
	c.remote = siwMemory(t, c.peer, "mr", o.size, o.rights)
	c.second = siwMemory(t, c.peer, "mr2", 4096, o.rights)
	post := func() {
		for i := range o.recvs {
			c.peer.do("recv %d %d %d", 1000+i, i*siwRecvSize, siwRecvSize)
		}
	}
	if o.accept {
		l, err := c.dev.ListenTCP(c.ctx, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c.peer.do("resolve %s %d", siwHost, l.Addr().(*net.TCPAddr).Port)
		post()
		c.peer.begin("connect 4 4 %s", hexed("from siw"))
		req, err := l.Accept(c.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if string(req.PrivateData) != "from siw" {
			t.Errorf("private data %q", req.PrivateData)
		}
		if err := req.Accept(c.qp, verbs.ConnParams{PrivateData: []byte("from weft")}); err != nil {
			t.Fatal(err)
		}
		answer, ok := c.peer.end()
		if want := hex.EncodeToString([]byte("from weft")); !ok || strings.Fields(answer)[0] != want {
			t.Fatalf("the peer hears %q, want %s", answer, want)
		}
		if !o.silent {
			// RFC 5044, Section 7.1.2, rule 4: we may not send before.
			c.peer.do("write 5 0 0 0 0")
			c.peer.do(siwPoll)
		}
		return c
	}
	inside, outside := g.port(t)
	c.peer.do("listen %s %d", siwGuest, inside)
	type result struct {
		info verbs.ConnInfo
		err  error
	}
	connected := make(chan result, 1)
	go func() {
		info, err := c.dev.ConnectTCP(c.ctx, outside, c.qp, verbs.ConnParams{PrivateData: []byte("from weft")})
		connected <- result{info, err}
	}()
	if f := c.peer.fields(3, "request"); f[0] != hex.EncodeToString([]byte("from weft")) {
		t.Errorf("the peer hears %q", f)
	}
	post()
	c.peer.begin("accept 4 4 %s", hexed("from siw"))
	r := <-connected
	if r.err != nil || string(r.info.PrivateData) != "from siw" {
		t.Fatalf("%+v, %v", r.info, r.err)
	}
	if o.cfg.TCPRevision1 { // the peer has to hear first
		c.post(verbs.SendWR{ID: 99, Op: verbs.OpWrite, Flags: verbs.Signaled})
		c.wc(99)
	}
	if answer, ok := c.peer.end(); !ok {
		t.Fatalf("peer: accept: %s", answer)
	}
	return c
}

// siwTraffic moves data in every way that verbs have, in both directions, and
// has both sides check it.
func siwTraffic(t *testing.T, g *siw) {
	noCRC := verbs.Config{TCP: ddpmpa.Params{NoCRC: true}}
	for _, tt := range []struct {
		name string
		o    siwOptions
	}{
		{"we connect", siwOptions{}},
		{"we connect without CRC", siwOptions{cfg: noCRC}},
		{"we connect with revision 1", siwOptions{cfg: verbs.Config{TCPRevision1: true}}},
		{"the peer connects", siwOptions{accept: true}},
		{"the peer connects without CRC", siwOptions{accept: true, cfg: noCRC}},
	} {
		g.row(t, tt.name, func(t *testing.T) {
			tt.o.access, tt.o.recvs = verbs.RemoteRead|verbs.RemoteWrite, 32
			c := connectSiw(t, g, tt.o)
			c.sends()
			c.tagged(!tt.o.cfg.TCPRevision1)
			if err := c.qp.Disconnect(c.ctx); err != nil {
				t.Error(err)
			}
			if said := c.peer.do("event %d", siwPatience.Milliseconds()); said != "RDMA_CM_EVENT_DISCONNECTED 0" {
				t.Errorf("the peer sees %q", said)
			}
		})
	}
}

// sends exchanges messages, one at a time and many at once.
func (c *siwConnected) sends() {
	t := c.t
	t.Helper()
	buf := c.mr.Bytes()
	for i, size := range []int{1, 3, 4, 100, 1400, 1454, 1455, 2048, 9000, 16384} {
		fillLikePeer(buf[:size], i)
		wr := verbs.SendWR{ID: uint64(i), Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{c.mr.Slice(0, size)}}
		if i%2 == 1 {
			wr.Flags |= verbs.Solicited
		}
		c.post(wr)
		c.wc(uint64(i))
		if got, want := c.peer.do(siwPoll), fmt.Sprintf("%d 0 128 %d", 1000+i, size); got != want {
			t.Fatalf("the peer's completion is %q, want %q", got, want)
		}
		if got, want := c.peer.do("sum %d %d", i*siwRecvSize, size), fnv(buf[:size]); got != want {
			t.Errorf("%d bytes arrive as %s, want %s", size, got, want)
		}
		c.recv(uint64(i), 0, siwRecvSize)
		c.peer.do("fill %d %d %d", 900_000, size, i+50)
		c.peer.do("%s %d %d %d", []string{"send", "sendse"}[i%2], i, 900_000, size)
		wc := c.wc(uint64(i))
		fillLikePeer(buf[20_000:20_000+size], i+50)
		if int(wc.Len) != size || !bytes.Equal(buf[:size], buf[20_000:20_000+size]) || (wc.Flags&verbs.WasSolicited != 0) != (i%2 == 1) {
			t.Errorf("%d bytes come as %+v", size, wc)
		}
		c.peer.do(siwPoll)
	}
	// As perftest does it: a window of messages, which have receives.
	for i := range 20 {
		fillLikePeer(buf[i*siwRecvSize:(i+1)*siwRecvSize], i+7)
		c.post(verbs.SendWR{ID: uint64(100 + i), Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{c.mr.Slice(i*siwRecvSize, siwRecvSize)}})
	}
	for i := range 20 {
		c.wc(uint64(100 + i))
		c.peer.do(siwPoll)
		if got, want := c.peer.do("sum %d %d", (10+i)*siwRecvSize, siwRecvSize), fnv(buf[i*siwRecvSize:(i+1)*siwRecvSize]); got != want {
			t.Errorf("message %d of the window arrives as %s, want %s", i, got, want)
		}
	}
}

// tagged writes and reads, in both directions if the peer may read.
func (c *siwConnected) tagged(theyRead bool) {
	t := c.t
	t.Helper()
	const half = 512 << 10
	buf := c.mr.Bytes()
	ours := c.mr.Remote()
	for i, size := range []int{0, 1, 5, 1440, 65536, half} {
		fillLikePeer(buf[:size], 3*i+1)
		sgl := []verbs.SGE{c.mr.Slice(0, size/3), c.mr.Slice(size/3, size-size/3)}
		c.post(verbs.SendWR{ID: 1, Op: verbs.OpWrite, Flags: verbs.Signaled, SGL: sgl, Remote: c.remote})
		c.wc(1)
		if c.qp.ORD() > 0 {
			// What was written can be read: the read comes after it.
			c.post(verbs.SendWR{ID: 2, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{c.mr.Slice(half, size)}, Remote: c.remote})
			c.wc(2)
			if !bytes.Equal(buf[:size], buf[half:half+size]) {
				t.Errorf("%d bytes read back differ", size)
			}
			if got, want := c.peer.do("sum 0 %d", size), fnv(buf[:size]); got != want {
				t.Errorf("%d bytes are written as %s, want %s", size, got, want)
			}
		}
		c.peer.do("fill 0 %d %d", size, 5*i+2)
		c.peer.do("write 7 0 %d 0x%x 0x%x", size, ours.STag, ours.TO)
		if got, want := c.peer.do(siwPoll), "7 0 1 "; !strings.HasPrefix(got, want) {
			t.Fatalf("the peer's write ends as %q, want %q", got, want)
		}
		if !theyRead {
			// What was written is there when a message that follows comes.
			c.recv(9, 2*half-64, 64)
			c.peer.do("send 9 0 64")
			c.peer.do(siwPoll)
			c.wc(9)
			want := make([]byte, size)
			fillLikePeer(want, 5*i+2)
			if !bytes.Equal(buf[:size], want) {
				t.Errorf("%d bytes of the peer's write differ", size)
			}
			continue
		}
		c.peer.do("read 8 %d %d 0x%x 0x%x", half, size, ours.STag, ours.TO)
		if got, want := c.peer.do(siwPoll), "8 0 2 "; !strings.HasPrefix(got, want) {
			t.Fatalf("the peer's read ends as %q, want %q", got, want)
		}
		// Its read was answered after its write was placed.
		c.mr.Sync()
		want := make([]byte, size)
		fillLikePeer(want, 5*i+2)
		if !bytes.Equal(buf[:size], want) {
			t.Errorf("%d bytes of the peer's write differ", size)
		}
		if got := c.peer.do("sum %d %d", half, size); got != fnv(want) {
			t.Errorf("%d bytes of the peer's read differ", size)
		}
	}
}
