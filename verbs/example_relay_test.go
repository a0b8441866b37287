package verbs_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/verbs"
)

// A process writes into the memory of one at another site. The two have no way to each other but their gateways,
// which here are on a network in memory whose long leg takes 9 ms and loses 1 % of the packets.
func ExampleDevice_ConnectRelay() {
	ctx := context.Background()
	nodes, end := twoSites()
	defer end()

	server, err := verbs.Open(verbs.Config{Relay: nodes[1], Service: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	l, err := server.Listen()
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pd := server.AllocPD()
		cq, err := server.NewCQ(16)
		if err != nil {
			log.Fatal(err)
		}
		qp, err := pd.NewQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
		if err != nil {
			log.Fatal(err)
		}
		board, err := pd.Register(make([]byte, 64), verbs.RemoteWrite)
		if err != nil {
			log.Fatal(err)
		}
		if err := qp.PostRecv(verbs.RecvWR{}); err != nil {
			log.Fatal(err)
		}
		r, err := l.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("request of", r.RemoteProcess)
		where := fmt.Appendf(nil, "%d", board.STag()) // the STag goes as private data
		if err := r.Accept(qp, verbs.ConnParams{PrivateData: where}); err != nil {
			log.Fatal(err)
		}
		var wc [1]verbs.WC
		if _, err := cq.Wait(ctx, wc[:]); err != nil || wc[0].Err() != nil {
			log.Fatal(err, wc[0].Err())
		}
		fmt.Printf("memory: %s\n", board.Bytes()[10:32])
		if err := qp.Disconnect(ctx); err != nil {
			log.Fatal(err)
		}
	}()

	client, err := verbs.Open(verbs.Config{Relay: nodes[0], Service: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	cq, err := client.NewCQ(16)
	if err != nil {
		log.Fatal(err)
	}
	qp, err := client.AllocPD().NewQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
	if err != nil {
		log.Fatal(err)
	}
	info, err := client.ConnectRelay(ctx, relay.Address{Site: 2, Node: 1, Process: 1}, qp, verbs.ConnParams{})
	if err != nil {
		log.Fatal(err)
	}
	var stag uint32
	if _, err := fmt.Sscan(string(info.PrivateData), &stag); err != nil {
		log.Fatal(err)
	}
	err = qp.PostSend(
		verbs.SendWR{Op: verbs.OpWrite, Inline: []byte("written through a WAN,"), Remote: verbs.RemoteBuf{STag: stag, TO: 10}},
		verbs.SendWR{Op: verbs.OpImm, Flags: verbs.Signaled, Imm: 1},
	)
	if err != nil {
		log.Fatal(err)
	}
	<-done
	// Output:
	// request of 1/1/1
	// memory: written through a WAN,
}

// twoSites starts two sites with a gateway and a process each.
func twoSites() (nodes [2]*relay.Node, end func()) {
	network := sctptest.NewNetwork(1)
	network.SetLink("192.0.2.1", "192.0.2.2", sctptest.Link{Delay: 9 * time.Millisecond, Loss: 0.01})
	network.SetLink("192.0.2.2", "192.0.2.1", sctptest.Link{Delay: 9 * time.Millisecond, Loss: 0.01})
	closers := []func(){func() { network.Close() }}
	open := func(ip string) *sctp.Transport {
		pc, err := network.NewHost(ip).ListenPacket(ip + ":9899")
		if err != nil {
			log.Fatal(err)
		}
		t, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
		if err != nil {
			log.Fatal(err)
		}
		closers = append(closers, func() { t.Close() })
		return t
	}
	addr := func(ip string, port uint16) sctp.Addr {
		return sctp.Addr{Addrs: []netip.AddrPort{netip.MustParseAddrPort(ip + ":9899")}, Port: port}
	}
	jobs := map[uint32][]byte{7: []byte("32 random bytes, from a file ...")}
	between := []byte("32 random bytes of another file ")
	for i := range 2 {
		site, other := uint16(i+1), uint16(2-i)
		inside := fmt.Sprintf("10.0.%d.1", site)
		g, err := relay.NewGateway(relay.GatewayConfig{
			Site: site, Number: 1, LAN: open(inside), WAN: open(fmt.Sprintf("192.0.2.%d", site)), Jobs: jobs,
			Peers: []relay.Peer{{
				Site: other, Gateway: 1, Key: between, Addr: addr(fmt.Sprintf("192.0.2.%d", other), relay.DefaultGatewayWAN),
			}},
		})
		if err != nil {
			log.Fatal(err)
		}
		closers = append(closers, func() { g.Close() })
		nodes[i], err = relay.NewNode(context.Background(), relay.NodeConfig{
			Address: relay.Address{Site: site, Node: 1, Process: 1}, Job: 7, Key: jobs[7],
			Gateways: []sctp.Addr{addr(inside, relay.DefaultGatewayLAN)}, Transport: open(fmt.Sprintf("10.0.%d.2", site)),
		})
		if err != nil {
			log.Fatal(err)
		}
		closers = append(closers, func() { nodes[i].Close() })
	}
	return nodes, func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}
}
