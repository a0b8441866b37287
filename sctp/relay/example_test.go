package relay_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Two sites with a gateway and a process each, on a network in memory whose long leg takes 9 ms and loses 1 % of the
// packets. The processes have no way to each other but their gateways.
func Example() {
	network := sctptest.NewNetwork(1)
	defer network.Close()
	network.SetLink("192.0.2.1", "192.0.2.2", sctptest.Link{Delay: 9 * time.Millisecond, Loss: 0.01})
	network.SetLink("192.0.2.2", "192.0.2.1", sctptest.Link{Delay: 9 * time.Millisecond, Loss: 0.01})
	open := func(ip string) *sctp.Transport {
		pc, err := network.NewHost(ip).ListenPacket(ip + ":9899")
		if err != nil {
			panic(err)
		}
		t, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
		if err != nil {
			panic(err)
		}
		return t
	}
	addr := func(ip string, port uint16) sctp.Addr {
		return sctp.Addr{Addrs: []netip.AddrPort{netip.MustParseAddrPort(ip + ":9899")}, Port: port}
	}
	jobs := map[uint32][]byte{7: []byte("32 random bytes, from a file ...")}
	between := []byte("32 random bytes of another file ")

	var nodes [2]*relay.Node
	for i := range 2 {
		site, other := uint16(i+1), uint16(2-i)
		inside := fmt.Sprintf("10.0.%d.1", site)
		lan, wan := open(inside), open(fmt.Sprintf("192.0.2.%d", site))
		defer lan.Close()
		defer wan.Close()
		g, err := relay.NewGateway(relay.GatewayConfig{
			Site: site, Number: 1, LAN: lan, WAN: wan, Jobs: jobs,
			Peers: []relay.Peer{{
				Site: other, Gateway: 1, Key: between,
				Addr: addr(fmt.Sprintf("192.0.2.%d", other), relay.DefaultGatewayWAN),
			}},
		})
		if err != nil {
			panic(err)
		}
		defer g.Close()

		t := open(fmt.Sprintf("10.0.%d.2", site))
		defer t.Close()
		nodes[i], err = relay.NewNode(context.Background(), relay.NodeConfig{
			Address: relay.Address{Site: site, Node: 1, Process: 1}, Job: 7, Key: jobs[7],
			Gateways: []sctp.Addr{addr(inside, relay.DefaultGatewayLAN)}, Transport: t,
		})
		if err != nil {
			panic(err)
		}
		defer nodes[i].Close()
	}

	ctx := context.Background()
	s, err := nodes[0].Sender(nodes[1].Address(), 3)
	if err != nil {
		panic(err)
	}
	for _, text := range []string{"hello", "from site 1"} {
		if err := s.Send(ctx, []byte(text), relay.SendOptions{PPID: 51}); err != nil {
			panic(err)
		}
	}
	r, err := nodes[1].Next(ctx)
	if err != nil {
		panic(err)
	}
	buf := make([]byte, 100)
	for range 2 {
		n, info, err := r.Recv(ctx, buf)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%v, stream %d, PPID %d: %s\n", r.Origin(), r.Stream(), info.PPID, buf[:n])
	}
	// Output:
	// 1/1/1, stream 3, PPID 51: hello
	// 1/1/1, stream 3, PPID 51: from site 1
}
