package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// Several goroutines share the messages of one tag by Mprobe, without getting
// in each other's way.
func TestMprobeThreads(t *testing.T) {
	const n, workers = 200, 4
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() == 0 {
			for i := range n + workers {
				size := 4 * (1 + i*i%20_000)
				if i >= n {
					size = 0
				}
				b := make([]byte, size)
				pattern(b, size)
				if err := Send(ctx, c, b, 1, i%3); err != nil {
					return err
				}
			}
			return nil
		}
		var wg sync.WaitGroup
		errs := make([]error, workers)
		var mu sync.Mutex
		total := 0
		for k := range workers {
			finish := func(m *Message, b []byte) (Status, error) { return Mrecv(ctx, m, b) }
			if k%2 == 1 {
				finish = func(m *Message, b []byte) (Status, error) {
					r, err := Imrecv(m, b)
					if err != nil {
						return Status{}, err
					}
					return r.Wait(ctx)
				}
			}
			wg.Go(func() {
				errs[k] = func() error {
					for {
						m, err := Mprobe(ctx, c, AnySource, AnyTag)
						if err != nil {
							return err
						}
						b := make([]byte, m.Status().Bytes)
						st, err := finish(m, b)
						if err != nil || st != m.Status() {
							return fmt.Errorf("status %+v, %v, want %+v", st, err, m.Status())
						}
						if st.Bytes == 0 {
							return nil
						}
						if err := checkPattern(b, st.Bytes); err != nil {
							return err
						}
						mu.Lock()
						total++
						mu.Unlock()
					}
				}()
			})
		}
		wg.Wait()
		if total != n {
			errs = append(errs, fmt.Errorf("%d messages, want %d", total, n))
		}
		if m, err := Improbe(c, AnySource, AnyTag); m != nil || err != nil {
			errs = append(errs, fmt.Errorf("a message is left: %v, %v", m, err))
		}
		return errors.Join(errs...)
	})
}
