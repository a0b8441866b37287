package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/wire"
)

func mobileConfig() *Config {
	c := fastConfig()
	c.ChangeAddrs = true
	return c
}

// newMobile is a connected pair that can change addresses.
func newMobile(t testing.TB, seed uint64, cfg ...*Config) *pair {
	t.Helper()
	if len(cfg) == 0 {
		cfg = []*Config{mobileConfig()}
	}
	p := newPair(t, seed, cfg...)
	p.net.cut = map[netip.AddrPort]bool{}
	p.connect()
	p.drive()
	return p
}

var extra = []netip.AddrPort{addrPort("10.2.0.1:9899"), addrPort("10.3.0.1:9899"), addrPort("10.4.0.1:9899")}

// remotes returns the peer's addresses as h knows them, sorted.
func (h *host) remotes() (list []netip.AddrPort) {
	for i := range h.assoc.NumPaths() {
		list = append(list, h.assoc.PathStats(i).Remote)
	}
	slices.SortFunc(list, netip.AddrPort.Compare)
	return list
}

func (h *host) wantRemotes(want ...netip.AddrPort) {
	h.p.t.Helper()
	slices.SortFunc(want, netip.AddrPort.Compare)
	if got := h.remotes(); !slices.Equal(got, want) {
		h.p.t.Fatalf("%s knows %v, want %v", h.name, got, want)
	}
}

// RFC 5061, Section 5.3, F1, F2 and F14: an address is added, verified, and used.
func TestAddLocalAddr(t *testing.T) {
	p := newMobile(t, 500)
	was := p.a.local[0]
	var from []netip.AddrPort
	p.net.mangle = nil
	id := p.a.must(p.a.assoc.AddLocalAddr(p.now, extra[0]))
	p.a.flush()
	for _, f := range p.wire {
		from = append(from, f.p.Remote)
	}
	if slices.Contains(from, extra[0]) {
		t.Error("the new address was used before it was acknowledged")
	}
	p.a.wantDone(id, nil)
	if e := p.z.wantEvent(EventPathAdded); e.Addr != extra[0] {
		t.Errorf("added %v", e.Addr)
	}
	p.z.wantRemotes(was, extra[0])
	p.advance(time.Second)
	if e := p.z.wantEvent(EventPathConfirmed); e.Addr != extra[0] {
		t.Errorf("confirmed %v", e.Addr)
	}
	p.a.wantDone(p.a.must(p.a.assoc.SetPeerPrimary(p.now, extra[0])), nil)
	if e := p.z.wantEvent(EventPrimary); e.Addr != extra[0] {
		t.Errorf("primary %v", e.Addr)
	}
	// The old one dies and is taken back.
	p.net.cut[was] = true
	p.a.wantDone(p.a.must(p.a.assoc.RemoveLocalAddr(p.now, was)), nil)
	if e := p.z.wantEvent(EventPathRemoved); e.Addr != was {
		t.Errorf("removed %v", e.Addr)
	}
	p.z.wantRemotes(extra[0])
	p.a.send(0, 50_000)
	p.z.send(0, 50_000)
	p.drive()
	p.wantDelivered()
	// Its place serves another one.
	p.a.wantDone(p.a.must(p.a.assoc.AddLocalAddr(p.now, extra[1])), nil)
	p.z.wantRemotes(extra[0], extra[1])
	if n := len(p.z.assoc.paths); n != 2 {
		t.Errorf("%d places for 2 paths", n)
	}
	p.advance(time.Second)
	p.z.send(0, 50_000)
	p.drive()
	p.wantDelivered()
}

// addrChanges are changes of A's addresses, with what Z knows afterwards.
var addrChanges = []struct {
	name string
	do   func(p *pair) (uint32, error)
	want func(p *pair) []netip.AddrPort
}{
	{"add", func(p *pair) (uint32, error) { return p.a.assoc.AddLocalAddr(p.now, extra[0]) },
		func(p *pair) []netip.AddrPort { return append(slices.Clone(p.a.local), extra[0]) }},
	{"remove", func(p *pair) (uint32, error) { return p.a.assoc.RemoveLocalAddr(p.now, p.a.local[0]) },
		func(p *pair) []netip.AddrPort { return p.a.local[1:2] }},
	{"primary", func(p *pair) (uint32, error) { return p.a.assoc.SetPeerPrimary(p.now, p.a.local[1]) },
		func(p *pair) []netip.AddrPort { return slices.Clone(p.a.local) }},
	{"replace", func(p *pair) (uint32, error) { return p.a.assoc.ReplaceLocalAddr(p.now, p.a.local[0], extra[0]) },
		func(p *pair) []netip.AddrPort { return []netip.AddrPort{p.a.local[1], extra[0]} }},
}

