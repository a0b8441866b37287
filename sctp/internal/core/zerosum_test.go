package core

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/wire"
)

func checksumOf(pkt []byte) uint32 { return binary.BigEndian.Uint32(pkt[8:]) }

// RFC 9653, Section 5: packets have zero in place of the checksum if both sides
// said that they accept it, save those with INIT, INIT ACK or COOKIE ECHO.
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
	var in initInfo
	in.parse(&wire.Init{Params: wire.AppendZeroChecksum(nil, 2)}, false)
	if in.features.has(featZeroSum) || in.malformed {
		t.Errorf("method 2: features %v, malformed %v", in.features, in.malformed)
	}
	in.parse(&wire.Init{Params: wire.AppendZeroChecksum(nil, wire.EDMIDDTLS)}, false)
	if !in.features.has(featZeroSum) {
		t.Error("DTLS is not accepted")
	}
}
