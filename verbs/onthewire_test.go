package verbs

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"

	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// wiretap checks every packet that two transports send on an association for
// DDP, against RFC 5043. What is sent again is looked at once.
type wiretap struct {
	t       *testing.T
	mu      sync.Mutex
	inits   int               // guarded by mu
	chunks  map[uint32]int    // guarded by mu: PPID to number of data chunks
	next    map[[2]uint16]int // guarded by mu: by side and stream: DDP-SSNs seen
	largest int               // guarded by mu
	started map[uint16]bool   // guarded by mu: streams with an Initiate
	seen    [2]map[uint32]bool
}

// tap returns the tap for one side.
func (w *wiretap) tap(side int) func(sctp.TapEvent) {
	w.seen[side] = make(map[uint32]bool)
	return func(e sctp.TapEvent) {
		if e.Sent {
			w.packet(side, e)
		}
	}
}

func (w *wiretap) packet(side int, e sctp.TapEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	it := wire.NewChunks(e.Data[wire.HeaderLen:])
	for it.Next() {
		c := it.Chunk()
		switch c.Type {
		case wire.ChunkInit, wire.ChunkInitAck:
			w.init(c)
		case wire.ChunkData:
			w.data(side, c)
		case wire.ChunkIData:
			w.t.Error("an I-DATA chunk")
		}
	}
}

// init checks Sections 5.1, 8 and 11.1.
func (w *wiretap) init(c wire.Chunk) { // mu is held
	w.inits++
	in, err := wire.ParseInit(c)
	if c.Type == wire.ChunkInitAck {
		in, err = wire.ParseInitAck(c)
	}
	if err != nil || in.OutStreams != in.InStreams {
		w.t.Errorf("%v: %d streams out, %d in: %v", c.Type, in.OutStreams, in.InStreams, err)
	}
	found := false
	for p := wire.NewParams(in.Params); p.Next(); {
		if v, err := wire.ParseAdaptation(p.Param()); err == nil {
			found = v == 0x00000001
		}
	}
	if !found {
		w.t.Errorf("%v without the indication of DDP", c.Type)
	}
}

// data checks Sections 5.2, 6, 9 and 10.
func (w *wiretap) data(side int, c wire.Chunk) { // mu is held
	d, err := wire.ParseData(c)
	if w.seen[side][d.TSN] {
		return
	}
	w.seen[side][d.TSN] = true
	if err != nil || !d.Unordered || !d.Begin || !d.End || len(d.Payload) < 2 || d.PPID != 16 && d.PPID != 17 {
		w.t.Errorf("data chunk: unordered %v, begin %v, end %v, PPID %d, %d octets: %v", d.Unordered, d.Begin, d.End, d.PPID, len(d.Payload), err)
		return
	}
	w.chunks[d.PPID]++
	w.largest = max(w.largest, len(d.Payload))
	key := [2]uint16{uint16(side), d.SID}
	ssn := int(binary.BigEndian.Uint16(d.Payload))
	if d.PPID == ddpsctp.PPIDControl {
		c, ok := ddpsctp.ParseControl(d.Payload[2:])
		if !ok {
			w.t.Errorf("control message % x", d.Payload)
		}
		switch c.Function {
		case ddpsctp.Initiate, ddpsctp.EnhancedInitiate:
			w.started[d.SID] = true
			w.next[key] = 0
		case ddpsctp.Accept, ddpsctp.EnhancedAccept:
			w.next[key] = 0
		}
	}
	if !w.started[d.SID] {
		w.t.Errorf("stream %d: something before the Initiate", d.SID) // Section 6.6
	}
	// They are sent in order and have no gaps.
	if ssn != w.next[key]&0xFFFF {
		w.t.Errorf("stream %d: DDP-SSN %d, want %d", d.SID, ssn, w.next[key])
	}
	w.next[key]++
}

// TestOnTheWire looks at all packets of queue pairs that come and go.
func TestOnTheWire(t *testing.T) {
	w := &wiretap{t: t, chunks: make(map[uint32]int), next: make(map[[2]uint16]int), started: make(map[uint16]bool)}
	var nodes [2]*node
	for i := range nodes {
		tr, err := sctp.NewTransport(sctp.TransportConfig{
			LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Tap: w.tap(i)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		nodes[i] = nodeOn(t, tr, Config{SCTP: &sctp.Config{MTU: 1500}})
	}
	a, b := nodes[0], nodes[1]
	src, dst := a.mr(100_000, LocalWrite), b.mr(100_000, RemoteRead|RemoteWrite)
	for range 3 {
		qa, qb := connect(t, a, b, QPConfig{}, QPConfig{})
		if err := qb.PostRecv(RecvWR{ID: 2}); err != nil {
			t.Fatal(err)
		}
		if err := qa.PostSend(
			SendWR{Op: OpWrite, SGL: []SGE{src.Slice(0, 50_000)}, Remote: dst.Remote()},
			SendWR{ID: 1, Op: OpRead, Flags: Signaled, SGL: []SGE{src.Slice(0, 100_000)}, Remote: dst.Remote()},
			SendWR{Op: OpImm}); err != nil {
			t.Fatal(err)
		}
		want(t, a.cq, 1, StatusSuccess)
		want(t, b.rcq, 2, StatusSuccess)
		if err := qa.Disconnect(testContext(t)); err != nil {
			t.Fatal(err)
		}
		wantDone(t, qb, ErrDisconnected)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// Initiate, Accept and two Terminates each.
	if w.inits < 2 || w.chunks[17] != 12 || w.chunks[16] < 300 {
		t.Errorf("%d INITs, data chunks by PPID %v", w.inits, w.chunks)
	}
	if mtu := 1500 - 20 - 8 - wire.HeaderLen - wire.DataHeaderLen; w.largest > mtu {
		t.Errorf("largest chunk %d, room for %d", w.largest, mtu)
	}
}

func TestMessageLengthLimit(t *testing.T) {
	// RFC 5041, Section 5.2: "The ULP Message Length MUST be less than 2^32." The
	// memory is never touched.
	d := bare(t)
	cq, _ := d.NewCQ(10)
	qa, _, _ := piped(t, d, QPConfig{SendCQ: cq, RecvCQ: cq, MaxSendSGE: MaxSGE}, QPConfig{SendCQ: cq, RecvCQ: cq})
	const part = 1 << 32 / MaxSGE
	mr, err := qa.pd.Register(make([]byte, part), 0)
	if err != nil {
		t.Fatal(err)
	}
	sgl := make([]SGE, MaxSGE)
	for i := range sgl {
		sgl[i] = mr.Slice(0, part)
	}
	if err := qa.PostSend(SendWR{Op: OpSend, SGL: sgl}); err == nil {
		t.Error("a message of 2^32 octets was posted")
	}
	if err := mr.Close(); err != nil {
		t.Errorf("refused request holds the region: %v", err)
	}
}