// Whichever packets of an exchange are lost or come twice, the change is made
// once and data goes on.
func TestAsconfLosesEveryPacket(t *testing.T) {
	for _, x := range addrChanges {
		for lost := -1; lost < 7; lost++ {
			for _, again := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/lost=%d/again=%v", x.name, lost, again), func(t *testing.T) {
					p := newMultihomed(t, uint64(520+lost), mobileConfig())
					p.connect()
					p.advance(3 * time.Second)
					p.a.send(0, 100_000)
					p.z.send(0, 100_000)
					p.lose(lost, again, wire.ChunkAsconf, wire.ChunkAsconfAck, wire.ChunkHeartbeat)
					id := p.a.must(x.do(p))
					p.a.wantDone(id, nil)
					p.drive()
					p.advance(3 * time.Second)
					p.z.wantRemotes(x.want(p)...)
					p.wantDelivered()
					p.z.events, p.a.events = nil, nil
					p.z.send(1, 10_000)
					p.drive()
					p.wantDelivered()
				})
			}
		}
	}
}

// RFC 5061, Section 5.3.2: the only address is replaced, and the old one does not
// work any more. Until the peer has answered, nothing but ASCONF leaves (F1, F4);
// the new address gets nothing but ASCONF-ACK and HEARTBEAT until it is verified
// (F1).
func TestReplaceTheOnlyAddress(t *testing.T) {
	for lost := range 6 {
		p := newMobile(t, uint64(530+lost))
		was := p.a.local[0]
		p.a.send(0, 200_000)
		p.z.send(0, 200_000)
		p.advance(20 * time.Millisecond)
		p.net.cut[was] = true
		acked, n := false, 0
		p.net.drop = func(from *host, pkt []byte) bool {
			types := chunkTypes(pkt)
			if from == p.a && !acked && !slices.Contains(types, wire.ChunkAsconf) {
				t.Errorf("A sent %s", wire.Describe(pkt))
			}
			if i := p.z.assoc.pathByIP(extra[0].Addr()); from == p.z && i >= 0 && !p.z.assoc.paths[i].confirmed {
				for _, c := range types {
					if c != wire.ChunkAuth && c != wire.ChunkAsconfAck && c != wire.ChunkHeartbeat && c != wire.ChunkHeartbeatAck {
						t.Errorf("Z sent %s to an unconfirmed address", wire.Describe(pkt))
					}
				}
			}
			n++
			return n == lost
		}
		p.wire = nil
		id := p.a.must(p.a.assoc.ReplaceLocalAddr(p.now, was, extra[0]))
		// F6: the source is not "an address being deleted".
		buf, tx, _ := p.a.assoc.PollTransmit(p.now, nil, 1)
		if tx.Local != extra[0] {
			t.Errorf("A sends from %v", tx.Local)
		}
		p.post(p.a, Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, Data: buf})
		if !p.driveUntil(time.Minute, func() bool { acked = len(p.a.assoc.asc.chunk) == 0; return acked }) {
			t.Fatal("no answer")
		}
		p.a.wantDone(id, nil)
		p.drive()
		p.wantDelivered()
		p.z.wantRemotes(extra[0])
		if st := p.z.assoc.PathStats(0); !st.Primary || !st.Confirmed {
			t.Errorf("path %+v", st)
		}
	}
}

// askAsconf makes an ASCONF of h's peer arrive at h from a source and returns
// the answers.
func (h *host) askAsconf(seq uint32, from netip.AddrPort, addr netip.Addr, params ...[]byte) [][]byte {
	h.p.t.Helper()
	h.outbox()
	chunk := wire.AppendAsconf(nil, wire.Asconf{Seq: seq, Addr: addr, Params: slices.Concat(params...)})
	peer := h.p.a
	if h == peer {
		peer = h.p.z
	}
	pkt := h.packet(h.assoc.Tag(), authed(&peer.assoc.auth, chunk))
	pkt.Remote = from
	h.deliver(pkt)
	return h.outbox()
}

func request(kind wire.ParamType, id uint32, addr string) []byte {
	return wire.AppendAsconfRequest(nil, wire.AsconfRequest{Type: kind, ID: id, Addr: netip.MustParseAddr(addr)})
}

// responses describes the only ASCONF-ACK in packets: the correlation ID and the
// cause of each response, 0 for success.
func responses(t testing.TB, seq uint32, pkts [][]byte) (list [][2]uint32) {
	t.Helper()
	n := 0
	for _, pkt := range pkts {
		it := wire.NewChunks(pkt[wire.HeaderLen:])
		for it.Next() {
			x, err := wire.ParseAsconfAck(it.Chunk())
			if err != nil {
				continue
			}
			n++
			if x.Seq != seq {
				t.Errorf("ASCONF-ACK %d, want %d", x.Seq, seq)
			}
			for ps := wire.NewParams(x.Params); ps.Next(); {
				if id, err := wire.ParseAsconfSuccess(ps.Param()); err == nil {
					list = append(list, [2]uint32{id, 0})
				} else if e, err := wire.ParseAsconfError(ps.Param()); err == nil {
					cs := wire.NewCauses(e.Causes)
					cs.Next()
					list = append(list, [2]uint32{e.ID, uint32(cs.Cause().Code)})
				}
			}
		}
	}
	if n != 1 {
		t.Fatalf("%d ASCONF-ACKs, want 1", n)
	}
	return list
}

