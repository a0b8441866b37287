package datachannel_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel"
	"github.com/weftstack/weft/sctp/sctptest"
)

// exampleSessions connects two sessions over a connection in memory, in place of DTLS.
func exampleSessions(ctx context.Context) (client, server *datachannel.Session) {
	a, b := sctptest.NewNetwork(1).NewConns(sctptest.Link{}, sctptest.Link{})
	connected := make(chan *datachannel.Session)
	go func() {
		s, err := datachannel.Connect(ctx, b, datachannel.Config{Role: datachannel.Server}, nil)
		if err != nil {
			log.Fatal(err)
		}
		connected <- s
	}()
	client, err := datachannel.Connect(ctx, a, datachannel.Config{Role: datachannel.Client}, nil)
	if err != nil {
		log.Fatal(err)
	}
	return client, <-connected
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
