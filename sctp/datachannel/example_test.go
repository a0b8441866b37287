package datachannel_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel"
	"github.com/weftstack/weft/sctp/sctptest"
)

// exampleSessions connects two sessions over a network in memory.
func exampleSessions(ctx context.Context) (client, server *datachannel.Session) {
	network := sctptest.NewNetwork(1)
	sessions := make(chan *datachannel.Session, 1)
	listen := func(host string, role datachannel.Role, onAssociation func(*sctp.Association)) *sctp.Endpoint {
		pc, err := network.NewHost(host).ListenPacket(":9899")
		if err != nil {
			log.Fatal(err)
		}
		t, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
		if err != nil {
			log.Fatal(err)
		}
		cfg, err := datachannel.Config{Role: role}.SCTP(&sctp.Config{OnAssociation: onAssociation})
		if err != nil {
			log.Fatal(err)
		}
		e, err := t.Listen(5000, cfg)
		if err != nil {
			log.Fatal(err)
		}
		return e
	}
	listen("10.0.0.2", datachannel.Server, func(a *sctp.Association) { sessions <- datachannel.From(a) })
	e := listen("10.0.0.1", datachannel.Client, nil)
	a, err := e.Connect(ctx, sctp.Addr{Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:9899")}, Port: 5000})
	if err != nil {
		log.Fatal(err)
	}
	return datachannel.From(a), <-sessions
}

func ExampleSession_Open() {
	ctx := context.Background()
	client, server := exampleSessions(ctx)
	defer client.Close()

	go func() {
		c, err := server.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		for {
			m, err := c.Recv(ctx, nil)
			if err != nil {
				c.Close()
				return
			}
			if err := c.SendText(ctx, fmt.Sprintf("%s: %s", c.Label(), m.Data)); err != nil {
				log.Fatal(err)
			}
		}
	}()

	c, err := client.Open(ctx, "echo", datachannel.Options{Unordered: true})
	if err != nil {
		log.Fatal(err)
	}
	if err := c.SendText(ctx, "hello"); err != nil { // need not wait for the peer
		log.Fatal(err)
	}
	m, err := c.Recv(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", m.Data)
	c.Close()
	<-c.Done()
	fmt.Println(c.State())
	// Output:
	// echo: hello
	// closed
}

// A sender that fills the channel whenever little is left to be sent.
func ExampleChannel_SetBufferedAmountLow() {
	ctx := context.Background()
	client, server := exampleSessions(ctx)
	defer client.Close()

	c, err := client.Open(ctx, "bulk", datachannel.Options{PR: sctp.LimitedRetransmissions, MaxRetransmits: 3})
	if err != nil {
		log.Fatal(err)
	}
	low := make(chan struct{}, 1)
	c.SetBufferedAmountLow(16<<10, func() {
		select {
		case low <- struct{}{}:
		default:
		}
	})
	go func() {
		msg := make([]byte, 4<<10)
		for range 8 {
			for c.BufferedAmount() < 64<<10 {
				if err := c.TrySend(datachannel.Binary, msg); err != nil {
					log.Fatal(err)
				}
			}
			<-low
		}
		c.Close()
	}()

	in, err := server.Accept(ctx)
	if err != nil {
		log.Fatal(err)
	}
	n := 0
	for buf := make([]byte, 4<<10); ; {
		m, err := in.Recv(ctx, buf)
		if err != nil {
			break
		}
		n += len(m.Data)
	}
	fmt.Println(n >= 256<<10, in.Options().MaxRetransmits)
	// Output: true 3
}
