package core

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/address"
	"github.com/weftstack/weft/sctp/internal/core/auth"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/wire"
)

// initPacket returns a packet with an INIT that has the given parameters.
func initPacket(params []byte) []byte {
	b := wire.AppendHeader(nil, wire.Header{SrcPort: portA, DstPort: portZ})
	b = wire.AppendInit(b, wire.Init{Tag: 0xCAFE, RWND: 1 << 17, OutStreams: 10, InStreams: 65535, TSN: 77, Params: params})
	wire.SetChecksum(b)
	return b
}

// foreignInits are the parameters of INITs as others send them.
func foreignInits() map[string][]byte {
	addrs4, addrs6 := []byte(nil), []byte(nil)
	for i := range 4 {
		addrs4 = wire.AppendAddr(addrs4, netip.AddrFrom4([4]byte{10, 0, byte(i), 1}))
		addrs6 = wire.AppendAddr(addrs6, netip.AddrFrom16([16]byte{0x20, 1, 13: byte(i), 15: 1}))
	}
	// Linux with what it has switched on by default: address types, ECN, partial
	// reliability and an adaptation indication.
	linux := wire.AppendSupportedAddrTypes(nil, wire.ParamIPv4)
	linux = wire.AppendAdaptation(wire.AppendForwardTSNSupported(wire.AppendECN(linux)), 0)
	// usrsctp besides has AUTH, ASCONF and RE-CONFIG.
	usr := wire.AppendForwardTSNSupported(wire.AppendECN(nil))
	usr = wire.AppendSupportedExtensions(usr, wire.ChunkAsconf, wire.ChunkAsconfAck, wire.ChunkForwardTSN, wire.ChunkReConfig, wire.ChunkAuth)
	usr = wire.AppendRandom(usr, make([]byte, 32))
	usr = wire.AppendHMACAlgo(usr, wire.HMACSHA256, wire.HMACSHA1)
	usr = wire.AppendChunkList(usr, wire.ChunkAsconf, wire.ChunkAsconfAck)
	var unknown []byte
	for range 16 {
		unknown = wire.AppendParam(unknown, 0xC0FF, nil)
	}
	return map[string][]byte{"bare": nil, "linux": linux, "linux with 4 IPv4 addresses": append(addrs4, linux...),
		"linux with 4 IPv6 addresses": append(addrs6, linux...), "usrsctp": usr, "unknown parameters": unknown}
}

// listenerAddrs returns n local addresses.
func listenerAddrs(v6 bool, n int) (list []netip.AddrPort) {
	for i := range n {
		ip := netip.AddrFrom4([4]byte{10, 9, 0, byte(i + 1)})
		if v6 {
			ip = netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i + 1)})
		}
		list = append(list, netip.AddrPortFrom(ip, 9899))
	}
	return list
}

// An INIT ACK to an address that nobody has verified is not more than three times
// as long as the INIT, UDP payload counted, whoever sends the INIT, even if the
// listener has all addresses and extensions that it can.
func TestInitAckIsAtMostThreeTimesTheInit(t *testing.T) {
	now := clock.Time(time.Second)
	adaptation := uint32(7)
	all := &Config{Auth: &auth.Config{}, ChangeAddrs: true, ZeroChecksum: true, Adaptation: &adaptation}
	for _, c := range []struct {
		name  string
		cfg   *Config
		addrs int
	}{{"default", &Config{}, 1}, {"auth", &Config{Auth: &auth.Config{}}, 1}, {"asconf", &Config{Auth: &auth.Config{}, ChangeAddrs: true}, 1},
		{"4 addresses", &Config{}, 4}, {"all", all, address.MaxLocal}} {
		for _, v6 := range []bool{false, true} {
			local := listenerAddrs(v6, c.addrs)
			l := NewListener(c.cfg, ListenerParams{Port: portZ, Local: local, Seed: [32]byte{1}})
			try := func(name string, pkt []byte) {
				remote := listenerAddrs(v6, 100)[99]
				r := l.HandlePacket(now, &Packet{Tuple: Tuple{Local: local[0], Remote: remote}, Data: pkt}, nil)
				wantChunks(t, r.Reply, wire.ChunkInitAck)
				t.Logf("%s, IPv6 %v, %s: %d bytes answer %d, %.2f times", c.name, v6, name, len(r.Reply), len(pkt), float64(len(r.Reply))/float64(len(pkt)))
				if len(r.Reply) > 3*len(pkt) {
					t.Errorf("%s, IPv6 %v, %s: %d bytes answer %d: %s", c.name, v6, name, len(r.Reply), len(pkt), wire.Describe(r.Reply))
				}
			}
			for name, params := range foreignInits() {
				try(name, initPacket(params))
			}
			for _, client := range []*Config{{}, c.cfg} {
				a, err := NewClient(client, now, ClientParams{LocalPort: portA, PeerPort: portZ, Local: local[:1], Peer: local[:1], Tag: 5})
				if err != nil {
					t.Fatal(err)
				}
				buf, _, _ := a.PollTransmit(now, make([]byte, 0, 3000), 1)
				wantChunks(t, buf, wire.ChunkInit)
				try("weft", buf)
			}
		}
	}
}