const (
	codeLast     = uint32(wire.CauseDeleteLastIP)
	codeShort    = uint32(wire.CauseResourceShortage)
	codeSource   = uint32(wire.CauseDeleteSourceIP)
	codeAddr     = uint32(wire.CauseUnresolvableAddress)
	codeUnknown  = uint32(wire.CauseUnrecognizedParams)
	addIP, delIP = wire.ParamAddIP, wire.ParamDeleteIP
	setPrim      = wire.ParamSetPrimary
)

// RFC 5061, Section 5.3, F7 to F11 and Section 5.4: what is refused, and what is
// said of it.
func TestAsconfRefusals(t *testing.T) {
	src := "10.0.0.1"
	many := func(n int) (list [][]byte) {
		for i := range n {
			list = append(list, request(addIP, uint32(i), fmt.Sprintf("10.9.0.%d", i+1)))
		}
		return list
	}
	for _, x := range []struct {
		name  string
		ask   [][]byte
		want  [][2]uint32
		paths int
	}{
		{"add", [][]byte{request(addIP, 7, "10.9.0.1")}, nil, 2},
		{"add again", [][]byte{request(addIP, 7, "10.9.0.1"), request(addIP, 8, "10.9.0.1")}, nil, 2},
		{"add what is there", [][]byte{request(addIP, 7, src)}, nil, 1},
		{"add the source", [][]byte{request(addIP, 7, "0.0.0.0")}, nil, 1},
		{"add multicast", [][]byte{request(addIP, 7, "224.0.0.1")}, [][2]uint32{{7, codeAddr}}, 1},
		{"add broadcast", [][]byte{request(addIP, 7, "255.255.255.255")}, [][2]uint32{{7, codeAddr}}, 1},
		{"add another family", [][]byte{request(addIP, 7, "2001:db8::1")}, [][2]uint32{{7, codeAddr}}, 1},
		{"delete the last", [][]byte{request(delIP, 7, src)}, [][2]uint32{{7, codeLast}}, 1},
		{"delete the source", [][]byte{request(addIP, 7, "10.9.0.1"), request(delIP, 8, src)}, [][2]uint32{{8, codeSource}}, 2},
		{"add and delete", [][]byte{request(addIP, 7, "10.9.0.1"), request(delIP, 8, "10.9.0.1")}, nil, 1},
		{"delete what is not there", [][]byte{request(delIP, 7, "10.9.0.1")}, nil, 1},
		{"delete all others", [][]byte{request(addIP, 7, "10.9.0.1"), request(addIP, 8, "10.9.0.2"), request(delIP, 9, "0.0.0.0")}, nil, 1},
		{"primary that is not there", [][]byte{request(setPrim, 7, "10.9.0.1")}, [][2]uint32{{7, codeAddr}}, 1},
		{"primary before add", [][]byte{request(setPrim, 7, "10.9.0.1"), request(addIP, 8, "10.9.0.1")}, [][2]uint32{{7, codeAddr}, {8, 0}}, 2},
		{"primary after add", [][]byte{request(addIP, 8, "10.9.0.1"), request(setPrim, 7, "10.9.0.1")}, nil, 2},
		// A7: a failure among successes is told as such.
		{"middle", [][]byte{request(addIP, 1, "10.9.0.1"), request(setPrim, 2, "10.9.0.9"), request(addIP, 3, "10.9.0.2")},
			[][2]uint32{{2, codeAddr}, {3, 0}}, 3},
		{"after a failure", [][]byte{request(addIP, 1, "10.9.0.1"), request(addIP, 2, "224.0.0.1"), request(addIP, 3, "10.9.0.2"),
			request(delIP, 4, "10.9.0.1"), request(setPrim, 5, "10.9.0.1")}, [][2]uint32{{2, codeAddr}, {3, codeShort}, {4, codeShort}, {5, 0}}, 2},
		// F9 and F11: "once a receiver begins failing any ADD or DELETE request,
		// it must fail all subsequent ADD or DELETE requests".
		{"too many", append(many(MaxPeerAddrs), request(delIP, 50, "10.9.0.1"), request(setPrim, 51, "10.9.0.1")),
			[][2]uint32{{MaxPeerAddrs - 1, codeShort}, {50, codeShort}, {51, 0}}, MaxPeerAddrs},
		{"unknown", [][]byte{wire.AppendParam(nil, 0xC0FF, []byte{0, 0, 0, 9, 1}), request(addIP, 8, "10.9.0.1")},
			[][2]uint32{{9, codeUnknown}, {8, 0}}, 2},
		{"unknown and silent", [][]byte{wire.AppendParam(nil, 0x80FF, []byte{0, 0, 0, 9}), request(addIP, 8, "10.9.0.1")}, nil, 2},
		{"unknown and final", [][]byte{wire.AppendParam(nil, 0x40FF, []byte{0, 0, 0, 9}), request(addIP, 8, "10.9.0.1")},
			[][2]uint32{{9, codeUnknown}}, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newMobile(t, 540)
			seq := p.z.assoc.asc.in.seq + 1
			out := p.z.askAsconf(seq, p.a.local[0], p.a.local[0].Addr(), x.ask...)
			if got := responses(t, seq, out); !slices.Equal(got, x.want) {
				t.Errorf("responses %v, want %v", got, x.want)
			}
			if n := p.z.assoc.NumPaths(); n != x.paths {
				t.Errorf("%d paths, want %d", n, x.paths)
			}
			p.a.wantNoEvent(EventPeerError)
			p.z.send(0, 20_000)
			p.drive()
			p.wantDelivered()
		})
	}
}

