package stream_test

import (
	"context"
	"fmt"
	"io"
	"net/netip"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/stream"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Two processes of a site with one gateway. One opens a connection to the other, which answers in capitals of the
// request.
func Example() {
	network := sctptest.NewNetwork(1)
	defer network.Close()
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
	key := []byte("32 random bytes, from a file ...")
	lan := open("10.0.0.254")
	defer lan.Close()
	g, err := relay.NewGateway(relay.GatewayConfig{Site: 1, Number: 1, LAN: lan, Jobs: map[uint32][]byte{7: key}})
	if err != nil {
		panic(err)
	}
	defer g.Close()
	ctx := context.Background()
	endpoint := func(process uint16) *stream.Endpoint {
		n, err := relay.NewNode(ctx, relay.NodeConfig{
			Address: relay.Address{Site: 1, Node: 1, Process: process}, Job: 7, Key: key,
			Gateways: []sctp.Addr{{
				Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.254:9899")}, Port: relay.DefaultGatewayLAN,
			}},
			Transport: open(fmt.Sprintf("10.0.0.%d", process)),
		})
		if err != nil {
			panic(err)
		}
		e, err := stream.New(stream.Config{Node: n})
		if err != nil {
			panic(err)
		}
		return e
	}
	a, b := endpoint(1), endpoint(2)

	go func() {
		r, err := b.Accept(ctx)
		if err != nil {
			panic(err)
		}
		c, err := r.Accept(ctx)
		if err != nil {
			panic(err)
		}
		got, err := io.ReadAll(c)
		fmt.Printf("%s: %q, %v\n", r.Bytes(), got, err)
		fmt.Fprint(c, "goodbye")
		c.Close()
	}()
	c, err := a.Dial(ctx, b.Address(), []byte("a greeting"))
	if err != nil {
		panic(err)
	}
	fmt.Fprint(c, "hello")
	c.CloseWrite()
	answer, err := io.ReadAll(c)
	fmt.Printf("answer: %q, %v\n", answer, err)
	c.Close()
	// Output:
	// a greeting: "hello", <nil>
	// answer: "goodbye", <nil>
}
