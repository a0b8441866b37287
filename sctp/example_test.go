package sctp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/netip"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// An echo server and its client as net.Listener and net.Conn.
func Example() {
	l, err := sctp.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.Copy(c, c)
	}()

	c, err := sctp.Dial(context.Background(), l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "hello")
	buf := make([]byte, 5)
	io.ReadFull(c, buf)
	fmt.Printf("%s\n", buf)
	// Output: hello
}

// loopbackTransport returns a transport on a free port of the loopback
// interface.
func loopbackTransport() *sctp.Transport {
	t, err := sctp.NewTransport(sctp.TransportConfig{
		LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")},
	})
	if err != nil {
		log.Fatal(err)
	}
	return t
}

// loopbackAssociation returns both ends of an association over the loopback
// interface, and what closes their transports.
func loopbackAssociation(ctx context.Context) (a, b *sctp.Association, end func()) {
	server, client := loopbackTransport(), loopbackTransport()
	e, err := server.Listen(0, nil)
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.Listen(0, nil)
	if err != nil {
		log.Fatal(err)
	}
	if a, err = c.Connect(ctx, e.Addr()); err != nil {
		log.Fatal(err)
	}
	if b, err = e.Accept(ctx); err != nil {
		log.Fatal(err)
	}
	return a, b, func() {
		client.Close()
		server.Close()
	}
}

// One endpoint serves any number of peers.
func ExampleEndpoint_Recv() {
	ctx := context.Background()
	server := loopbackTransport()
	defer server.Close()
	hub, err := server.Listen(0, &sctp.Config{OneToMany: true})
	if err != nil {
		log.Fatal(err)
	}
	client := loopbackTransport()
	defer client.Close()
	e, err := client.Listen(0, nil)
	if err != nil {
		log.Fatal(err)
	}

	// The first message to a peer opens the association.
	if err := e.SendTo(ctx, hub.Addr(), []byte("ping"), sctp.SendOptions{Stream: 7, PPID: 42}); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 100)
	n, info, err := hub.Recv(ctx, buf)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s on stream %d, protocol %d\n", buf[:n], info.Stream, info.PPID)
	info.Association.Send(ctx, []byte("pong"), sctp.SendOptions{Stream: info.Stream})

	n, _, err = e.Recv(ctx, buf)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", buf[:n])
	// Output:
	// ping on stream 7, protocol 42
	// pong
}

