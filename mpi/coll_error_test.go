package mpi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestCollectiveArguments gives bad arguments on all ranks: each gets the
// error at once, and the communicator works on.
func TestCollectiveArguments(t *testing.T) {
	buf := make([]int, 12)
	ptrs := make([]*int, 12)
	three := []int{4, 4, 4}
	tests := []struct {
		name string
		want error
		call func(ctx context.Context, c *Comm) error
	}{
		{"root too large", ErrRoot, func(ctx context.Context, c *Comm) error { return Bcast(ctx, c, buf, 3) }},
		{"root negative", ErrRoot, func(ctx context.Context, c *Comm) error { return Reduce(ctx, c, buf, buf, Sum, -1) }},
		{"gather root", ErrRoot, func(ctx context.Context, c *Comm) error { return Gather(ctx, c, buf, buf, 3) }},
		{"gatherv root", ErrRoot, func(ctx context.Context, c *Comm) error { return Gatherv(ctx, c, buf, buf, three, nil, 3) }},
		{"pointers", ErrType, func(ctx context.Context, c *Comm) error { return Bcast(ctx, c, ptrs, 0) }},
		{"no operator", ErrOp, func(ctx context.Context, c *Comm) error { return Allreduce[int](ctx, c, buf, buf, nil) }},
		{"no operator, blocks", ErrOp, func(ctx context.Context, c *Comm) error {
			return ReduceScatterBlock[int](ctx, c, buf, buf[:4], nil)
		}},
		{"allreduce lengths", ErrCount, func(ctx context.Context, c *Comm) error { return Allreduce(ctx, c, buf, buf[:5], Sum) }},
		{"allreduce overlap", ErrOverlap, func(ctx context.Context, c *Comm) error {
			return Allreduce(ctx, c, buf[:5], buf[1:6], Sum)
		}},
		{"scan lengths", ErrCount, func(ctx context.Context, c *Comm) error { return Scan(ctx, c, buf, nil, Sum) }},
		{"allgather lengths", ErrCount, func(ctx context.Context, c *Comm) error { return Allgather(ctx, c, buf, buf) }},
		{"allgather overlap", ErrOverlap, func(ctx context.Context, c *Comm) error {
			return Allgather(ctx, c, buf[2:6], buf)
		}},
		{"alltoall not divisible", ErrCount, func(ctx context.Context, c *Comm) error {
			return Alltoall(ctx, c, buf[:10], buf[:10])
		}},
		{"alltoall lengths", ErrCount, func(ctx context.Context, c *Comm) error { return Alltoall(ctx, c, buf, buf[:9]) }},
		{"too few counts", ErrCount, func(ctx context.Context, c *Comm) error {
			return Allgatherv(ctx, c, buf, buf, three[:2], nil)
		}},
		{"negative count", ErrCount, func(ctx context.Context, c *Comm) error {
			return Allgatherv(ctx, c, nil, buf, []int{-1, 0, 0}, nil)
		}},
		{"displacement too large", ErrCount, func(ctx context.Context, c *Comm) error {
			return Allgatherv(ctx, c, nil, buf, []int{0, 1, 0}, []int{0, 12, 0})
		}},
		{"displacement wraps", ErrCount, func(ctx context.Context, c *Comm) error {
			return Allgatherv(ctx, c, nil, buf, []int{0, 2, 0}, []int{0, math.MaxInt, 0})
		}},
		{"alltoallv own block", ErrCount, func(ctx context.Context, c *Comm) error {
			return Alltoallv(ctx, c, buf[:6], []int{2, 2, 2}, nil, buf[6:9], []int{1, 1, 1}, nil)
		}},
		{"reduce-scatter sum", ErrCount, func(ctx context.Context, c *Comm) error {
			return ReduceScatter(ctx, c, buf, make([]int, 3), []int{3, 3, 3}, Sum)
		}},
		{"reduce-scatter recv", ErrCount, func(ctx context.Context, c *Comm) error {
			return ReduceScatter(ctx, c, buf, make([]int, 3), three, Sum)
		}},
	}
	local(t, 3, func(ctx context.Context, c *Comm) error {
		for _, tt := range tests {
			if err := tt.call(ctx, c); !errors.Is(err, tt.want) {
				return fmt.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
			}
			if _, err := Iallreduce[int](c, nil, nil, nil); !errors.Is(err, ErrOp) {
				return fmt.Errorf("%s: Iallreduce without operator: error %v, want %v", tt.name, err, ErrOp)
			}
			if err := Barrier(ctx, c); err != nil {
				return fmt.Errorf("%s: barrier afterwards: %w", tt.name, err)
			}
		}
		return nil
	})
}

