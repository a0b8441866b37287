package mpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// Waits that store results find the right ones, whatever order messages come in.
func TestWaitsThatStoreResults(t *testing.T) {
	const n = 24
	runInterTransports(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if w.Rank() == 0 {
			for i := range 2 * n { // a message for each request of rank 1, one of them too long
				if err := Send(ctx, c, make([]int32, 1+i%2), 1, (i%n)*7%n+100*(i/n)); err != nil {
					return err
				}
			}
			return nil
		}
		reqs, sts, errs := make([]*Request, n+1), make([]Status, n+1), make([]error, n+1)
		start := func(tag int) error {
			for i := range n {
				var err error
				if reqs[i], err = Irecv(c, make([]int32, 1), 0, tag+i); err != nil {
					return err
				}
			}
			return nil
		}
		check := func(tag, i int, st Status, err error) error {
			long := 0
			for k := range n {
				if k*7%n == i {
					long = k % 2
				}
			}
			if st.Tag != tag+i || st.Source != 0 || st.Bytes != 4 || errors.Is(err, ErrTruncate) != (long == 1) {
				return fmt.Errorf("request %d: %+v, %v", i, st, err)
			}
			return nil
		}
		if err := start(0); err != nil {
			return err
		}
		if err := WaitallInto(ctx, reqs, sts, errs); !errors.Is(err, ErrTruncate) {
			return fmt.Errorf("WaitallInto: %v", err)
		}
		for i := range n {
			if err := check(0, i, sts[i], errs[i]); err != nil {
				return err
			}
		}
		if sts[n] != (Status{}) || errs[n] != nil {
			return fmt.Errorf("a nil request: %+v, %v", sts[n], errs[n])
		}
		if done, err := TestallInto(reqs, sts, errs); !done || !errors.Is(err, ErrTruncate) {
			return fmt.Errorf("TestallInto: %v, %v", done, err)
		}
		if err := start(100); err != nil {
			return err
		}
		done := make([]int, n+1)
		for seen := 0; seen < n; {
			var k int
			var err error
			if seen%2 == 0 {
				k, err = WaitsomeInto(ctx, reqs, done, sts, errs)
			} else {
				for k == 0 {
					k = TestsomeInto(reqs, done, sts, errs)
					runtime.Gosched()
				}
			}
			if err != nil || k < 1 {
				return fmt.Errorf("%d are done, %w", k, err)
			}
			for j := range k {
				if err := check(100, done[j], sts[j], errs[j]); err != nil {
					return err
				}
			}
			seen += k
		}
		if k, err := WaitsomeInto(ctx, reqs, done, nil, nil); k != Undefined || err != nil {
			return fmt.Errorf("WaitsomeInto without active requests: %d, %v", k, err)
		}
		if k := TestsomeInto(reqs, done, nil, nil); k != Undefined {
			return fmt.Errorf("TestsomeInto without active requests: %d", k)
		}
		return nil
	})
}

// The end of the context leaves the requests as they are.
func TestWaitallIntoEndsWithContext(t *testing.T) {
	runRanks(t, 1, func(ctx context.Context, w *World) error {
		r, err := Irecv(w.Comm(), make([]int, 1), 0, 1)
		if err != nil {
			return err
		}
		over, cancel := context.WithCancel(ctx)
		cancel()
		if err := WaitallInto(over, []*Request{r}, nil, nil); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("got %v", err)
		}
		n, err := WaitsomeInto(over, []*Request{r}, make([]int, 1), nil, nil)
		if n != 0 || !errors.Is(err, context.Canceled) {
			return fmt.Errorf("got %d, %v", n, err)
		}
		if done, err := TestallInto([]*Request{r}, nil, nil); done || err != nil {
			return fmt.Errorf("got %v, %v", done, err)
		}
		if n := TestsomeInto([]*Request{r}, make([]int, 1), nil, nil); n != 0 {
			return fmt.Errorf("got %d", n)
		}
		if !r.Cancel() {
			return errors.New("the receive was not withdrawn")
		}
		if st, err := r.Wait(ctx); !st.Canceled || !errors.Is(err, ErrCanceled) {
			return fmt.Errorf("withdrawn: %+v, %v", st, err)
		}
		return nil
	})
}

func TestWaitsAllocateNothing(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	runRanks(t, 1, func(ctx context.Context, w *World) error {
		c, b := w.Comm(), Elements(make([]byte, 8))
		in := Elements(make([]byte, 8))
		const k = 4
		reqs, sts, errs, done := make([]*Request, 2*k), make([]Status, 2*k), make([]error, 2*k), make([]int, 2*k)
		start := func() {
			for i := range k {
				reqs[2*i], _ = c.Irecv(in, 0, i)
			}
			for i := range k {
				reqs[2*i+1], _ = c.Isend(b, 0, i)
			}
		}
		free := func() {
			for _, r := range reqs {
				r.Free()
			}
		}
		waits := map[string]func(){
			"WaitallInto": func() { _ = WaitallInto(ctx, reqs, sts, errs) },
			"WaitsomeInto": func() {
				for n := 0; n < 2*k; {
					m, _ := WaitsomeInto(ctx, reqs, done, sts, errs)
					n += m
				}
			},
			"Waitany": func() {
				for range reqs {
					_, _, _ = Waitany(ctx, reqs...)
				}
			},
			"TestallInto": func() {
				for ok := false; !ok; {
					ok, _ = TestallInto(reqs, sts, errs)
				}
			},
			"TestsomeInto": func() {
				for n := 0; n < 2*k; {
					n += TestsomeInto(reqs, done, sts, errs)
				}
			},
		}
		for name, wait := range waits {
			if n := testing.AllocsPerRun(200, func() { start(); wait(); free() }); n != 0 {
				t.Errorf("%s of %d requests: %v allocations", name, 2*k, n)
			}
		}
		return nil
	})
}
