package core

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/wire"
)

func checksumOf(pkt []byte) uint32 { return binary.BigEndian.Uint32(pkt[8:]) }

// RFC 9653, Section 5: packets have zero in place of the checksum if both sides
// said that they accept it, save those with INIT or COOKIE ECHO, and, from us, INIT ACK.
func TestZeroChecksum(t *testing.T) {
	for _, tc := range []struct {
		name string
		a, z bool
	}{{"both", true, true}, {"initiator", true, false}, {"other", false, true}, {"none", false, false}} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPair(t, 750, &Config{ZeroChecksum: tc.a, Discover: true, MaxMTU: 4000}, &Config{ZeroChecksum: tc.z})
			p.zeroSum = true
			zero, full := 0, 0
			p.net.sniff = func(from *host, pkt []byte) {
				types := chunkTypes(pkt)
				switch {
				case checksumOf(pkt) != 0:
					full++
					if !wire.VerifyChecksum(pkt) {
						t.Errorf("wrong checksum: %s", wire.Describe(pkt))
					}
				case types[0] == wire.ChunkInit || types[0] == wire.ChunkInitAck || types[0] == wire.ChunkCookieEcho:
					t.Errorf("no checksum: %s", wire.Describe(pkt))
				default:
					zero++
				}
			}
			p.connect()
			p.a.send(0, 50_000)
			p.z.send(0, 50_000)
			p.drive()
			p.advance(time.Minute)
			p.a.assoc.Shutdown(p.now)
			p.advance(time.Minute)
			p.wantDelivered()
			if both := tc.a && tc.z; both && (zero < 50 || full > 4) || !both && zero > 0 {
				t.Errorf("%d packets without checksum, %d with", zero, full)
			}
			p.a.wantState(Closed)
		})
	}
}

// With the method for packets that do not leave the host, checksums are left out
// between equal and loopback addresses, of both ends that know it, only.
func TestZeroChecksumOnTheHost(t *testing.T) {
	local, dtls := &Config{ZeroChecksumLocal: true}, &Config{ZeroChecksum: true}
	for _, tc := range []struct {
		name   string
		cfg    [2]*Config
		addrs  [2]string
		leaves bool // checksums out
	}{
		{"same address", [2]*Config{local, local}, [2]string{"10.0.0.1:9899", "10.0.0.1:9900"}, true},
		{"loopback", [2]*Config{local, local}, [2]string{"127.0.0.1:9899", "127.0.0.2:9900"}, true},
		{"other host", [2]*Config{local, local}, [2]string{"10.0.0.1:9899", "10.0.0.2:9899"}, false},
		{"one end", [2]*Config{local, nil}, [2]string{"10.0.0.1:9899", "10.0.0.1:9900"}, false},
		{"other method", [2]*Config{local, dtls}, [2]string{"10.0.0.1:9899", "10.0.0.1:9900"}, false},
	} {
		p := newPair(t, 752, tc.cfg[0], tc.cfg[1])
		p.a = p.newHost("A", tc.cfg[0], tc.addrs[0])
		p.z = p.newHost("Z", tc.cfg[1], tc.addrs[1])
		p.zeroSum = true
		zero, full := 0, 0
		p.net.sniff = func(_ *host, pkt []byte) {
			if checksumOf(pkt) == 0 {
				zero++
			} else if full++; !wire.VerifyChecksum(pkt) {
				t.Errorf("%s: wrong checksum: %s", tc.name, wire.Describe(pkt))
			}
		}
		p.connect()
		p.a.send(0, 50_000)
		p.z.send(0, 50_000)
		p.drive()
		p.wantDelivered()
		if tc.leaves && (zero < 50 || full > 4) || !tc.leaves && zero > 0 {
			t.Errorf("%s: %d packets without checksum, %d with", tc.name, zero, full)
		}
		// One that comes from elsewhere, or is said to, is not taken without.
		p.z.receive(t, tc.name)
	}
}

// receive checks that a packet from another host needs a checksum.
func (h *host) receive(t *testing.T, name string) {
	t.Helper()
	pkt := h.packet(h.assoc.Tag(), wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("x")}))
	pkt.Remote = netip.MustParseAddrPort("192.0.2.1:9899")
	pkt.Local = netip.MustParseAddrPort("10.0.0.1:9899")
	clear(pkt.Data[8:12])
	want := DropChecksum
	if h.cfg != nil && h.cfg.ZeroChecksum {
		want = DropAddr
	}
	if got := h.assoc.HandlePacket(h.p.now, pkt); got != want {
		t.Errorf("%s: packet without checksum from elsewhere: %v, want %v", name, got, want)
	}
}

