package rconn_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/netip"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
	"github.com/weftstack/weft/verbs/rconn"
)

// open makes a device on a loopback transport.
func open() (*verbs.Device, func()) {
	tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		log.Fatal(err)
	}
	dev, err := verbs.Open(verbs.Config{Transport: tr})
	if err != nil {
		log.Fatal(err)
	}
	return dev, func() { dev.Close(); tr.Close() }
}

// Messages of any length, whole and in order.
func ExampleConn() {
	ctx := context.Background()
	server, closeServer := open()
	defer closeServer()
	client, closeClient := open()
	defer closeClient()

	l, err := rconn.Listen(server, rconn.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		c, err := l.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		msg, err := c.Recv(ctx, nil)
		if err == nil {
			err = c.Send(ctx, append([]byte("you said: "), msg...))
		}
		if err != nil {
			log.Fatal(err)
		}
	}()

	c, err := rconn.Dial(ctx, client, l.Addr(), rconn.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(ctx, []byte("hello")); err != nil {
		log.Fatal(err)
	}
	msg, err := c.Recv(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(msg))
	_, err = c.Recv(ctx, nil)
	fmt.Println(err)
	// Output:
	// you said: hello
	// EOF
}

// The same connection as a net.Conn.
func ExampleConn_Stream() {
	server, closeServer := open()
	defer closeServer()
	client, closeClient := open()
	defer closeClient()

	l, err := rconn.Listen(server, rconn.Config{})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Streams().Accept() // any program for a net.Listener
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		n, err := io.Copy(io.Discard, c)
		fmt.Println(n, "bytes,", err)
	}()

	c, err := rconn.Dial(context.Background(), client, l.Addr(), rconn.Config{})
	if err != nil {
		log.Fatal(err)
	}
	s := c.Stream()
	if _, err := s.Write(make([]byte, 100_000)); err != nil {
		log.Fatal(err)
	}
	s.Close()
	<-done
	// Output: 100000 bytes, <nil>
}
