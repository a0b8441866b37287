package sctp

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/sctptest"
)

// RFC 9260, Section 10, ICMP5 and ICMP6: the payload of an ICMP message locates
// the association, by address and ports; if there is none the message is ignored,
// and so it is with another verification tag than the peer's.
func TestICMPLocatesTheAssociation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond, MTU: 1500})
		var e [2]*Endpoint
		for i, ip := range []string{"10.0.0.1", "10.0.0.2"} {
			pc, err := n.NewHost(ip).ListenPacket(ip + ":9899")
			if err != nil {
				t.Fatal(err)
			}
			tr, err := NewTransport(TransportConfig{Conns: []PacketConn{pc}})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			if e[i], err = tr.Listen(0, &Config{Backlog: 1}); err != nil {
				t.Fatal(err)
			}
		}
		a, err := e[0].Connect(t.Context(), e[1].Addr())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		mtu := func() int {
			synctest.Wait()
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.core.PathStats(0).MTU
		}
		const size = 1400
		was := mtu()
		if was < size {
			t.Fatalf("path MTU is %d", was)
		}
		remote := netip.MustParseAddrPort("10.0.0.2:9899")
		quoted := func(local, peer uint16, tag uint32) []byte {
			b := binary.BigEndian.AppendUint16(nil, local)
			return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, peer), tag)
		}
		local, peer := e[0].port, e[1].port
		a.mu.Lock()
		tag := a.core.PeerTag()
		a.mu.Unlock()
		for _, tc := range []struct {
			name   string
			remote netip.AddrPort
			quoted []byte
		}{
			{"another local port", remote, quoted(local+1, peer, tag)},
			{"another port of the peer", remote, quoted(local, peer+1, tag)},
			{"another address", netip.MustParseAddrPort("10.0.0.3:9899"), quoted(local, peer, tag)},
			{"another tag", remote, quoted(local, peer, tag+1)},
			{"no tag", remote, quoted(local, peer, 0)},
			{"nothing quoted", remote, nil},
			{"half a tag quoted", remote, quoted(local, peer, tag)[:6]},
		} {
			e[0].t.tooBig(tc.remote, size, tc.quoted)
			if got := mtu(); got != was {
				t.Fatalf("%s: path MTU is %d, was %d", tc.name, got, was)
			}
		}
		e[0].t.tooBig(remote, size, quoted(local, peer, tag))
		if got := mtu(); got >= size {
			t.Errorf("path MTU is %d after a packet of %d was too big", got, size)
		}
	})
}