// RFC 5061, Section 5.2, E1 to E5: sequence numbers, and answers given again.
func TestAsconfReplay(t *testing.T) {
	p := newMobile(t, 541)
	src := p.a.local[0]
	seq := p.z.assoc.asc.in.seq
	if seq+1 != p.a.assoc.asc.nextSeq || seq+1 != uint32(p.a.assoc.tsn) {
		t.Errorf("first sequence number %d, A begins with %d, its TSNs with %d", seq+1, p.a.assoc.asc.nextSeq, p.a.assoc.tsn)
	}
	for i := range uint32(maxAsconfAcks + 2) {
		responses(t, seq+1+i, p.z.askAsconf(seq+1+i, src, src.Addr(), request(delIP, i, "10.0.0.1")))
	}
	last := seq + maxAsconfAcks + 2
	for s := last - maxAsconfAcks + 1; s != last+1; s++ {
		got := responses(t, s, p.z.askAsconf(s, src, src.Addr(), request(addIP, 99, "10.9.0.9")))
		if !slices.Equal(got, [][2]uint32{{s - seq - 1, codeLast}}) {
			t.Errorf("answer to %d again: %v", s-seq, got)
		}
	}
	for _, s := range []uint32{seq, seq + 1, last + 2, last + 1<<31} {
		if out := p.z.askAsconf(s, src, src.Addr(), request(addIP, 99, "10.9.0.9")); len(out) != 0 {
			t.Errorf("ASCONF %d was answered", int32(s-last))
		}
	}
	p.z.wantRemotes(src)
}

// RFC 5061, Sections 4.1.1 and 5.2, D5: without authentication "the receiver
// MUST silently discard this chunk and the rest of the packet".
func TestAsconfNeedsAuth(t *testing.T) {
	p := newMobile(t, 542)
	seq := p.z.assoc.asc.in.seq + 1
	chunk := wire.AppendAsconf(nil, wire.Asconf{Seq: seq, Addr: p.a.local[0].Addr(), Params: request(addIP, 1, "10.9.0.9")})
	beat := wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("1234")})
	forged := authed(&p.a.assoc.auth, chunk)
	forged[len(forged)-1] ^= 1
	for _, from := range []netip.AddrPort{p.a.local[0], addrPort("10.9.0.9:9899")} {
		for _, b := range [][]byte{chunk, forged} {
			p.z.outbox()
			pkt := p.z.packet(p.z.assoc.Tag(), b, beat)
			pkt.Remote = from
			p.z.deliver(pkt)
			if out := p.z.outbox(); len(out) != 0 {
				t.Errorf("answered with %s", wire.Describe(out[0]))
			}
		}
	}
	if p.z.assoc.NumPaths() != 1 || p.z.assoc.asc.in.seq != seq-1 {
		t.Error("it had an effect")
	}
	// Nor is an ASCONF-ACK believed.
	p.a.must(p.a.assoc.AddLocalAddr(p.now, extra[0]))
	p.a.outbox()
	p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendAsconfAck(nil, wire.AsconfAck{Seq: p.a.assoc.asc.nextSeq - 1})))
	if len(p.a.assoc.asc.chunk) == 0 {
		t.Error("a forged ASCONF-ACK was taken")
	}
}