// What is left out of an INIT ACK to keep it short is what the peer does not
// support: an INIT that names everything gets everything.
func TestInitAckNamesWhatTheInitDoes(t *testing.T) {
	p := newPair(t, 50)
	p.z.listen()
	full := feature.AppendParams(nil, localFeatures(&p.z.listener.cfg))
	for _, x := range []struct {
		params []byte
		has    bool
	}{{nil, false}, {full, true}} {
		r := p.z.listener.HandlePacket(p.now, &Packet{Tuple: Tuple{Remote: p.a.local[0]}, Data: initPacket(x.params)}, nil)
		it := wire.NewChunks(r.Reply[wire.HeaderLen:])
		it.Next()
		ack, err := wire.ParseInitAck(it.Chunk())
		if err != nil {
			t.Fatal(err)
		}
		_, ext := wire.FindParam(ack.Params, wire.ParamSupportedExtensions)
		_, fwd := wire.FindParam(ack.Params, wire.ParamForwardTSN)
		if ext != x.has || fwd != x.has {
			t.Errorf("extensions %v, partial reliability %v, want %v", ext, fwd, x.has)
		}
	}
}

// A peer with a short INIT is not told of our other addresses, so none of them is
// used with it: not in packets of ours, which it could not tell whose they are.
func TestShortInitGetsOneAddress(t *testing.T) {
	local := listenerAddrs(true, 4)
	remote := listenerAddrs(true, 100)[99]
	for _, x := range []struct{ params, addrs int }{{0, 1}, {160, 4}} {
		l := NewListener(&Config{}, ListenerParams{Port: portZ, Local: local, Seed: [32]byte{1}})
		tuple := Tuple{Local: local[2], Remote: remote}
		var params []byte
		if x.params > 0 {
			params = wire.AppendPadParam(nil, x.params)
		}
		reply := l.HandlePacket(0, &Packet{Tuple: tuple, Data: initPacket(params)}, nil).Reply
		it := wire.NewChunks(reply[wire.HeaderLen:])
		it.Next()
		ack, err := wire.ParseInitAck(it.Chunk())
		if err != nil {
			t.Fatal(err)
		}
		listed := 0
		for ps := wire.NewParams(ack.Params); ps.Next(); {
			if ps.Param().Type == wire.ParamIPv6 {
				listed++
			}
		}
		if told := max(1, listed); told != x.addrs || listed == 1 {
			t.Errorf("%d bytes of parameters: %d addresses listed", x.params, listed)
		}
		sealed, ok := wire.FindParam(ack.Params, wire.ParamStateCookie)
		if !ok {
			t.Fatal("no cookie")
		}
		echo := wire.AppendHeader(nil, wire.Header{SrcPort: portA, DstPort: portZ, VTag: ack.Tag})
		echo = wire.AppendCookieEcho(echo, wire.CookieEcho{Cookie: sealed.Value})
		wire.SetChecksum(echo)
		a := l.HandlePacket(1, &Packet{Tuple: tuple, Data: echo}, nil).New
		if a == nil {
			t.Fatal("no association")
		}
		if len(a.local.InUse) != x.addrs || !slices.Contains(a.local.InUse, local[2]) {
			t.Errorf("%d bytes of parameters: the association uses %v", x.params, a.local.InUse)
		}
	}
}

// An INIT that seems to come from an address that the peer has listed, and that
// did not answer yet, gets no long answer either; one from a confirmed address does.
func TestInitAckToUnconfirmedAddress(t *testing.T) {
	for _, confirmed := range []bool{true, false} {
		p := newPair(t, 51)
		p.a = p.newHost("A", nil, "10.0.0.1:9899", "10.0.1.1:9899")
		p.z = p.newHost("Z", nil, "10.0.0.2:9899", "10.0.1.2:9899", "10.0.2.2:9899", "10.0.3.2:9899")
		if !confirmed {
			p.net.cut = map[netip.AddrPort]bool{p.a.local[1]: true}
		}
		p.connect()
		p.drive()
		p.advance(time.Second)
		p.z.outbox()
		init := initPacket(nil)
		p.z.assoc.HandlePacket(p.now, &Packet{Tuple: Tuple{Local: p.z.local[1], Remote: p.a.local[1]}, Data: init})
		out := p.z.outbox()
		if !confirmed {
			if len(out) != 0 {
				t.Errorf("%d bytes to an unconfirmed address answer %d", len(out[0]), len(init))
			}
			continue
		}
		if pkt := only(t, out); len(pkt) <= 3*len(init) {
			t.Errorf("%d bytes answer %d: the test shows nothing", len(pkt), len(init))
		}
	}
}
