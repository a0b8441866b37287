package sctp_test

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/sctp/wire"
)

const (
	addrCamper = "10.0.0.66"
	addrVictim = "10.0.0.3"
	camperPort = 6000
)

// camp has a hand-written peer at addrCamper open an association with the server at
// addrB, and list addrVictim in its INIT (RFC 5062, Section 2). It answers heartbeats that
// come to its own address.
func camp(t *testing.T, n *sctptest.Network) (aborted func() bool) {
	t.Helper()
	pc, err := n.NewHost(addrCamper).ListenPacket(":9899")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	tag, up, end := uint32(0), make(chan struct{}), false
	send := func(f func(b []byte) []byte) {
		b := f(wire.AppendHeader(nil, wire.Header{SrcPort: camperPort, DstPort: serverPort, VTag: tag}))
		wire.SetChecksum(b)
		if _, err := pc.WriteToUDPAddrPort(b, netip.MustParseAddrPort(addrB+":9899")); err != nil {
			t.Error(err)
		}
	}
	go func() {
		for buf := make([]byte, 65536); ; {
			k, _, err := pc.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			for it := wire.NewChunks(buf[wire.HeaderLen:k]); it.Next(); {
				switch c := it.Chunk(); c.Type {
				case wire.ChunkInitAck:
					x, err := wire.ParseInitAck(c)
					if err != nil {
						t.Error(err)
						return
					}
					for ps := wire.NewParams(x.Params); ps.Next(); {
						if ck, err := wire.ParseStateCookie(ps.Param()); err == nil {
							tag = x.Tag
							send(func(b []byte) []byte { return wire.AppendCookieEcho(b, wire.CookieEcho{Cookie: ck}) })
						}
					}
				case wire.ChunkCookieAck:
					close(up)
				case wire.ChunkHeartbeat:
					send(func(b []byte) []byte { return wire.AppendChunk(b, wire.ChunkHeartbeatAck, 0, c.Value) })
				case wire.ChunkAbort:
					end = true
				}
			}
		}
	}()
	send(func(b []byte) []byte {
		return wire.AppendInit(b, wire.Init{Tag: 7, RWND: 1 << 20, OutStreams: 9, InStreams: 9, TSN: 1,
			Params: wire.AppendAddr(nil, netip.MustParseAddr(addrVictim))})
	})
	<-up
	return func() bool { synctest.Wait(); return end }
}

// noHeartbeats keeps heartbeats of the server from the victim: its answers would end the
// camper's association.
func noHeartbeats(n *sctptest.Network) {
	n.SetLink(addrB, addrVictim, sctptest.Link{Delay: time.Millisecond, Filter: func(b []byte) bool {
		for it := wire.NewChunks(b[wire.HeaderLen:]); it.Next(); {
			if it.Chunk().Type == wire.ChunkHeartbeat {
				return false
			}
		}
		return true
	}})
}

