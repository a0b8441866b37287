package mpi_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/mpi"
)

// Long messages of one communicator are written to the buffers of their receives
// by RDMA.
func ExampleComm_SetInfo() {
	err := mpi.RunLocal(context.Background(), 2, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		c.SetInfo(mpi.Info{mpi.InfoRendezvous: mpi.RendezvousWrite, mpi.InfoEager: "4K"})
		buf := make([]byte, 100_000)
		if c.Rank() == 1 {
			_, err := mpi.Recv(ctx, c, buf, 0, 0)
			return err
		}
		if err := mpi.Send(ctx, c, buf, 1, 0); err != nil {
			return err
		}
		fmt.Println(c.Info()[mpi.InfoRendezvous], w.Stats().Peers[1].Writes.Bytes)
		return nil
	}, mpi.WithTransport(mpi.TransportHybrid))
	if err != nil {
		fmt.Println(err)
	}
	// Output: write 100000
}

// Long messages of one communicator are read from the buffers of their sends by RDMA.
func ExampleWithRendezvous() {
	err := mpi.RunLocal(context.Background(), 2, func(ctx context.Context, w *mpi.World) error {
		buf := make([]byte, 1_000_000)
		if w.Rank() == 0 {
			return mpi.Send(ctx, w.Comm(), buf, 1, 0)
		}
		if _, err := mpi.Recv(ctx, w.Comm(), buf, 0, 0); err != nil {
			return err
		}
		fmt.Println(w.Comm().Info()[mpi.InfoRendezvous], w.Stats().Peers[0].Reads.Bytes)
		return nil
	}, mpi.WithTransport(mpi.TransportHybrid), mpi.WithRendezvous(mpi.RendezvousRead))
	if err != nil {
		fmt.Println(err)
	}
	// Output: read 1000000
}

