package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/mpi"
)

// oneSidedTests are the tests of windows: rank 0 works on the window of rank 1.
func oneSidedTests() []*test {
	base := test{columns: []string{"Latency (us)"}, min: 1, max: 4 << 20, exact: 2,
		iters: [2]int{10000, 1000}, warmup: [2]int{100, 10}}
	latency := func(name, title string, op func(*window, context.Context, int) error, expect winExpect) *test {
		t := base
		t.name, t.title = name, title
		t.setup = windowTest(1, false, op, expect)
		return &t
	}
	bandwidth := func(name, title string, both bool, op func(*window, context.Context, int) error,
		expect winExpect) *test {
		t := base
		t.name, t.title, t.columns = name, title, []string{"Bandwidth (MB/s)"}
		t.iters, t.warmup = [2]int{100, 20}, [2]int{10, 2}
		t.setup = windowTest(0, both, op, expect)
		return &t
	}
	word := func(name, title string, op func(*window, context.Context) error, want int64) *test {
		t := base
		t.name, t.title, t.min, t.max, t.single = name, title, 8, 8, true
		t.setup = wordTest(op, want)
		return &t
	}
	return []*test{
		latency("put_latency", "MPI_Put latency Test", (*window).put, expectPut),
		latency("get_latency", "MPI_Get latency Test", (*window).get, expectGet),
		latency("acc_latency", "MPI_Accumulate latency Test", (*window).acc, expectPut),
		latency("get_acc_latency", "MPI_Get_accumulate latency Test", (*window).getAcc, expectGet),
		word("fop_latency", "MPI_Fetch_and_op latency Test", func(w *window, ctx context.Context) error {
			_, err := w.words.FetchAndOp(ctx, 1, 1, w.at, mpi.Sum)
			return err
		}, 1),
		word("cas_latency", "MPI_Compare_and_swap latency Test", func(w *window, ctx context.Context) error {
			_, err := w.words.CompareAndSwap(ctx, 0, 5, 1, w.at)
			return err
		}, 5),
		bandwidth("put_bw", "MPI_Put Bandwidth Test", false, (*window).put, expectPut),
		bandwidth("get_bw", "MPI_Get Bandwidth Test", false, (*window).get, expectGet),
		bandwidth("put_bibw", "MPI_Put Bi-directional Bandwidth Test", true, (*window).put, expectPut),
	}
}

// winExpect says what is known after one operation of the other rank.
type winExpect int

const (
	expectPut winExpect = iota // the target has the origin's data
	expectGet                  // the origin has the target's data
)

// window is a rank's window and the buffer of its operations.
type window struct {
	b      *state
	bytes  *mpi.Win[byte]
	words  *mpi.Win[int64]
	at     int    // where the target's part of the window begins
	mem    []byte // the own part
	word   []int64
	buf    []byte
	result []byte
	target int
	origin bool
	both   bool // ranks are origin and target
}

func (w *window) put(ctx context.Context, at int) error {
	return w.bytes.Put(ctx, w.buf, w.target, at)
}
func (w *window) get(ctx context.Context, at int) error {
	return w.bytes.Get(ctx, w.result, w.target, at)
}
func (w *window) acc(ctx context.Context, at int) error {
	return w.bytes.Accumulate(ctx, w.buf, w.target, at, mpi.Replace)
}
func (w *window) getAcc(ctx context.Context, at int) error {
	return w.bytes.GetAccumulate(ctx, w.buf, w.result, w.target, at, mpi.NoOp)
}

// epoch does the operations of one iteration with the synchronization of -s.
// With fence and pscw all ranks call it; else the origins.
func (w *window) epoch(ctx context.Context, win syncer, f func() error) error {
	do := func() error {
		if w.origin {
			return f()
		}
		return nil
	}
	switch w.b.o.sync {
	case "fence":
		return errors.Join(do(), win.Fence(ctx))
	case "pscw":
		target := !w.origin || w.both
		if target {
			if err := win.Post(w.target); err != nil {
				return err
			}
		}
		if w.origin {
			if err := win.Start(ctx, w.target); err != nil {
				return err
			}
			if err := errors.Join(f(), win.Complete(ctx)); err != nil {
				return err
			}
		}
		if target {
			return win.Wait(ctx)
		}
		return nil
	}
	if !w.origin {
		return nil
	}
	switch w.b.o.sync {
	case "lock":
		if err := win.Lock(ctx, mpi.LockShared, w.target); err != nil {
			return err
		}
		return errors.Join(f(), win.Unlock(ctx, w.target))
	case "lock_all":
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		return errors.Join(f(), win.UnlockAll(ctx))
	case "flush_local":
		return errors.Join(f(), win.FlushLocal(ctx, w.target))
	}
	return errors.Join(f(), win.Flush(ctx, w.target))
}

