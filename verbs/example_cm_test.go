package verbs_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/weftstack/weft/verbs"
)

// One goroutine serves connections by events, as a program for rdma_cm does.
func ExampleCMID() {
	ctx := context.Background()
	server, tr := open()
	defer tr.Close()
	client, tr2 := open()
	defer tr2.Close()

	channel, err := server.NewCMChannel()
	if err != nil {
		log.Fatal(err)
	}
	listener, err := channel.NewID(nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := listener.Listen(16); err != nil {
		log.Fatal(err)
	}
	pd := server.AllocPD()
	cq, err := server.NewCQ(64)
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			e, err := channel.GetEvent(ctx)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println("server:", e.Type)
			switch e.Type {
			case verbs.CMConnectRequest:
				if err := e.ID.CreateQP(pd, verbs.QPConfig{SendCQ: cq, RecvCQ: cq}); err != nil {
					log.Fatal(err)
				}
				if err := e.ID.Accept(verbs.ConnParams{PrivateData: append([]byte("hello, "), e.PrivateData...)}); err != nil {
					log.Fatal(err)
				}
			case verbs.CMDisconnected:
				e.ID.QP().Close()
				e.ID.Close()
				return
			}
		}
	}()

	events, err := client.NewCMChannel()
	if err != nil {
		log.Fatal(err)
	}
	next := func() verbs.CMEvent {
		e, err := events.GetEvent(ctx)
		if err != nil || e.Err != nil {
			log.Fatal(err, e.Err)
		}
		return e
	}
	id, err := events.NewID(nil)
	if err != nil {
		log.Fatal(err)
	}
	ccq, err := client.NewCQ(64)
	if err != nil {
		log.Fatal(err)
	}
	if err := id.CreateQP(client.AllocPD(), verbs.QPConfig{SendCQ: ccq, RecvCQ: ccq}); err != nil {
		log.Fatal(err)
	}
	id.ResolveAddr(server.Addr().String(), time.Minute)
	next() // CMAddrResolved
	id.ResolveRoute(time.Minute)
	next() // CMRouteResolved
	id.Connect(verbs.ConnParams{PrivateData: []byte("client")})
	fmt.Printf("client: %s\n", next().PrivateData) // CMEstablished
	id.Disconnect()
	<-served
	// Unordered output:
	// server: connect request
	// server: established
	// client: hello, client
	// server: disconnected
}

// Identifiers connect over TCP, too: such a device needs no transport.
func ExampleCMID_ListenTCP() {
	ctx := context.Background()
	dev, err := verbs.Open(verbs.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	channel, err := dev.NewCMChannel()
	if err != nil {
		log.Fatal(err)
	}
	cq, err := dev.NewCQ(64)
	if err != nil {
		log.Fatal(err)
	}
	pd := dev.AllocPD()
	listener, err := channel.NewID("server")
	if err != nil {
		log.Fatal(err)
	}
	if err := listener.ListenTCP("127.0.0.1:0", 16); err != nil {
		log.Fatal(err)
	}
	client, err := channel.NewID("client")
	if err != nil {
		log.Fatal(err)
	}
	if err := client.CreateQP(pd, verbs.QPConfig{SendCQ: cq, RecvCQ: cq}); err != nil {
		log.Fatal(err)
	}
	if err := client.ResolveTCP(listener.ListenAddr().String(), time.Minute); err != nil {
		log.Fatal(err)
	}
	for established := 0; established < 2; {
		e, err := channel.GetEvent(ctx)
		if err != nil || e.Err != nil {
			log.Fatal(err, e.Err)
		}
		switch e.Type {
		case verbs.CMAddrResolved:
			err = e.ID.ResolveRoute(time.Minute)
		case verbs.CMRouteResolved:
			err = e.ID.Connect(verbs.ConnParams{PrivateData: []byte("client")})
		case verbs.CMConnectRequest:
			if err = e.ID.CreateQP(pd, verbs.QPConfig{SendCQ: cq, RecvCQ: cq}); err == nil {
				err = e.ID.Accept(verbs.ConnParams{})
			}
		case verbs.CMEstablished:
			established++
			fmt.Println(e.Type, e.ID.Context())
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	// Unordered output:
	// established client
	// established server
}