// In upcall mode the pieces of a message come as they arrive.
func ExampleConfig_upcall() {
	server := loopbackTransport()
	defer server.Close()
	total := make(chan int, 1)
	sum := 0
	e, err := server.Listen(0, &sctp.Config{
		OnPiece: func(a *sctp.Association, p *sctp.Piece) {
			sum += len(p.Data)
			if p.End {
				total <- sum
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	client := loopbackTransport()
	defer client.Close()
	c, err := client.Listen(0, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	a, err := c.Connect(ctx, e.Addr())
	if err != nil {
		log.Fatal(err)
	}
	if err := a.Send(ctx, make([]byte, 1_000_000), sctp.SendOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-total)
	// Output: 1000000
}

// Streams of one association do not wait for one another, even when packets
// are lost: here on a network in memory.
func ExampleAssociation_RecvStream() {
	n := sctptest.NewNetwork(1)
	n.SetDefault(sctptest.Link{Delay: time.Millisecond, Loss: 0.1})
	transport := func(addr string) *sctp.Transport {
		pc, err := n.NewHost(addr).ListenPacket(":9899")
		if err != nil {
			log.Fatal(err)
		}
		t, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
		if err != nil {
			log.Fatal(err)
		}
		return t
	}
	ctx := context.Background()
	server, client := transport("10.0.0.1"), transport("10.0.0.2")
	defer server.Close()
	defer client.Close()
	es, err := server.Listen(5000, nil)
	if err != nil {
		log.Fatal(err)
	}
	ec, err := client.Listen(0, nil)
	if err != nil {
		log.Fatal(err)
	}
	peer, err := sctp.ParseAddr("10.0.0.1/5000")
	if err != nil {
		log.Fatal(err)
	}
	a, err := ec.Connect(ctx, peer)
	if err != nil {
		log.Fatal(err)
	}
	a.Send(ctx, []byte("slow"), sctp.SendOptions{Stream: 1})
	a.Send(ctx, []byte("urgent"), sctp.SendOptions{Stream: 2})

	b, err := es.Accept(ctx)
	if err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 100)
	k, _, _ := b.RecvStream(ctx, 2, buf)
	fmt.Printf("%s\n", buf[:k])
	k, _, _ = b.RecvStream(ctx, 1, buf)
	fmt.Printf("%s\n", buf[:k])
	// Output:
	// urgent
	// slow
}

func ExampleParseAddr() {
	for _, s := range []string{"192.0.2.1:9899,192.0.2.2:9899/5000", "192.0.2.1/5000", "[2001:db8::1]:7000"} {
		a, err := sctp.ParseAddr(s)
		fmt.Println(a, err)
	}
	// Output:
	// 192.0.2.1:9899,192.0.2.2:9899/5000 <nil>
	// 192.0.2.1:9899/5000 <nil>
	// [2001:db8::1]:7000/7000 <nil>
}

// How long the next message is can be known before a buffer for it is made, and
// what the peer supports before something is asked of it.
func ExampleAssociation_Peek() {
	ctx := context.Background()
	a, b, end := loopbackAssociation(ctx)
	defer end()
	if a.Extensions().Reconfig {
		if err := a.ResetStreams(ctx, 1, 2); err != nil {
			log.Fatal(err)
		}
	}
	for _, s := range []string{"how long?", "that long"} {
		if err := a.Send(ctx, []byte(s), sctp.SendOptions{Stream: 2}); err != nil {
			log.Fatal(err)
		}
	}
	// The first message is received when it has come, the length of the second
	// is asked for as soon as there is one.
	if _, _, err := b.Recv(ctx, make([]byte, 100)); err != nil {
		log.Fatal(err)
	}
	var n int
	for ok := false; !ok; {
		b.Poll()
		n, _, ok = b.Peek()
	}
	buf := make([]byte, n)
	n, info, err := b.Recv(ctx, buf)
	fmt.Println(n, info.EOR, err, b.State())
	// Output: 9 true <nil> ESTABLISHED
}

// One message of a length that is not known when it begins.
func ExampleAssociation_OpenMessage() {
	ctx := context.Background()
	a, b, end := loopbackAssociation(ctx)
	defer end()
	w, err := a.OpenMessage(ctx, sctp.SendOptions{Stream: 3})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 5 {
		fmt.Fprintf(w, "line %d\n", i)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 100)
	n, info, err := b.Recv(ctx, buf)
	fmt.Println(n, info.Stream, info.EOR, err)
	// Output: 35 3 true <nil>
}

// One message whose parts are in different places.
func ExampleAssociation_SendBuffers() {
	ctx := context.Background()
	a, b, end := loopbackAssociation(ctx)
	defer end()
	row := [][]byte{[]byte("one,"), []byte("two,"), []byte("three")}
	if err := a.SendBuffers(ctx, row, sctp.SendOptions{Header: []byte("row: ")}); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 100)
	n, _, err := b.Recv(ctx, buf)
	fmt.Printf("%q %v\n", buf[:n], err)
	// Output: "row: one,two,three" <nil>
}

// A server of a host whose addresses change: its associations move along.
func ExampleAutoAddrs() {
	t, err := sctp.NewTransport(sctp.TransportConfig{
		LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:0")},
		AutoAddrs:  &sctp.AutoAddrs{Interval: time.Second},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	e, err := t.Listen(5000, &sctp.Config{ChangeAddrs: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Addr().Port, len(t.LocalAddrs()) > 0)
	// Output: 5000 true
}

// An association over a connection that keeps the boundaries of messages, such as DTLS (here: in
// memory). In WebRTC both sides call Client.
func ExampleClient() {
	network := sctptest.NewNetwork(1)
	defer network.Close()
	a, b := network.NewConns(sctptest.Link{}, sctptest.Link{})
	cfg := &sctp.ConnConfig{Config: &sctp.Config{OutStreams: 100, ZeroChecksum: true}}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	go func() {
		peer, err := sctp.Client(ctx, b, cfg)
		if err != nil {
			log.Print(err)
			return
		}
		peer.Send(ctx, []byte("hello"), sctp.SendOptions{Stream: 1, PPID: 51})
	}()
	assoc, err := sctp.Client(ctx, a, cfg)
	if err != nil {
		log.Print(err)
		return
	}
	defer assoc.Close()
	buf := make([]byte, 100)
	n, info, err := assoc.Recv(ctx, buf)
	fmt.Printf("%s, stream %d, PPID %d, %v\n", buf[:n], info.Stream, info.PPID, err)
	// Output: hello, stream 1, PPID 51, <nil>
}
