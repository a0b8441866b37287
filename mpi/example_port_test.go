package mpi_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/weftstack/weft/mpi"
)

// A server and a client, two jobs that were started apart. The name of the port
// gets to the client by a file, the command line, or World.LookupName; here it
// is a channel.
func ExampleComm_Accept() {
	ctx := context.Background()
	ports := make(chan string, 1)
	var jobs sync.WaitGroup
	jobs.Go(func() {
		err := mpi.RunLocal(ctx, 1, func(ctx context.Context, w *mpi.World) error {
			port, err := w.OpenPort()
			if err != nil {
				return err
			}
			ports <- port
			client, err := w.Comm().Accept(ctx, port, 0)
			if err != nil {
				return err
			}
			numbers := make([]int, 3)
			if _, err := mpi.Recv(ctx, client, numbers, 0, 0); err != nil {
				return err
			}
			sum := numbers[0] + numbers[1] + numbers[2]
			if err := mpi.Send(ctx, client, []int{sum}, 0, 0); err != nil {
				return err
			}
			return client.Disconnect(ctx)
		})
		if err != nil {
			fmt.Println("server:", err)
		}
	})
	err := mpi.RunLocal(ctx, 1, func(ctx context.Context, w *mpi.World) error {
		server, err := w.Comm().Connect(ctx, <-ports, 0, nil)
		if err != nil {
			return err
		}
		if err := mpi.Send(ctx, server, []int{1, 2, 3}, 0, 0); err != nil {
			return err
		}
		sum := make([]int, 1)
		if _, err := mpi.Recv(ctx, server, sum, 0, 0); err != nil {
			return err
		}
		fmt.Println("the server says", sum[0])
		return server.Disconnect(ctx)
	})
	if err != nil {
		fmt.Println("client:", err)
	}
	jobs.Wait()
	// Output: the server says 6
}
