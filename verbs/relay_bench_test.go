package verbs

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/relaytest"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// relayPair connects devices of two processes at different sites, each with a gateway, all on loopback sockets.
func relayPair(t testing.TB) (a, z *benchNode) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	transport := func() *sctp.Transport {
		tr, err := sctp.NewTransport(sctp.TransportConfig{
			LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, BusyPoll: -1,
		})
		must(err)
		t.Cleanup(func() { _ = tr.Close() })
		return tr
	}
	at := func(tr *sctp.Transport, port uint16) sctp.Addr { return sctp.Addr{Addrs: tr.LocalAddrs(), Port: port} }
	gateways := [2]*sctp.Transport{transport(), transport()}
	var n [2]*benchNode
	var addr [2]relay.Address
	for i := range uint16(2) {
		g, err := relay.NewGateway(relay.GatewayConfig{
			Site: i + 1, Number: 1, LAN: gateways[i], WAN: gateways[i], Jobs: map[uint32][]byte{relaytest.Job: relaytest.Key},
			Peers: []relay.Peer{{
				Site: 2 - i, Gateway: 1, Addr: at(gateways[1-i], relay.DefaultGatewayWAN), Key: relaytest.LegKey(1, 2),
			}},
		})
		must(err)
		t.Cleanup(func() { _ = g.Close() })
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		addr[i] = relaytest.Address(i+1, 1)
		node, err := relay.NewNode(ctx, relay.NodeConfig{
			Address: addr[i], Job: relaytest.Job, Key: relaytest.Key, Transport: transport(),
			Gateways: []sctp.Addr{at(gateways[i], relay.DefaultGatewayLAN)},
		})
		cancel()
		must(err)
		t.Cleanup(func() { _ = node.Close() })
		n[i] = &benchNode{}
		n[i].dev, err = Open(Config{Relay: node})
		must(err)
		n[i].pd = n[i].dev.AllocPD()
		n[i].cq, err = n[i].dev.NewCQ(1024)
		must(err)
		n[i].qp, err = n[i].pd.NewQP(QPConfig{SendCQ: n[i].cq, RecvCQ: n[i].cq})
		must(err)
	}
	l, err := n[1].dev.Listen()
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	errc := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			err = r.Accept(n[1].qp, ConnParams{})
		}
		errc <- err
	}()
	_, err = n[0].dev.ConnectRelay(ctx, addr[1], n[0].qp, ConnParams{})
	must(err)
	must(<-errc)
	return n[0], n[1]
}

// BenchmarkRelayTransfer writes and reads through two gateways on loopback sockets.
func BenchmarkRelayTransfer(b *testing.B) {
	for _, op := range []Opcode{OpWrite, OpRead} {
		for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("op=%v/size=%d", op, size), func(b *testing.B) {
				a, z := relayPair(b)
				transfer(b, a, z, op, size)
			})
		}
	}
}

// In steady state nothing allocates, in the devices, the nodes or the gateways.
func TestRelayDoesNotAllocate(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	a, z := relayPair(t)
	const most = 256 << 10
	src, err := a.pd.Register(make([]byte, most), LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	dst, err := z.pd.Register(make([]byte, most), RemoteWrite|RemoteRead|RemoteAtomic)
	if err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	var wc [1]WC
	for _, op := range []Opcode{OpWrite, OpRead, OpFetchAdd} {
		for _, size := range []int{8, 4000, most} {
			if op == OpFetchAdd && size > 8 {
				continue
			}
			sgl := []SGE{src.Slice(0, size)}
			wr := []SendWR{
				{Op: op, SGL: sgl, Remote: dst.Remote(), Operand: 1},
				{Op: OpRead, Flags: Signaled, Remote: dst.Remote()}, // the former is there
			}
			round := func() {
				if err := a.qp.PostSend(wr...); err != nil {
					t.Fatal(err)
				}
				if _, err := a.cq.Wait(ctx, wc[:]); err != nil || wc[0].Status != StatusSuccess {
					t.Fatal(err, wc[0].Status)
				}
			}
			for range 100 {
				round()
			}
			// The layers below and the runtime may allocate now and then.
			if n := testing.AllocsPerRun(200, round); n >= 2 {
				t.Errorf("%v of %d bytes: %v allocations", op, size, n)
			}
		}
	}
}