// openWindow makes the window of -w: n elements at each rank, which begin at place
// at in that of the other one.
func openWindow[T mpi.Element](ctx context.Context, b *state, n int) (win *mpi.Win[T], mem []T, at int, err error) {
	switch b.o.win {
	case "create":
		mem = memory[T](n)
		win, err = mpi.WinCreate(ctx, b.c, mem)
		return win, mem, 0, err
	case "dynamic":
		mem = memory[T](n)
		if win, err = mpi.WinCreateDynamic[T](ctx, b.c); err != nil {
			return nil, nil, 0, err
		}
		if at, err = win.Attach(mem); err != nil {
			return nil, nil, 0, err
		}
		all := make([]int, b.size)
		err = mpi.Allgather(ctx, b.c, []int{at}, all)
		return win, mem, all[1-b.me], err
	}
	if win, err = mpi.WinAllocate[T](ctx, b.c, n); err != nil {
		return nil, nil, 0, err
	}
	return win, win.Buf(), 0, nil
}

// syncer is a window of any type.
type syncer interface {
	Fence(ctx context.Context, asserts ...mpi.Assert) error
	Flush(ctx context.Context, target int) error
	Lock(ctx context.Context, mode mpi.LockMode, target int, asserts ...mpi.Assert) error
	Unlock(ctx context.Context, target int) error
	LockAll(ctx context.Context, asserts ...mpi.Assert) error
	UnlockAll(ctx context.Context) error
	FlushLocal(ctx context.Context, target int) error
	Post(origins ...int) error
	Start(ctx context.Context, targets ...int) error
	Complete(ctx context.Context) error
	Wait(ctx context.Context) error
}

// finish waits for the other rank, and lets it see what was done.
func (w *window) finish(ctx context.Context, win syncer) error { return win.Fence(ctx) }

// windowTest makes tests of op. With count 1 they measure the time of one
// operation with its synchronization, else the bandwidth of a window of them.
func windowTest(
	count int, both bool, op func(*window, context.Context, int) error, expect winExpect,
) func(context.Context, *state, int) (*testCase, error) {
	return func(ctx context.Context, b *state, size int) (*testCase, error) {
		w := &window{b: b, buf: memory[byte](size), result: memory[byte](size), target: 1 - b.me, origin: both || b.me == 0,
			both: both}
		var err error
		if w.bytes, w.mem, w.at, err = openWindow[byte](ctx, b, size); err != nil {
			return nil, err
		}
		many := count
		if many == 0 {
			many = b.o.window
		}
		iteration := func(ctx context.Context) error {
			return w.epoch(ctx, w.bytes, func() error {
				for range many {
					if err := op(w, ctx, w.at); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return &testCase{
			run: func(ctx context.Context, warmup, iters int) ([]float64, error) {
				took, err := timed(warmup, iters, func() error { return iteration(ctx) })
				if err == nil {
					err = w.finish(ctx, w.bytes)
				}
				if err != nil {
					return nil, err
				}
				v := []float64{0}
				switch {
				case count == 1 && w.origin:
					v[0] = micros(took, iters)
				case w.origin:
					v[0] = megabytes(float64(iters*many)*float64(size), took)
				}
				return v, mpi.Allreduce(ctx, b.c, v, v, mpi.Sum)
			},
			check: func(ctx context.Context) error {
				fillPattern(w.buf, b.me)
				clear(w.result)
				if expect == expectGet {
					fillPattern(w.mem, b.me)
				} else {
					clear(w.mem)
				}
				if err := w.bytes.Fence(ctx); err != nil {
					return err
				}
				if err := errors.Join(iteration(ctx), w.finish(ctx, w.bytes)); err != nil {
					return err
				}
				if expect == expectGet {
					if !w.origin {
						return nil
					}
					return checkPattern(w.result, w.target)
				}
				if b.me == 0 && !both {
					return nil
				}
				return checkPattern(w.mem, w.target)
			},
			done: w.bytes.Free,
		}, nil
	}
}

// wordTest makes tests of an update of one word.
func wordTest(
	op func(*window, context.Context) error, want int64,
) func(context.Context, *state, int) (*testCase, error) {
	return func(ctx context.Context, b *state, _ int) (*testCase, error) {
		w := &window{b: b, target: 1 - b.me, origin: b.me == 0}
		var err error
		if w.words, w.word, w.at, err = openWindow[int64](ctx, b, 1); err != nil {
			return nil, err
		}
		iteration := func(ctx context.Context) error {
			return w.epoch(ctx, w.words, func() error { return op(w, ctx) })
		}
		return &testCase{
			run: func(ctx context.Context, warmup, iters int) ([]float64, error) {
				took, err := timed(warmup, iters, func() error { return iteration(ctx) })
				if err == nil {
					err = w.finish(ctx, w.words)
				}
				v := []float64{0}
				if w.origin {
					v[0] = micros(took, iters)
				}
				if err != nil {
					return nil, err
				}
				return v, mpi.Allreduce(ctx, b.c, v, v, mpi.Sum)
			},
			check: func(ctx context.Context) error {
				w.word[0] = 0
				if err := w.words.Fence(ctx); err != nil {
					return err
				}
				if err := errors.Join(iteration(ctx), w.finish(ctx, w.words)); err != nil {
					return err
				}
				if got := w.word[0]; b.me == 1 && got != want {
					return fmt.Errorf("the word in the window is %d, want %d", got, want)
				}
				return nil
			},
			done: w.words.Free,
		}, nil
	}
}
