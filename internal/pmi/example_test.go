package pmi_test

import (
	"context"
	"fmt"
	"net"

	"github.com/weftstack/weft/internal/pmi"
)

// A launcher and its only rank, joined by a pipe instead of a socket.
func Example() {
	ctx := context.Background()
	launcher, rank := net.Pipe()
	server := pmi.NewServer(1, "job1")
	go server.Serve(ctx, 0, launcher)

	c, err := pmi.NewClient(ctx, rank, 0, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	c.Put(ctx, "address", "127.0.0.1:9899")
	c.Barrier(ctx)
	addr, err := c.Get(ctx, "address")
	fmt.Println(addr, err)
	fmt.Println(c.Finalize(ctx))
	// Output:
	// 127.0.0.1:9899 <nil>
	// <nil>
}
