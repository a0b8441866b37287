package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestGapsByRendezvous sends long items with gaps by all methods of rendezvous, in short runs, in runs so
// long that the system fills them by itself, and in longer ones that it also reads in place: into items of another layout, into fewer, and into
// memory in one run. Nothing but the data is written.
func TestGapsByRendezvous(t *testing.T) {
	const n = 300_000
	for _, tt := range []struct{ transport, how string }{
		{TransportHybrid, "message"}, {TransportHybrid, "write"}, {TransportHybrid, "read"},
		{hybridShared, ""}, {TransportTCP, ""}, {TransportInproc, ""},
	} {
		for _, block := range []int{2, 1000, 6000} {
			t.Run(fmt.Sprintf("%s/%s/block=%d", tt.transport, tt.how, block), func(t *testing.T) {
				local(t, 2, func(ctx context.Context, c *Comm) error {
					if tt.how != "" {
						d, err := c.DupWithInfo(ctx, Info{InfoRendezvous: tt.how})
						if err != nil {
							return err
						}
						c = d
					}
					for i := range 3 { // the device of RDMA is open from the second on
						if err := gapsByRendezvous(ctx, c, n, block, i); err != nil {
							return fmt.Errorf("round %d: %w", i, err)
						}
					}
					return nil
				}, overTransport(tt.transport))
			})
		}
	}
}

func gapsByRendezvous(ctx context.Context, c *Comm, n, block, tag int) error {
	if c.Rank() == 0 {
		mem, d := gappy(n, block, 2*block+1, 1)
		for range 3 {
			if err := c.Send(ctx, Items(mem, 1, d), 1, tag); err != nil {
				return err
			}
		}
		return nil
	}
	mem, d := gappy(n, 2*block, 3*block, -5000)
	if _, err := c.Recv(ctx, Items(mem, 1, d), 0, tag); err != nil {
		return err
	}
	if err := checkGappy(mem, n, n, 2*block, 3*block, 1, -5000); err != nil {
		return fmt.Errorf("all: %w", err)
	}
	less := n - 4*block
	mem, d = gappy(less, 2*block, 3*block, -5000)
	r, err := c.Irecv(Items(mem, 1, d), AnySource, tag)
	if err != nil {
		return err
	}
	if st, err := r.Wait(ctx); !errors.Is(err, ErrTruncate) || st.Bytes != 4*less {
		return fmt.Errorf("%d bytes, %w, want %d and %w", st.Bytes, err, 4*less, ErrTruncate)
	}
	if err := checkGappy(mem, less, less, 2*block, 3*block, 1, -5000); err != nil {
		return fmt.Errorf("fewer: %w", err)
	}
	row := make([]int32, n)
	m, err := Mprobe(ctx, c, 0, tag)
	if err != nil {
		return err
	}
	two := MustType(TypeContiguous(2, MustType(TypeOf[int32]())))
	if _, err := m.Recv(ctx, Items(row, n/2, two)); err != nil {
		return err
	}
	for i, v := range row {
		if int(v) != i+1 {
			return fmt.Errorf("element %d is %d, want %d", i, v, i+1)
		}
	}
	return nil
}