// A packet without checksum is taken only by who announced that, and never if it
// is an INIT or a COOKIE ECHO; a wrong one never is.
func TestZeroChecksumIsNotAcceptedUnasked(t *testing.T) {
	for _, announced := range []bool{false, true} {
		p := newPair(t, 751, &Config{ZeroChecksum: announced}, &Config{ZeroChecksum: true})
		p.zeroSum = true
		p.connect()
		a := p.a.assoc
		want := DropChecksum
		if announced {
			want = DropNone
		}
		for _, tc := range []struct {
			name  string
			sum   byte
			chunk []byte
			want  DropReason
		}{
			{"heartbeat", 0, wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("x")}), want},
			{"wrong", 1, wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("x")}), DropChecksum},
			{"init", 0, wire.AppendInit(nil, wire.Init{Tag: 1, RWND: 9999, OutStreams: 1, InStreams: 1}), DropChecksum},
			{"cookie echo", 0, wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: make([]byte, 300)}), DropChecksum},
			{"cookie echo behind auth", 0, append(wire.AppendChunk(nil, wire.ChunkAuth, 0, make([]byte, 36)),
				wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: make([]byte, 300)})...), DropChecksum},
			{"nothing", 0, nil, DropShort},
		} {
			pkt := p.a.packet(a.Tag(), tc.chunk)
			for i := 8; i < 12; i++ {
				pkt.Data[i] = tc.sum
			}
			if got := a.HandlePacket(p.now, pkt); got != tc.want {
				t.Errorf("announced %v, %s: %v, want %v", announced, tc.name, got, tc.want)
			}
		}
	}
}

// Another error detection method than DTLS is not ours.
func TestZeroChecksumOfAnotherMethod(t *testing.T) {
	var in cookie.Init
	in.Parse(&wire.Init{Params: wire.AppendZeroChecksum(nil, 2)}, false)
	if in.Features.Has(feature.ZeroChecksum) || in.Malformed {
		t.Errorf("method 2: features %v, malformed %v", in.Features, in.Malformed)
	}
	in.Parse(&wire.Init{Params: wire.AppendZeroChecksum(nil, wire.EDMIDDTLS)}, false)
	if !in.Features.Has(feature.ZeroChecksum) {
		t.Error("DTLS is not accepted")
	}
}

// zeroWhereAllowed makes both ends leave out the checksum of each packet that RFC 9653,
// Section 5.2, allows it for, as browsers and pion/sctp do, if the other end announced
// that it is acceptable.
func (p *pair) zeroWhereAllowed() {
	p.net.mangle = func(from *host, pkt []byte) []byte {
		to := p.z
		if from == p.z {
			to = p.a
		}
		if to.cfg.ZeroChecksum && !slices.ContainsFunc(chunkTypes(pkt), func(t wire.ChunkType) bool {
			return t == wire.ChunkInit || t == wire.ChunkCookieEcho || t == wire.ChunkAsconf
		}) {
			clear(pkt[8:12])
		}
		return pkt
	}
}

// RFC 9653, Section 5.3: an end that announced the method accepts zero in every packet
// of the association, the INIT ACK included, whichever end dials, where both do, and
// after a restart; whether or not the peer announced the same.
func TestZeroChecksumInAllPacketsOfThePeer(t *testing.T) {
	for _, tc := range []struct {
		name string
		a, z bool
	}{{"both", true, true}, {"initiator", true, false}, {"other", false, true}, {"none", false, false}} {
		cfg := func(zero bool) *Config {
			c := fastConfig()
			c.ZeroChecksum = zero
			return c
		}
		check := func(t *testing.T, p *pair) {
			p.a.send(0, 20_000)
			p.z.send(1, 20_000)
			p.drive()
			p.wantDelivered()
			for _, h := range []*host{p.a, p.z} {
				if n := h.dropped[DropChecksum]; n > 0 {
					t.Errorf("%s dropped %d packets for their checksum", h.name, n)
				}
			}
			p.a.assoc.Shutdown(p.now)
			p.advance(time.Second)
			p.a.wantState(Closed)
			p.z.wantState(Closed)
		}
		t.Run(tc.name+"/dial", func(t *testing.T) {
			p := newPair(t, 753, cfg(tc.a), cfg(tc.z))
			p.zeroSum = true
			p.zeroWhereAllowed()
			p.connect()
			check(t, p)
		})
		t.Run(tc.name+"/both dial", func(t *testing.T) {
			for apart := range clock.Time(12) {
				p := newPair(t, 754, cfg(tc.a), cfg(tc.z))
				p.zeroSum = true
				p.zeroWhereAllowed()
				p.a.listen()
				p.z.listen()
				p.a.dial(p.z)
				p.advance(time.Duration(apart) * time.Millisecond)
				if p.z.assoc == nil {
					p.z.dial(p.a)
				}
				if !p.driveUntil(time.Minute, func() bool {
					return p.a.assoc.State() == Established && p.z.assoc.State() == Established
				}) {
					t.Fatalf("%d ms apart: A %v, Z %v", apart, p.a.assoc.State(), p.z.assoc.State())
				}
				p.advance(time.Second)
				check(t, p)
			}
		})
		t.Run(tc.name+"/restart", func(t *testing.T) {
			p := newPair(t, 755, cfg(tc.a), cfg(tc.z))
			p.zeroSum = true
			p.zeroWhereAllowed()
			p.connect()
			p.a.send(0, 20_000)
			p.z.send(1, 20_000)
			p.advance(12 * time.Millisecond)
			p.restarted()
			if !p.driveUntil(time.Minute, func() bool { return p.a.assoc.State() == Established }) {
				t.Fatalf("A is %v", p.a.assoc.State())
			}
			p.z.wantEvent(EventRestart)
			check(t, p)
		})
	}
}