// RFC 5061, Section 6: a peer that supports ASCONF but not AUTH is refused.
func TestAsconfWithoutAuthRefused(t *testing.T) {
	insecure := &Config{ChangeAddrs: true, InsecureAddrs: true}
	p := newPair(t, 543, insecure, mobileConfig())
	p.z.listen()
	p.a.dial(p.z)
	p.advance(time.Minute)
	p.a.wantState(Closed)
	var abort *AbortError
	if !errors.As(p.a.assoc.Err(), &abort) || !abort.ByPeer || p.z.assoc != nil {
		t.Errorf("A: %v", p.a.assoc.Err())
	}
	p = newPair(t, 544, mobileConfig(), insecure)
	p.z.listen()
	p.a.dial(p.z)
	p.advance(time.Minute)
	p.a.wantState(Closed)
	if !errors.As(p.a.assoc.Err(), &abort) || abort.ByPeer || p.z.assoc != nil {
		t.Errorf("A: %v", p.a.assoc.Err())
	}
	// Two that agree to do without.
	p = newMobile(t, 545, insecure)
	p.a.wantDone(p.a.must(p.a.assoc.AddLocalAddr(p.now, extra[0])), nil)
	if p.a.assoc.Authenticated() {
		t.Error("authenticated")
	}
	// And with a peer that knows neither.
	for _, cfg := range [][]*Config{{mobileConfig(), {}}, {{}, mobileConfig()}, {mobileConfig(), {Auth: &AuthConfig{}}}} {
		p = newPair(t, 546, cfg...)
		p.connect()
		if _, err := p.a.assoc.AddLocalAddr(p.now, extra[0]); err != ErrNotSupported {
			t.Errorf("AddLocalAddr: %v", err)
		}
		p.a.send(0, 1000)
		p.drive()
		p.wantDelivered()
	}
}

// RFC 5061, Section 5.2, D1 to D4: the association is found by the source
// address or, if that is not known, by the address in the chunk; and the answer
// goes to the source of the packet (E6, 5.3.2).
func TestAsconfLookup(t *testing.T) {
	from := addrPort("10.9.0.9:7777")
	for _, x := range []struct {
		name string
		addr string
		ok   bool
	}{{"known", "10.0.0.1", true}, {"unknown", "10.8.0.1", false}, {"wildcard", "0.0.0.0", true}} {
		p := newMobile(t, 547)
		seq := p.z.assoc.asc.in.seq + 1
		n := len(p.wire)
		p.z.outbox()
		chunk := wire.AppendAsconf(nil, wire.Asconf{Seq: seq, Addr: netip.MustParseAddr(x.addr),
			Params: slices.Concat(request(addIP, 1, "0.0.0.0"), request(delIP, 2, "10.0.0.1"))})
		pkt := p.z.packet(p.z.assoc.Tag(), authed(&p.a.assoc.auth, chunk))
		pkt.Remote = from
		p.z.deliver(pkt)
		p.z.flush()
		if got := p.z.assoc.pathByAddr(from) >= 0; got != x.ok {
			t.Errorf("%s: taken %v, want %v", x.name, got, x.ok)
		}
		if !x.ok {
			continue
		}
		p.z.wantRemotes(from)
		found := false
		for _, f := range p.wire[n:] {
			found = found || f.p.Local == from && hasChunk(f.p.Data, wire.ChunkAsconfAck)
		}
		if !found {
			t.Errorf("%s: no ASCONF-ACK to the source", x.name)
		}
		// Other answers have to wait until the address is verified.
		p.z.outbox()
		pkt = p.z.packet(p.z.assoc.Tag(), wire.AppendChunk(nil, 0xFE, 0, []byte("what?")))
		pkt.Remote = from
		p.z.deliver(pkt)
		for _, out := range p.z.outbox() {
			if hasChunk(out, wire.ChunkError) {
				t.Errorf("%s: %s to an unconfirmed address", x.name, wire.Describe(out))
			}
		}
	}
	// An answer to an address that does not become the peer's is sent all the
	// same, and nothing else.
	p := newMobile(t, 548)
	seq := p.z.assoc.asc.in.seq + 1
	out := p.z.askAsconf(seq, from, netip.MustParseAddr("10.0.0.1"), request(setPrim, 1, "10.0.0.1"))
	responses(t, seq, out)
	wantChunks(t, only(t, out), wire.ChunkAuth, wire.ChunkAsconfAck)
	p.z.wantRemotes(p.a.local[0])
}

// RFC 5061, Section 5.4: a request for a primary address takes effect once that
// is verified.
func TestPrimaryOnceConfirmed(t *testing.T) {
	p := newMobile(t, 560)
	src := p.a.local[0]
	p.z.askAsconf(p.z.assoc.asc.in.seq+1, src, src.Addr(), request(addIP, 1, "10.2.0.1"), request(setPrim, 2, "10.2.0.1"))
	if p.z.assoc.PathStats(1).Primary {
		t.Error("primary before it is confirmed")
	}
	p.advance(5 * time.Second)
	if st := p.z.assoc.PathStats(1); !st.Primary || !st.Confirmed {
		t.Errorf("path %+v", st)
	}
}

