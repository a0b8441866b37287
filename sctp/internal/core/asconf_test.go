package core

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/asconf"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/tx"
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
	id := p.a.must(p.a.assoc.AddLocalAddr(extra[0]))
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
	p.a.wantDone(p.a.must(p.a.assoc.SetPeerPrimary(extra[0])), nil)
	if e := p.z.wantEvent(EventPrimary); e.Addr != extra[0] {
		t.Errorf("primary %v", e.Addr)
	}
	// The old one dies and is taken back.
	p.net.cut[was] = true
	p.a.wantDone(p.a.must(p.a.assoc.RemoveLocalAddr(was)), nil)
	if e := p.z.wantEvent(EventPathRemoved); e.Addr != was {
		t.Errorf("removed %v", e.Addr)
	}
	p.z.wantRemotes(extra[0])
	p.a.send(0, 50_000)
	p.z.send(0, 50_000)
	p.drive()
	p.wantDelivered()
	// Its place serves another one.
	p.a.wantDone(p.a.must(p.a.assoc.AddLocalAddr(extra[1])), nil)
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
	{"add", func(p *pair) (uint32, error) { return p.a.assoc.AddLocalAddr(extra[0]) },
		func(p *pair) []netip.AddrPort { return append(slices.Clone(p.a.local), extra[0]) }},
	{"remove", func(p *pair) (uint32, error) { return p.a.assoc.RemoveLocalAddr(p.a.local[0]) },
		func(p *pair) []netip.AddrPort { return p.a.local[1:2] }},
	{"primary", func(p *pair) (uint32, error) { return p.a.assoc.SetPeerPrimary(p.a.local[1]) },
		func(p *pair) []netip.AddrPort { return slices.Clone(p.a.local) }},
	{"replace", func(p *pair) (uint32, error) { return p.a.assoc.ReplaceLocalAddr(p.a.local[0], extra[0]) },
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
		id := p.a.must(p.a.assoc.ReplaceLocalAddr(was, extra[0]))
		// F6: the source is not "an address being deleted".
		buf, tx, _ := p.a.assoc.PollTransmit(p.now, nil, 1)
		if tx.Local != extra[0] {
			t.Errorf("A sends from %v", tx.Local)
		}
		p.post(p.a, Packet{Tuple: Tuple{Local: tx.Remote, Remote: tx.Local}, Data: buf})
		if !p.driveUntil(time.Minute, func() bool { acked = !p.a.assoc.asc.Outstanding(); return acked }) {
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

const (
	codeLast     = uint32(wire.CauseDeleteLastIP)
	codeShort    = uint32(wire.CauseResourceShortage)
	codeSource   = uint32(wire.CauseDeleteSourceIP)
	codeAddr     = uint32(wire.CauseUnresolvableAddress)
	codeUnknown  = uint32(wire.CauseUnrecognizedParams)
	addIP, delIP = wire.ParamAddIP, wire.ParamDeleteIP
	setPrim      = wire.ParamSetPrimary
)

// RFC 5061, Section 5.4: a request for a primary address takes effect once that
// is verified.
func TestPrimaryOnceConfirmed(t *testing.T) {
	p := newMobile(t, 560)
	src := p.a.local[0]
	p.z.askAsconf(p.z.assoc.asconfIn.Seq()+1, src, src.Addr(), request(addIP, 1, "10.2.0.1"), request(setPrim, 2, "10.2.0.1"))
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
		p.z.askAsconf(p.z.assoc.asconfIn.Seq()+1, extra[0], p.a.local[0].Addr(), request(addIP, 1, "0.0.0.0"), request(delIP, 2, "10.0.0.1"))
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
		p.a.assoc.local.InUse = extra[:1]
		p.a.assoc.rehome(false)
		p.drive()
		p.wantDelivered()
	}
}

// RFC 5061, Section 5.3.1: an ABORT to an address that is being deleted is
// ignored.
func TestAbortToLeavingAddress(t *testing.T) {
	p := newMultihomed(t, 554, mobileConfig())
	p.connect()
	p.advance(3 * time.Second)
	p.a.must(p.a.assoc.RemoveLocalAddr(p.a.local[1]))
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
	if _, err := a.RemoveLocalAddr(p.a.local[0]); err != asconf.ErrLastAddr {
		t.Errorf("removal of the last: %v", err)
	}
	for _, addr := range []string{"10.0.0.1:9899", "224.0.0.1:9899"} {
		if _, err := a.AddLocalAddr(addrPort(addr)); err != asconf.ErrLocalAddr {
			t.Errorf("addition of %s: %v", addr, err)
		}
	}
	if _, err := a.RemoveLocalAddr(extra[0]); err != asconf.ErrLocalAddr {
		t.Errorf("removal of what is not there: %v", err)
	}
	if _, err := a.SetPeerPrimary(extra[0]); err != asconf.ErrLocalAddr {
		t.Errorf("primary that is not there: %v", err)
	}
	p.net.drop = func(from *host, pkt []byte) bool { return true }
	for i := range address.MaxLocal - 1 {
		p.a.must(a.AddLocalAddr(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 7, 0, byte(i)}), 1)))
	}
	if _, err := a.AddLocalAddr(extra[0]); err != requests.ErrTooMany {
		t.Errorf("addition beyond the limit: %v", err)
	}
	n := 0
	for ; n < 2*asconf.MaxQueue; n++ {
		if _, err := a.SetPeerPrimary(p.a.local[0]); err == requests.ErrBusy {
			break
		}
	}
	if a.asc.Pending() > asconf.MaxQueue+asconf.MaxChanges || n == 2*asconf.MaxQueue {
		t.Errorf("%d changes are queued", a.asc.Pending())
	}
	p.net.drop = nil
	p.advance(10 * time.Second)
	if a.asc.Pending() != 0 || p.z.assoc.NumPaths() != address.MaxLocal {
		t.Errorf("%d changes are left, the peer has %d paths", a.asc.Pending(), p.z.assoc.NumPaths())
	}
}