// TestCollectiveDisagreement lets one rank give another length than the
// others: the ranks it sends to, or it, get an error, no rank is stuck, and
// the communicator works on.
func TestCollectiveDisagreement(t *testing.T) {
	tests := []struct {
		name  string
		ranks func(wrong int) []int // that must see an error
		call  func(ctx context.Context, c *Comm, n int) error
	}{
		{"bcast", func(wrong int) []int { return []int{wrong} }, func(ctx context.Context, c *Comm, n int) error {
			return Bcast(ctx, c, make([]byte, n), 0)
		}},
		{"gather", func(wrong int) []int { return []int{wrong - 1} }, func(ctx context.Context, c *Comm, n int) error {
			return Gather(ctx, c, make([]byte, n), make([]byte, 8*c.Size()), 0)
		}},
		{"scatter", func(wrong int) []int { return []int{wrong} }, func(ctx context.Context, c *Comm, n int) error {
			return Scatter(ctx, c, make([]byte, 8*c.Size()), make([]byte, n), 0)
		}},
		{"allreduce", func(wrong int) []int { return []int{wrong} }, func(ctx context.Context, c *Comm, n int) error {
			return Allreduce(ctx, c, make([]byte, n), make([]byte, n), Sum)
		}},
	}
	for _, tt := range tests {
		for _, n := range []int{0, 7, 9} {
			t.Run(fmt.Sprintf("%s/bytes=%d", tt.name, n), func(t *testing.T) {
				const wrong = 3
				local(t, 4, func(ctx context.Context, c *Comm) error {
					mine := 8
					if c.Rank() == wrong {
						mine = n
					}
					err := tt.call(ctx, c, mine)
					if err != nil && !errors.Is(err, ErrCount) && !errors.Is(err, ErrTruncate) {
						return err
					}
					if slices.Contains(tt.ranks(wrong), c.Rank()) && err == nil {
						return errors.New("no error")
					}
					return Barrier(ctx, c)
				})
			})
		}
	}
}

// TestCollectiveContext ends the context of collectives that cannot complete.
func TestCollectiveContext(t *testing.T) {
	long := make([]int, 1<<16)
	for _, coll := range []struct {
		name string
		call func(ctx context.Context, c *Comm) error
	}{
		{"barrier", Barrier},
		{"bcast", func(ctx context.Context, c *Comm) error { return Bcast(ctx, c, make([]int, 4), 2) }},
		{"gather", func(ctx context.Context, c *Comm) error {
			return Gather(ctx, c, make([]int, 4), make([]int, 12), 0)
		}},
		{"long bcast", func(ctx context.Context, c *Comm) error { return Bcast(ctx, c, make([]int, 1<<16), 0) }},
		{"long alltoall", func(ctx context.Context, c *Comm) error {
			return Alltoall(ctx, c, long[:3<<14], make([]int, 3<<14))
		}},
	} {
		t.Run(coll.name, func(t *testing.T) {
			local(t, 3, func(ctx context.Context, c *Comm) error {
				if c.Rank() == 0 {
					short, stop := context.WithCancel(ctx)
					go stop()
					if err := coll.call(short, c); !errors.Is(err, context.Canceled) {
						return fmt.Errorf("error %v, want %v", err, context.Canceled)
					}
				}
				return nil
			})
		})
	}
}
