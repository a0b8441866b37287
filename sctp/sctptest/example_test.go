package sctptest_test

import (
	"fmt"
	"net"

	"github.com/weftstack/weft/sctp/sctptest"
)

func ExampleNetwork() {
	n := sctptest.NewNetwork(1)
	defer n.Close()
	n.SetDefault(sctptest.Link{MTU: 1500})
	a, _ := n.NewHost("10.0.0.1").ListenPacket(":9899")
	b, _ := n.NewHost("10.0.0.2").ListenPacket(":9899")

	to := &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 9899}
	a.WriteTo(make([]byte, 2000), to) // lost: larger than the MTU
	a.WriteTo([]byte("hello"), to)

	buf := make([]byte, 1500)
	size, from, _ := b.ReadFrom(buf)
	fmt.Printf("%s from %v\n", buf[:size], from)
	fmt.Println("lost:", n.Counters("10.0.0.1", "10.0.0.2").TooBig)
	// Output:
	// hello from 10.0.0.1:9899
	// lost: 1
}