// The largest ASCONF fits the smallest packet.
func TestAsconfFitsTheSmallestPacket(t *testing.T) {
	cfg := mobileConfig()
	cfg.MTU = pmtu.MinMTU
	p := newPair(t, 556, cfg)
	p.a.local = []netip.AddrPort{addrPort("[2001:db8::1]:9899")}
	p.z.local = []netip.AddrPort{addrPort("[2001:db8::2]:9899")}
	p.connect()
	p.net.drop = func(from *host, pkt []byte) bool { return true }
	var last uint32
	for i := range 12 {
		last = p.a.must(p.a.assoc.AddLocalAddr(netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(9 + i)}), 9899)))
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
	id := p.a.must(p.a.assoc.AddLocalAddr(extra[0]))
	p.net.drop = func(from *host, pkt []byte) bool { return true }
	p.a.wantDone(id, ErrUnreachable)

	p = newMobile(t, 558)
	p.net.drop = func(from *host, pkt []byte) bool { return hasChunk(pkt, wire.ChunkAsconf) }
	id = p.z.must(p.z.assoc.AddLocalAddr(extra[0]))
	p.advance(50 * time.Millisecond)
	p.a.assoc = nil
	p.a.dial(p.z)
	p.z.wantDone(id, tx.ErrRestart)
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
				local := h.assoc.local.InUse[rng.IntN(max(len(h.assoc.local.InUse), 1)):]
				var id uint32
				var err error
				switch op := rng.IntN(8); {
				case op < 3:
					id, err = h.assoc.AddLocalAddr(addr)
				case op < 5 && len(local) > 0:
					id, err = h.assoc.RemoveLocalAddr(local[0])
				case op == 5 && len(local) > 0:
					id, err = h.assoc.ReplaceLocalAddr(local[0], addr)
				case op == 6 && len(local) > 0:
					id, err = h.assoc.SetPeerPrimary(local[0])
				}
				switch err {
				case nil, asconf.ErrLastAddr, asconf.ErrLocalAddr, requests.ErrTooMany, requests.ErrBusy:
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
				want := slices.Clone(h.assoc.local.InUse)
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
