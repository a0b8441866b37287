package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/mpi"
)

// TestFarmGoesOnWithoutTheDead takes ranks out of a farm, also rank 0 and all
// but one.
func TestFarmGoesOnWithoutTheDead(t *testing.T) {
	for name, dies := range map[string]map[int]time.Duration{
		"worker":          {2: 100 * time.Millisecond},
		"manager":         {0: 150 * time.Millisecond},
		"one by one":      {4: 50 * time.Millisecond, 0: 100 * time.Millisecond, 1: 100 * time.Millisecond, 3: 220 * time.Millisecond},
		"at once":         {1: 70 * time.Millisecond, 2: 70 * time.Millisecond},
		"all but one":     {0: time.Millisecond, 1: 90 * time.Millisecond, 2: 90 * time.Millisecond, 4: 95 * time.Millisecond},
		"before the work": {3: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 5
				o := &options{tasks: 300, seed: 3, tags: 3, fanout: 2, outstanding: 2, pause: 10 * time.Millisecond}
				o.task.Set("1000")
				taken := errors.New("taken out of the farm")
				var mu sync.Mutex
				var res *result
				err := mpi.RunLocal(t.Context(), n, func(ctx context.Context, w *mpi.World) error {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					if at, ok := dies[w.Rank()]; ok {
						go tolerate(ctx, w.Comm(), o, func(*mpi.Comm, error) {})
						time.Sleep(at)
						return taken
					}
					c, m, err := tolerate(ctx, w.Comm(), o, func(*mpi.Comm, error) {})
					if err == nil && m != nil {
						mu.Lock()
						defer mu.Unlock()
						res, err = m.finish(c)
					}
					return err
				}, mpi.WithFaultTolerance())
				for _, line := range strings.Split(err.Error(), "\n") {
					if !strings.Contains(line, taken.Error()) {
						t.Error(line)
					}
				}
				if res == nil || !res.verified || res.ranks != n-len(dies) {
					t.Fatalf("result %+v", res)
				}
			})
		})
	}
}