// RFC 9653, Section 5.2: "When an endpoint supports the dynamic address reconfiguration …
// and sends a packet containing an ASCONF chunk, it MUST include a correct CRC32c
// checksum", although the answer goes without.
func TestZeroChecksumButNotWithAsconf(t *testing.T) {
	c := mobileConfig()
	c.ZeroChecksum = true
	p := newPair(t, 756, c)
	p.zeroSum = true
	var with, without int
	p.net.sniff = func(_ *host, pkt []byte) {
		switch zero := checksumOf(pkt) == 0; {
		case hasChunk(pkt, wire.ChunkAsconf):
			if with++; !wire.VerifyChecksum(pkt) {
				t.Errorf("no right checksum: %s", wire.Describe(pkt))
			}
		case hasChunk(pkt, wire.ChunkAsconfAck):
			if without++; !zero {
				t.Errorf("a checksum: %s", wire.Describe(pkt))
			}
		}
	}
	p.connect()
	p.drive()
	p.a.send(0, 20_000) // bundled with the chunk
	p.a.wantDone(p.a.must(p.a.assoc.AddLocalAddr(extra[0])), nil)
	p.drive()
	p.wantDelivered()
	if with == 0 || without == 0 {
		t.Errorf("%d packets with ASCONF, %d with ASCONF-ACK", with, without)
	}
}

// RFC 9653, Section 5.3: packets out of the blue may be processed without a checksum, too,
// which has the peer of an association that is gone learn that at once. What answers
// them has a checksum (Section 5.2).
func TestZeroChecksumOutOfTheBlue(t *testing.T) {
	p := newPair(t, 757, &Config{ZeroChecksum: true})
	p.z.listen()
	for _, tc := range []struct {
		name   string
		handle func(pkt *Packet) Result
		want   DropReason
	}{
		{"listener", func(pkt *Packet) Result { return p.z.listener.HandlePacket(p.now, pkt, nil) }, DropNone},
		{"port without listener", func(pkt *Packet) Result { return Result{Answer: HandleOOTB(p.z.cfg, pkt, nil)} }, DropNone},
		{"port out of use", func(pkt *Packet) Result { return Result{Answer: HandleOOTB(nil, pkt, nil)} }, DropChecksum},
	} {
		pkt := p.z.packet(77, wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("x")}))
		clear(pkt.Data[8:12])
		r := tc.handle(pkt)
		if r.Drop != tc.want {
			t.Errorf("%s: dropped as %v, want %v", tc.name, r.Drop, tc.want)
		}
		if tc.want == DropNone && (len(r.Reply) == 0 || !wire.VerifyChecksum(r.Reply) || !hasChunk(r.Reply, wire.ChunkAbort)) {
			t.Errorf("%s: answered with %x", tc.name, r.Reply)
		}
		pkt = p.z.packet(0, wire.AppendInit(nil, wire.Init{Tag: 1, RWND: 9999, OutStreams: 1, InStreams: 1}))
		clear(pkt.Data[8:12])
		if r := tc.handle(pkt); r.Drop != DropChecksum {
			t.Errorf("%s: INIT without checksum: dropped as %v", tc.name, r.Drop)
		}
	}
}