// A grid whose neighbours are on one host as far as possible. All of these are on
// one, so they keep their order.
func ExampleReorder() {
	err := mpi.RunLocal(context.Background(), 6, func(ctx context.Context, w *mpi.World) error {
		grid, err := mpi.NewCart(ctx, w.Comm(), []int{3, 2}, []bool{false, false}, mpi.Reorder())
		if err != nil {
			return err
		}
		if w.Rank() == 3 {
			below, above, _ := grid.Shift(0, 1)
			fmt.Println("rank", grid.Comm().Rank(), "between", below, "and", above)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: rank 3 between 1 and 5
}

// Two groups of ranks, producers and consumers, talk over an intercommunicator.
func ExampleIntercommCreate() {
	err := mpi.RunLocal(context.Background(), 5, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		producer := c.Rank() < 2
		color, otherLeader := 0, 2
		if !producer {
			color, otherLeader = 1, 0
		}
		group, err := c.Split(ctx, color, c.Rank())
		if err != nil {
			return err
		}
		between, err := mpi.IntercommCreate(ctx, group, 0, c, otherLeader, 0)
		if err != nil {
			return err
		}
		// Each group gets the sum of what the other has.
		sum := make([]int, 1)
		if err := mpi.Allreduce(ctx, between, []int{c.Rank()}, sum, mpi.Sum[int]); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(between.Size(), "producers,", between.RemoteSize(), "consumers; sum of the consumers", sum[0])
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 2 producers, 3 consumers; sum of the consumers 9
}

// A library makes a communicator of its own from a process set.
func ExampleSession() {
	err := mpi.RunLocal(context.Background(), 3, func(ctx context.Context, w *mpi.World) error {
		s, err := w.NewSession(nil) // in a job of processes: mpi.SessionInit
		if err != nil {
			return err
		}
		all, err := s.Group(mpi.PsetWorld)
		if err != nil {
			return err
		}
		c, err := s.CommFromGroup(ctx, all, "example.org/solver", nil)
		if err != nil {
			return err
		}
		sum := make([]int, 1)
		if err := mpi.Allreduce(ctx, c, []int{1}, sum, mpi.Sum[int]); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(sum[0], "ranks in", mpi.PsetWorld)
		}
		return s.Finalize(ctx)
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 3 ranks in mpi://WORLD
}

// A message is sent in parts, each as soon as it is computed.
func ExamplePsendInit() {
	const parts = 4
	err := mpi.RunLocal(context.Background(), 2, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		buf := make([]int, 8)
		if c.Rank() == 0 {
			p, err := mpi.PsendInit(c, buf, parts, 1, 0)
			if err != nil {
				return err
			}
			r, err := p.Start()
			if err != nil {
				return err
			}
			for i := range parts {
				buf[2*i], buf[2*i+1] = i, i*i
				if err := p.Pready(i); err != nil {
					return err
				}
			}
			_, err = r.Wait(ctx)
			return err
		}
		p, err := mpi.PrecvInit(c, buf, 2, 0, 0) // in other parts
		if err != nil {
			return err
		}
		r, err := p.Start()
		if err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
		fmt.Println(buf)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [0 0 1 1 2 4 3 9]
}

// A library keeps what it knows about a communicator with it.
func ExampleNewKey() {
	calls := mpi.NewKey(mpi.CopyAttr[int], func(_ mpi.Attributed, n int) { fmt.Println("freed after", n, "calls") })
	err := mpi.RunLocal(context.Background(), 1, func(ctx context.Context, w *mpi.World) error {
		mpi.SetAttr(w.Comm(), calls, 3)
		d, err := w.Comm().Dup(ctx)
		if err != nil {
			return err
		}
		n, ok := mpi.GetAttr(d, calls)
		fmt.Println(n, ok)
		d.Free()
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 3 true
	// freed after 3 calls
}

// Errors of a communicator go to its handler before they are returned.
func ExampleComm_SetErrorHandler() {
	err := mpi.RunLocal(context.Background(), 1, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		c.SetName("grid")
		c.SetErrorHandler(func(c *mpi.Comm, err error) error {
			return fmt.Errorf("on %v: %w", c, err)
		})
		err := mpi.Send(ctx, c, []int{1}, 7, 0)
		fmt.Println(err)
		fmt.Println(errors.Is(err, mpi.ErrRank), mpi.ErrorClass(err))
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// on grid: mpi: rank outside the communicator: 7 of 1
	// true rank
}

// A transfer of another library is waited for together with a receive.
func ExampleWorld_StartGrequest() {
	err := mpi.RunLocal(context.Background(), 1, func(ctx context.Context, w *mpi.World) error {
		g := w.StartGrequest(nil)
		go g.Complete(mpi.Status{Bytes: 16}, nil) // by the other library
		in := make([]int, 1)
		r, err := mpi.Irecv(w.Self(), in, 0, 0)
		if err != nil {
			return err
		}
		if err := mpi.Send(ctx, w.Self(), []int{42}, 0, 0); err != nil {
			return err
		}
		sts, err := mpi.Waitall(ctx, r, g.Request())
		if err != nil {
			return err
		}
		fmt.Println(in[0], sts[1].Bytes)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 42 16
}

// Ranks have neighbours, and edges that are worth something.
func ExampleNewWeightedGraph() {
	err := mpi.RunLocal(context.Background(), 3, func(ctx context.Context, w *mpi.World) error {
		c := w.Comm()
		left, right := (c.Rank()+2)%3, (c.Rank()+1)%3
		g, err := mpi.NewWeightedGraph(ctx, c, []int{left}, []int{10 * left}, []int{right}, []int{10 * c.Rank()})
		if err != nil {
			return err
		}
		from := make([]int, 1)
		if err := mpi.NeighborAllgather(ctx, g, []int{c.Rank()}, from); err != nil {
			return err
		}
		if c.Rank() == 0 {
			weights, _ := g.Weights()
			fmt.Println("from", from, "weight", weights)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// from [2] weight [20]
	// <nil>
}

// Ranks of RunLocal play two sites: each of them learns who is at its own.
func ExampleWithSite() {
	site := func(rank int) string { return []string{"lyon", "tokyo"}[rank/2] }
	err := mpi.RunLocal(context.Background(), 4, func(ctx context.Context, w *mpi.World) error {
		near, err := w.Comm().SplitType(ctx, mpi.SplitBySite, 0, nil)
		if err != nil {
			return err
		}
		defer near.Free()
		if w.Rank() == 3 {
			far, err := w.Comm().SiteOf(0)
			fmt.Printf("%d ranks in %s; rank 0 is in %s\n", near.Size(), near.Info()[mpi.InfoSite], far)
			return err
		}
		return nil
	}, mpi.WithSite(site))
	if err != nil {
		fmt.Println(err)
	}
	// Output: 2 ranks in tokyo; rank 0 is in lyon
}