// campingNet has a server at addrB, on which an attacker camps, and the host whose address
// that one has listed.
func campingNet(t *testing.T, n *sctptest.Network) (server, victim *sctp.Endpoint) {
	t.Helper()
	n.SetDefault(sctptest.Link{Delay: time.Millisecond})
	for i, ep := range []**sctp.Endpoint{&server, &victim} {
		tr := memTransport(t, n.NewHost([]string{addrB, addrVictim}[i]))
		var err error
		if *ep, err = tr.Listen([]uint16{serverPort, camperPort}[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	return server, victim
}

// A peer that lists the address of another host is not taken for that host: neither by
// Find and SendTo nor by Connect, and the host itself can connect, from the same ports.
func TestCamping(t *testing.T) {
	for _, victimConnects := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := sctptest.NewNetwork(1)
			server, victim := campingNet(t, n)
			noHeartbeats(n)
			aborted := camp(t, n)
			ctx := context.Background()
			camper, err := server.Accept(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if all, sure := len(camper.RemoteAddr().Addrs), camper.ConfirmedAddr().Addrs; all != 2 || len(sure) != 1 ||
				sure[0].Addr() != netip.MustParseAddr(addrCamper) {
				t.Errorf("the camper has %d addresses, confirmed are %v", all, sure)
			}
			if a := server.Find(victim.Addr()); a != nil {
				t.Fatalf("Find of the victim returns the association with %v", a.RemoteAddr())
			}
			buf := make([]byte, 100)
			if victimConnects {
				a, err := victim.Connect(ctx, server.Addr())
				if err != nil {
					t.Fatal("the victim connects:", err)
				}
				b, err := server.Accept(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := a.Send(ctx, []byte("it is me"), sctp.SendOptions{}); err != nil {
					t.Fatal(err)
				}
				if got, _ := recvMessage(t, b, buf); string(got) != "it is me" {
					t.Errorf("received %q", got)
				}
				if server.Find(victim.Addr()) != b {
					t.Error("Find does not return the association with the victim")
				}
			}
			if err := server.SendTo(ctx, victim.Addr(), []byte("for you only"), sctp.SendOptions{}); err != nil {
				t.Fatal(err)
			}
			if k, info, err := victim.Recv(ctx, buf); err != nil || string(buf[:k]) != "for you only" {
				t.Errorf("the victim received %q from %v, %v", buf[:k], info.Association, err)
			}
			if len(server.Associations()) != 2 || aborted() {
				t.Errorf("%d associations; camper aborted: %v", len(server.Associations()), aborted())
			}
		})
	}
}

// The host whose address was listed answers the heartbeat by which the address is to be
// confirmed, with an ABORT that has the tag of that packet, and so ends the association
// of the camper (RFC 5062, Section 2.2, 2).
func TestCampingEndsByHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		server, victim := campingNet(t, n)
		camp(t, n)
		camper, err := server.Accept(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-camper.Done():
		case <-time.After(5 * time.Second):
			t.Error("the association goes on for 5 s after the victim was asked")
		}
		if len(server.Associations()) != 0 || len(victim.Associations()) != 0 {
			t.Error("associations are left")
		}
	})
}

// An address that was added to an association counts when it is confirmed, and no
// sooner (RFC 5061, Section 4.2.1, F14); removed, it counts no more.
func TestAddedAddressIsToBeConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		n := sctptest.NewNetwork(1)
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		h := n.NewHost(addrA, addrVictim)
		pc, err := h.ListenPacket(addrA + ":9899")
		if err != nil {
			t.Fatal(err)
		}
		p := &pair{t: t, net: n, ta: newTransport(t, sctp.TransportConfig{Conns: []sctp.PacketConn{pc}}), tb: memTransport(t, n.NewHost(addrB))}
		p.connect(&sctp.Config{ChangeAddrs: true}, &sctp.Config{ChangeAddrs: true})
		second, err := h.ListenPacket(addrVictim + ":9899")
		if err != nil {
			t.Fatal(err)
		}
		ap, err := p.ta.AddConn(second)
		if err != nil {
			t.Fatal(err)
		}
		n.Cut(addrB, addrVictim)
		added, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := p.a.AddAddr(added, ap); err != nil {
			t.Fatal("AddAddr:", err)
		}
		at := sctp.Addr{Addrs: []netip.AddrPort{ap}, Port: p.a.Endpoint().Port()}
		find := func() bool { synctest.Wait(); return p.b.Endpoint().Find(at) == p.b }
		time.Sleep(10 * time.Second)
		if find() || len(p.b.RemoteAddr().Addrs) != 2 {
			t.Errorf("found by an address that nothing came from; addresses %v", p.b.RemoteAddr())
		}
		n.Restore(addrB, addrVictim)
		time.Sleep(5 * time.Minute)
		if !find() {
			t.Error("not found by an address that is confirmed")
		}
		if err := p.a.RemoveAddr(ctx, ap); err != nil {
			t.Fatal("RemoveAddr:", err)
		}
		if find() {
			t.Error("found by an address that was removed")
		}
	})
}
