package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/weftstack/weft/mpi"
)

// ports lets the even ranks of c and the odd ones connect, and rank 0 to itself
// fail.
func ports(ctx context.Context, c *mpi.Comm) error {
	w := c.World()
	odd := c.Rank() % 2
	half, err := c.Split(ctx, odd, c.Rank())
	if err != nil {
		return err
	}
	defer half.Free()
	name := make([]byte, mpi.MaxPortName)
	if c.Rank() == 0 {
		port, err := w.OpenPort()
		if err != nil {
			return err
		}
		copy(name, port)
	}
	if err := mpi.Bcast(ctx, c, name, 0); err != nil {
		return err
	}
	port := string(name)
	for i, b := range name {
		if b == 0 {
			port = string(name[:i])
			break
		}
	}
	for range 2 {
		if c.Size() == 1 {
			break
		}
		var x *mpi.Comm
		if odd == 0 {
			x, err = half.Accept(ctx, port, 0)
		} else {
			x, err = half.Connect(ctx, port, half.Size()-1, nil)
		}
		if err != nil {
			return err
		}
		if err := bothGroups(ctx, x, odd == 1, c.Size()); err != nil {
			return err
		}
		if err := x.Disconnect(ctx); err != nil {
			return err
		}
	}
	if err := mpi.Barrier(ctx, c); err != nil {
		return err
	}
	if c.Rank() == 0 {
		if err := w.ClosePort(port); err != nil {
			return err
		}
	}
	if err := mpi.Barrier(ctx, c); err != nil {
		return err
	}
	if _, err := c.Connect(ctx, port, 0, nil); !errors.Is(err, mpi.ErrPort) {
		return fmt.Errorf("connected to a closed port: %w", err)
	}
	return nil
}

// children is how many processes spawning starts.
const children = 2

// spawning starts this program again.
func spawning(ctx context.Context, c *mpi.Comm) error {
	x, err := c.Spawn(ctx, mpi.Command{Path: os.Args[0], Args: []string{"child"}, N: children}, c.Size()-1)
	if errors.Is(err, mpi.ErrSpawn) && c.Size() == 1 {
		return nil // started without a launcher, perhaps
	}
	if err != nil {
		return err
	}
	if err := bothGroups(ctx, x, false, c.Size()+children); err != nil {
		return err
	}
	return x.Disconnect(ctx)
}

// child is what a process of spawning does.
func child(ctx context.Context, w *mpi.World, _ []string) error {
	x := w.Parent()
	if x == nil {
		return errors.New("a child without a parent")
	}
	if err := bothGroups(ctx, x, true, x.RemoteSize()+w.Size()); err != nil {
		return err
	}
	return x.Disconnect(ctx)
}

// bothGroups uses x and a communicator and a window of both its groups, which
// have n members.
func bothGroups(ctx context.Context, x *mpi.Comm, high bool, n int) error {
	if x.Size()+x.RemoteSize() != n {
		return fmt.Errorf("%v, want %d processes", x, n)
	}
	sum := []int{1}
	if err := mpi.Allreduce(ctx, x, sum, sum, mpi.Sum); err != nil {
		return err
	}
	if sum[0] != x.RemoteSize() {
		return fmt.Errorf("sum %d over the other %d", sum[0], x.RemoteSize())
	}
	m, err := x.IntercommMerge(ctx, high)
	if err != nil {
		return err
	}
	defer m.Free()
	sum[0] = m.Rank()
	if err := mpi.Allreduce(ctx, m, sum, sum, mpi.Sum); err != nil {
		return err
	}
	if sum[0] != n*(n-1)/2 {
		return fmt.Errorf("sum %d over %d ranks", sum[0], n)
	}
	w, err := mpi.WinAllocate[int64](ctx, m, n)
	if err != nil {
		return err
	}
	if err := w.LockAll(ctx); err != nil {
		return err
	}
	for r := range n {
		if err := w.Put(ctx, []int64{int64(n*m.Rank() + r)}, r, m.Rank()); err != nil {
			return err
		}
	}
	if err := w.UnlockAll(ctx); err != nil {
		return err
	}
	if err := mpi.Barrier(ctx, m); err != nil {
		return err
	}
	var got [1]int64
	next := (m.Rank() + 1) % n
	if err := w.Lock(ctx, mpi.LockShared, next); err != nil {
		return err
	}
	if err := w.Get(ctx, got[:], next, m.Rank()); err != nil {
		return err
	}
	if err := w.Unlock(ctx, next); err != nil {
		return err
	}
	if got[0] != int64(n*m.Rank()+next) {
		return fmt.Errorf("rank %d has %d", next, got[0])
	}
	return w.Free(ctx)
}