// When the only address of the peer is a new one that does not answer, it is
// probed until the association ends, heartbeats or not.
func TestOnlyAddressNeverAnswers(t *testing.T) {
	for _, wait := range []time.Duration{20 * time.Second, time.Hour} {
		cfg := mobileConfig()
		cfg.HBInterval = -1
		p := newMobile(t, 561, cfg)
		p.z.askAsconf(p.z.assoc.asc.in.seq+1, extra[0], p.a.local[0].Addr(), request(addIP, 1, "0.0.0.0"), request(delIP, 2, "10.0.0.1"))
		p.z.wantRemotes(extra[0])
		p.z.send(0, 1000)
		p.net.drop = func(from *host, pkt []byte) bool { return true }
		p.advance(wait)
		if wait > time.Minute {
			if p.z.wantState(Closed); p.z.assoc.Err() != ErrUnreachable {
				t.Errorf("ended with %v", p.z.assoc.Err())
			}
			continue
		}
		p.z.wantState(Established)
		p.net.drop = nil
		p.a.assoc.local = extra[:1]
		p.a.assoc.rehome(false)
		p.drive()
		p.wantDelivered()
	}
}

// RFC 5062, Section 5: an authenticated peer adds a victim's address and makes
// it the primary one; the victim gets heartbeats only.
func TestAsconfBombing(t *testing.T) {
	p := newMobile(t, 549)
	victim := addrPort("10.9.0.9:9899")
	p.net.cut[victim] = true
	seq := p.z.assoc.asc.in.seq + 1
	src := p.a.local[0]
	p.z.askAsconf(seq, src, src.Addr(), request(addIP, 1, victim.Addr().String()), request(setPrim, 2, victim.Addr().String()))
	p.z.send(0, 100_000)
	sent := 0
	for range 3000 {
		for {
			buf, tx, ok := p.z.assoc.PollTransmit(p.now, nil, 1)
			if !ok {
				break
			}
			if tx.Remote == victim {
				sent += len(buf)
				for _, c := range chunkTypes(buf) {
					if c != wire.ChunkHeartbeat && c != wire.ChunkAuth {
						t.Fatalf("the victim got %s", wire.Describe(buf))
					}
				}
			}
			p.post(p.z, Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, Data: buf})
		}
		if !p.step(p.now + Time(time.Second)) {
			break
		}
	}
	p.drive()
	p.wantDelivered()
	if i := p.z.assoc.pathByIP(victim.Addr()); p.z.assoc.primary == i || p.z.assoc.paths[i].confirmed {
		t.Error("the victim is the primary address")
	}
	if sent > 2000 {
		t.Errorf("the victim got %d bytes", sent)
	}
}

// RFC 5061, Section 5.3, F0: an ASCONF-ACK for what was not sent aborts the
// association, an old one is ignored.
func TestIllegalAsconfAck(t *testing.T) {
	ack := func(p *pair, seq uint32) {
		chunk := wire.AppendAsconfAck(nil, wire.AsconfAck{Seq: seq})
		p.a.deliver(p.a.packet(p.a.assoc.Tag(), authed(&p.z.assoc.auth, chunk)))
	}
	p := newMobile(t, 550)
	next := p.a.assoc.asc.nextSeq
	ack(p, next-1)
	ack(p, next-1<<31+1)
	p.a.wantState(Established)
	ack(p, next)
	p.a.wantState(Closed)
	var abort *AbortError
	if !errors.As(p.a.assoc.Err(), &abort) || abort.Cause != wire.CauseIllegalAsconfAck {
		t.Errorf("ended with %v", p.a.assoc.Err())
	}
	p = newMobile(t, 551)
	id := p.a.must(p.a.assoc.AddLocalAddr(p.now, extra[0]))
	p.a.outbox()
	ack(p, p.a.assoc.asc.nextSeq+5)
	p.a.wantDone(id, p.a.assoc.Err())
	p.a.wantState(Closed)
}

