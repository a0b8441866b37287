package core

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/asconf"
	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

// askAsconf makes an ASCONF of h's peer arrive at h from a source and returns
// the answers.
func (h *host) askAsconf(num uint32, from netip.AddrPort, addr netip.Addr, params ...[]byte) [][]byte {
	h.p.t.Helper()
	h.outbox()
	chunk := wire.AppendAsconf(nil, wire.Asconf{Seq: num, Addr: addr, Params: slices.Concat(params...)})
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
func responses(t testing.TB, num uint32, pkts [][]byte) (list [][2]uint32) {
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
			if x.Seq != num {
				t.Errorf("ASCONF-ACK %d, want %d", x.Seq, num)
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
		{"too many", append(many(address.MaxPeer), request(delIP, 50, "10.9.0.1"), request(setPrim, 51, "10.9.0.1")),
			[][2]uint32{{address.MaxPeer - 1, codeShort}, {50, codeShort}, {51, 0}}, address.MaxPeer},
		{"unknown", [][]byte{wire.AppendParam(nil, 0xC0FF, []byte{0, 0, 0, 9, 1}), request(addIP, 8, "10.9.0.1")},
			[][2]uint32{{9, codeUnknown}, {8, 0}}, 2},
		{"unknown and silent", [][]byte{wire.AppendParam(nil, 0x80FF, []byte{0, 0, 0, 9}), request(addIP, 8, "10.9.0.1")}, nil, 2},
		{"unknown and final", [][]byte{wire.AppendParam(nil, 0x40FF, []byte{0, 0, 0, 9}), request(addIP, 8, "10.9.0.1")},
			[][2]uint32{{9, codeUnknown}}, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newMobile(t, 540)
			num := p.z.assoc.asconfIn.Seq() + 1
			out := p.z.askAsconf(num, p.a.local[0], p.a.local[0].Addr(), x.ask...)
			if got := responses(t, num, out); !slices.Equal(got, x.want) {
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
	num := p.z.assoc.asconfIn.Seq()
	if num+1 != p.a.assoc.asc.NextSeq() || num+1 != uint32(p.a.assoc.tsn) {
		t.Errorf("first sequence number %d, A begins with %d, its TSNs with %d", num+1, p.a.assoc.asc.NextSeq(), p.a.assoc.tsn)
	}
	for i := range uint32(asconf.MaxAcks + 2) {
		responses(t, num+1+i, p.z.askAsconf(num+1+i, src, src.Addr(), request(delIP, i, "10.0.0.1")))
	}
	last := num + asconf.MaxAcks + 2
	for s := last - asconf.MaxAcks + 1; s != last+1; s++ {
		got := responses(t, s, p.z.askAsconf(s, src, src.Addr(), request(addIP, 99, "10.9.0.9")))
		if !slices.Equal(got, [][2]uint32{{s - num - 1, codeLast}}) {
			t.Errorf("answer to %d again: %v", s-num, got)
		}
	}
	for _, s := range []uint32{num, num + 1, last + 2, last + 1<<31} {
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
	num := p.z.assoc.asconfIn.Seq() + 1
	chunk := wire.AppendAsconf(nil, wire.Asconf{Seq: num, Addr: p.a.local[0].Addr(), Params: request(addIP, 1, "10.9.0.9")})
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
	if p.z.assoc.NumPaths() != 1 || p.z.assoc.asconfIn.Seq() != num-1 {
		t.Error("it had an effect")
	}
	// Nor is an ASCONF-ACK believed.
	p.a.must(p.a.assoc.AddLocalAddr(extra[0]))
	p.a.outbox()
	p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendAsconfAck(nil, wire.AsconfAck{Seq: p.a.assoc.asc.NextSeq() - 1})))
	if !p.a.assoc.asc.Outstanding() {
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
	p.a.wantDone(p.a.must(p.a.assoc.AddLocalAddr(extra[0])), nil)
	if p.a.assoc.Authenticated() {
		t.Error("authenticated")
	}
	// And with a peer that knows neither.
	for _, cfg := range [][]*Config{{mobileConfig(), {}}, {{}, mobileConfig()}, {mobileConfig(), {Auth: &auth.Config{}}}} {
		p = newPair(t, 546, cfg...)
		p.connect()
		if _, err := p.a.assoc.AddLocalAddr(extra[0]); err != requests.ErrNotSupported {
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
		num := p.z.assoc.asconfIn.Seq() + 1
		n := len(p.wire)
		p.z.outbox()
		chunk := wire.AppendAsconf(nil, wire.Asconf{Seq: num, Addr: netip.MustParseAddr(x.addr),
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
	num := p.z.assoc.asconfIn.Seq() + 1
	out := p.z.askAsconf(num, from, netip.MustParseAddr("10.0.0.1"), request(setPrim, 1, "10.0.0.1"))
	responses(t, num, out)
	wantChunks(t, only(t, out), wire.ChunkAuth, wire.ChunkAsconfAck)
	p.z.wantRemotes(p.a.local[0])
}

// RFC 5062, Section 5: an authenticated peer adds a victim's address and makes
// it the primary one; the victim gets heartbeats only.
func TestAsconfBombing(t *testing.T) {
	p := newMobile(t, 549)
	victim := addrPort("10.9.0.9:9899")
	p.net.cut[victim] = true
	num := p.z.assoc.asconfIn.Seq() + 1
	src := p.a.local[0]
	p.z.askAsconf(num, src, src.Addr(), request(addIP, 1, victim.Addr().String()), request(setPrim, 2, victim.Addr().String()))
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
		if !p.step(p.now + clock.Time(time.Second)) {
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
