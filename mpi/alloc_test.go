package mpi

import (
	"context"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// Messages of any length allocate nothing in the long run: eager ones, and long
// ones that are announced, asked for and referenced.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	for _, tr := range []string{TransportSCTP, hybridShared} {
		t.Run(tr, func(t *testing.T) {
			for _, size := range []int{8, 4096, 65536, 1 << 20} {
				const warm, runs = 200, 100
				err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
					c, buf := w.Comm(), make([]byte, size)
					if c.Rank() == 1 {
						for range warm + runs + 1 {
							if _, err := Recv(ctx, c, buf, 0, 0); err != nil {
								return err
							}
							if err := Send(ctx, c, buf[:0], 0, 0); err != nil {
								return err
							}
						}
						return nil
					}
					var err error
					round := func() {
						if err == nil {
							err = Send(ctx, c, buf, 1, 0)
						}
						if err == nil {
							_, err = Recv(ctx, c, buf[:0], 1, 0)
						}
					}
					for range warm {
						round()
					}
					if n := testing.AllocsPerRun(runs, round); n >= 1 {
						t.Errorf("messages of %d bytes: %v allocations each", size, n)
					}
					return err
				}, overTransport(tr))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Nor do sends that are left for a goroutine to transmit, and that goroutine.
func TestBurstsDoNotAllocate(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	const warm, runs, burst = 200, 100, 16
	err := RunLocal(t.Context(), 2, func(ctx context.Context, w *World) error {
		c, buf := w.Comm(), make([]byte, 100)
		if c.Rank() == 1 {
			for range warm + runs + 1 {
				for range burst {
					if _, err := Recv(ctx, c, buf, 0, 0); err != nil {
						return err
					}
				}
				if err := Send(ctx, c, buf[:0], 0, 0); err != nil {
					return err
				}
			}
			return nil
		}
		var err error
		reqs := make([]*Request, burst)
		round := func() {
			for i := 0; i < burst && err == nil; i++ {
				reqs[i], err = Isend(c, buf, 1, 0)
			}
			for i := 0; i < burst && err == nil; i++ {
				_, err = reqs[i].Wait(ctx)
				reqs[i].Free()
			}
			if err == nil {
				_, err = Recv(ctx, c, buf[:0], 1, 0)
			}
		}
		for range warm {
			round()
		}
		if n := testing.AllocsPerRun(runs, round); n >= 1 {
			t.Errorf("%v allocations per burst", n)
		}
		return err
	}, overTransport(TransportSCTP))
	if err != nil {
		t.Error(err)
	}
}