// RFC 5061, Section 5.1, A7 and A8: what the responses mean; F3a, F3b and A9:
// what the peer does not understand is not asked again.
func TestAsconfOutcomes(t *testing.T) {
	for _, x := range []struct {
		name string
		resp func(ids []uint32) []byte
		ok   []bool
		err  error
	}{
		{"none", func([]uint32) []byte { return nil }, []bool{true, true, true}, nil},
		{"second fails", func(ids []uint32) []byte {
			return wire.AppendAsconfError(nil, wire.AsconfError{ID: ids[1], Causes: wire.AppendOutOfResource(nil)})
		}, []bool{true, false, false}, ErrDenied},
		{"second fails, third succeeds", func(ids []uint32) []byte {
			b := wire.AppendAsconfError(nil, wire.AsconfError{ID: ids[1], Causes: wire.AppendOutOfResource(nil)})
			return wire.AppendAsconfSuccess(b, ids[2])
		}, []bool{true, false, true}, ErrDenied},
		{"not understood", func(ids []uint32) []byte {
			c := wire.AppendUnrecognizedParams(nil, request(addIP, ids[0], "10.2.0.1"))
			return wire.AppendAsconfError(nil, wire.AsconfError{ID: ids[0], Causes: c})
		}, []bool{false, false, false}, ErrNotSupported},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newMultihomed(t, 552, mobileConfig())
			p.connect()
			p.advance(3 * time.Second)
			p.a.outbox()
			id := p.a.must(p.a.assoc.ReplaceLocalAddr(p.now, p.a.local[0], extra[0]))
			p.a.outbox()
			var ids []uint32
			for _, op := range p.a.assoc.asc.ops {
				ids = append(ids, op.corr)
			}
			chunk := wire.AppendAsconfAck(nil, wire.AsconfAck{Seq: p.a.assoc.asc.nextSeq - 1, Params: x.resp(ids)})
			p.a.deliver(p.a.packet(p.a.assoc.Tag(), authed(&p.z.assoc.auth, chunk)))
			p.a.wantDone(id, x.err)
			if has := slices.Contains(p.a.assoc.local, extra[0]); has != x.ok[0] {
				t.Errorf("the new address is in use: %v", has)
			}
			if has := slices.Contains(p.a.assoc.local, p.a.local[0]); has == x.ok[2] {
				t.Errorf("the old address is in use: %v", has)
			}
			_, err := p.a.assoc.AddLocalAddr(p.now, extra[1])
			if (err == ErrNotSupported) != (x.err == ErrNotSupported) {
				t.Errorf("another addition: %v", err)
			}
		})
	}
	p := newMobile(t, 553)
	id := p.a.must(p.a.assoc.AddLocalAddr(p.now, extra[0]))
	chunk := p.a.assoc.asc.chunk
	p.a.outbox()
	cause := wire.AppendUnrecognizedChunk(nil, wire.Chunk{Type: wire.ChunkAsconf, Raw: chunk})
	p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendOpError(nil, wire.OpError{Causes: cause})))
	p.a.wantDone(id, ErrNotSupported)
	if _, err := p.a.assoc.AddLocalAddr(p.now, extra[0]); err != ErrNotSupported {
		t.Errorf("once more: %v", err)
	}
}

// RFC 5061, Section 5.3.1: an ABORT to an address that is being deleted is
// ignored.
func TestAbortToLeavingAddress(t *testing.T) {
	p := newMultihomed(t, 554, mobileConfig())
	p.connect()
	p.advance(3 * time.Second)
	p.a.must(p.a.assoc.RemoveLocalAddr(p.now, p.a.local[1]))
	p.a.outbox()
	abort := p.a.packet(p.a.assoc.Tag(), wire.AppendAbort(nil, wire.Abort{}))
	abort.Local = p.a.local[1]
	p.a.deliver(abort)
	p.a.wantState(Established)
	abort.Local = p.a.local[0]
	p.a.deliver(abort)
	p.a.wantState(Closed)
}

// The user's changes are checked and bounded (RFC 5061, Section 5.3, F5).
func TestAsconfLimits(t *testing.T) {
	p := newMobile(t, 555)
	a := p.a.assoc
	if _, err := a.RemoveLocalAddr(p.now, p.a.local[0]); err != ErrLastAddr {
		t.Errorf("removal of the last: %v", err)
	}
	for _, addr := range []string{"10.0.0.1:9899", "224.0.0.1:9899"} {
		if _, err := a.AddLocalAddr(p.now, addrPort(addr)); err != ErrLocalAddr {
			t.Errorf("addition of %s: %v", addr, err)
		}
	}
	if _, err := a.RemoveLocalAddr(p.now, extra[0]); err != ErrLocalAddr {
		t.Errorf("removal of what is not there: %v", err)
	}
	if _, err := a.SetPeerPrimary(p.now, extra[0]); err != ErrLocalAddr {
		t.Errorf("primary that is not there: %v", err)
	}
	p.net.drop = func(from *host, pkt []byte) bool { return true }
	for i := range MaxLocalAddrs - 1 {
		p.a.must(a.AddLocalAddr(p.now, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 7, 0, byte(i)}), 1)))
	}
	if _, err := a.AddLocalAddr(p.now, extra[0]); err != ErrTooMany {
		t.Errorf("addition beyond the limit: %v", err)
	}
	n := 0
	for ; n < 2*maxAsconfQueue; n++ {
		if _, err := a.SetPeerPrimary(p.now, p.a.local[0]); err == ErrBusy {
			break
		}
	}
	if len(a.asc.queue) > maxAsconfQueue || n == 2*maxAsconfQueue {
		t.Errorf("%d changes are queued", len(a.asc.queue))
	}
	p.net.drop = nil
	p.advance(10 * time.Second)
	if len(a.asc.queue)+len(a.asc.chunk) != 0 || p.z.assoc.NumPaths() != MaxLocalAddrs {
		t.Errorf("%d changes are left, the peer has %d paths", len(a.asc.queue), p.z.assoc.NumPaths())
	}
}

// The largest ASCONF fits the smallest packet.
func TestAsconfFitsTheSmallestPacket(t *testing.T) {
	cfg := mobileConfig()
	cfg.MTU = MinMTU
	p := newPair(t, 556, cfg)
	p.a.local = []netip.AddrPort{addrPort("[2001:db8::1]:9899")}
	p.z.local = []netip.AddrPort{addrPort("[2001:db8::2]:9899")}
	p.connect()
	p.net.drop = func(from *host, pkt []byte) bool { return true }
	var last uint32
	for i := range 12 {
		last = p.a.must(p.a.assoc.AddLocalAddr(p.now, netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(9 + i)}), 9899)))
	}
	p.net.drop = nil
	p.a.wantDone(last, nil)
	if n := p.z.assoc.NumPaths(); n != 13 {
		t.Errorf("%d paths, want 13", n)
	}
}

// RFC 5061, Section 5.1, B1 and B2: T4 counts errors until the association ends;
// a restart of the peer ends what was asked of it.
func TestAsconfGivesUp(t *testing.T) {
	p := newMobile(t, 557)
	id := p.a.must(p.a.assoc.AddLocalAddr(p.now, extra[0]))
	p.net.drop = func(from *host, pkt []byte) bool { return true }
	p.a.wantDone(id, ErrUnreachable)

	p = newMobile(t, 558)
	p.net.drop = func(from *host, pkt []byte) bool { return hasChunk(pkt, wire.ChunkAsconf) }
	id = p.z.must(p.z.assoc.AddLocalAddr(p.now, extra[0]))
	p.advance(50 * time.Millisecond)
	p.a.assoc = nil
	p.a.dial(p.z)
	p.z.wantDone(id, ErrRestart)
}

// Both ends change their addresses at random while data goes both ways over a
// bad network.
func TestAsconfRandomScripts(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		ok := t.Run(seedName(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 14))
			cfg := lossyConfig(seed)
			cfg.ChangeAddrs = true
			cfg.Multipath = seed%4 == 3
			if seed%3 == 0 {
				cfg.Auth = authAll()
			}
			p := newPair(quiet{t}, uint64(seed), cfg)
			p.net.cut = map[netip.AddrPort]bool{}
			p.connect()
			p.net.loss, p.net.dup, p.net.reorder = seed%5*30, seed%4*40, seed%3*80
			p.net.jitter = time.Duration(seed%4) * 4 * time.Millisecond
			pending := map[*host]map[uint32]bool{p.a: {}, p.z: {}}
			for n := range 50 {
				h, k := p.a, 0
				if rng.IntN(2) == 0 {
					h, k = p.z, 1
				}
				for range rng.IntN(3) {
					h.send(uint16(rng.IntN(5)), 1+rng.IntN(5000))
				}
				addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(20 + k), 0, byte(rng.IntN(8))}), 9899)
				local := h.assoc.local[rng.IntN(max(len(h.assoc.local), 1)):]
				var id uint32
				var err error
				switch op := rng.IntN(8); {
				case op < 3:
					id, err = h.assoc.AddLocalAddr(p.now, addr)
				case op < 5 && len(local) > 0:
					id, err = h.assoc.RemoveLocalAddr(p.now, local[0])
				case op == 5 && len(local) > 0:
					id, err = h.assoc.ReplaceLocalAddr(p.now, local[0], addr)
				case op == 6 && len(local) > 0:
					id, err = h.assoc.SetPeerPrimary(p.now, local[0])
				}
				switch err {
				case nil, ErrLastAddr, ErrLocalAddr, ErrTooMany, ErrBusy:
				default:
					t.Fatalf("step %d: %v; A %v, Z %v", n, err, p.a.assoc.Err(), p.z.assoc.Err())
				}
				if id != 0 {
					pending[h][id] = true
				}
				p.advance(time.Duration(rng.IntN(40)) * time.Millisecond)
			}
			done := func() bool {
				for h, ids := range pending {
					h.flush()
					for _, e := range h.events {
						if e.Kind == EventRequestDone {
							delete(ids, e.Request)
						}
					}
					h.events = nil
				}
				return len(pending[p.a])+len(pending[p.z]) == 0
			}
			if !p.driveUntil(time.Hour, done) {
				t.Fatalf("changes %v of A and %v of Z have no outcome", pending[p.a], pending[p.z])
			}
			p.drive()
			p.advance(time.Minute)
			p.wantDelivered()
			for h, peer := range map[*host]*host{p.a: p.z, p.z: p.a} {
				want := slices.Clone(h.assoc.local)
				peer.wantRemotes(want...)
				for i := range peer.assoc.NumPaths() {
					if st := peer.assoc.PathStats(i); !st.Confirmed {
						t.Errorf("%s: path %v is not confirmed", peer.name, st.Remote)
					}
				}
			}
			p.a.send(0, 20_000)
			p.z.send(0, 20_000)
			p.drive()
			p.wantDelivered()
		})
		if !ok {
			return
		}
	}
}
