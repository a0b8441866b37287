package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"
)

// mappings counts what this process has mapped of the memory of windows.
func mappings(t *testing.T) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "memfd:weft-window") {
			n++
		}
	}
	return n
}

// windowFiles counts the files of the memory of windows that this process has open.
func windowFiles() (n int) {
	names, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range names {
		if to, _ := os.Readlink(name); strings.Contains(to, "memfd:weft-window") {
			n++
		}
	}
	return n
}

// The memory of WinAllocate is mapped by ranks that share memory; Put, Get and updates
// of words then take no messages, and no RDMA. Free gives back what others have mapped,
// but the memory stays the program's as long as it refers to it.
func TestWinMapped(t *testing.T) {
	sharing(t)
	const p = 3
	kept := make([][]int64, p)
	round := func() {
		local(t, p, func(ctx context.Context, c *Comm) error {
			next, before := (c.Rank()+1)%p, (c.Rank()+2)%p
			w, err := WinAllocate[int64](ctx, c, 10_000, WithInfo(Info{InfoAlignment: "65536"}))
			if err != nil {
				return err
			}
			if !w.w.rma.Inspect(next).Mapped {
				return errors.New("not mapped")
			}
			if uintptr(unsafe.Pointer(&w.Buf()[0]))%65536 != 0 {
				return errors.New("not aligned")
			}
			if n := windowFiles(); n > p {
				return fmt.Errorf("%d files are open", n)
			}
			if err := w.Put(ctx, []int64{5, 6, 7}, next, 9_997); err != nil {
				return err
			}
			if v, err := w.FetchAndOp(ctx, 10, next, 9_997, Sum); err != nil || v != 5 {
				return fmt.Errorf("fetched %d, %w", v, err)
			}
			if v, err := w.CompareAndSwap(ctx, 6, 60, next, 9_998); err != nil || v != 6 {
				return fmt.Errorf("swapped %d, %w", v, err)
			}
			old := make([]int64, 2)
			if err := w.GetAccumulate(ctx, []int64{1, 1}, old, next, 9_998, Max); err != nil {
				return err
			}
			got := make([]int64, 3)
			if err := w.Get(ctx, got, next, 9_997); err != nil {
				return err
			}
			// All of it is complete; the Flush only says so.
			if !slices.Equal(old, []int64{60, 7}) || !slices.Equal(got, []int64{15, 60, 7}) {
				return fmt.Errorf("got %v and %v", old, got)
			}
			if err := errors.Join(w.Flush(ctx, next), w.Fence(ctx)); err != nil {
				return err
			}
			if !slices.Equal(w.Buf()[9_997:], []int64{15, 60, 7}) {
				return fmt.Errorf("memory is %v", w.Buf()[9_997:])
			}
			s := c.w.Stats().Peers[next]
			if s.Writes != (Traffic{1, 24}) || s.Reads != (Traffic{1, 24}) || s.Atomics != (Traffic{3, 32}) {
				return fmt.Errorf("counted %+v", s)
			}
			if s := w.w.rma.Inspect(next); s.Updates != 0 || s.Connected {
				return errors.New("messages, or RDMA, besides")
			}
			if err := w.Put(ctx, []int64{1, 2}, next, 9_999); !errors.Is(err, ErrRange) {
				return fmt.Errorf("beyond the end: %v", err)
			}
			if err := w.Free(ctx); err != nil {
				return err
			}
			if w.w.rma.Inspect(next).Mapped || w.w.rma.Inspect(before).Mapped {
				return errors.New("mapped after Free")
			}
			kept[c.Rank()] = w.Buf()
			return nil
		}, overTransport(hybridShared))
		if n := windowFiles(); n > 0 {
			t.Errorf("%d files are left open", n)
		}
	}
	round()
	runtime.GC()
	for r, mem := range kept {
		if !slices.Equal(mem[9_997:], []int64{15, 60, 7}) {
			t.Errorf("after Free rank %d has %v", r, mem[9_997:])
		}
		mem[0] = 1
	}
	clear(kept)
	for i := 0; mappings(t) > 0; i++ { // finalizers run a little later
		if i == 10_000 {
			t.Fatalf("%d mappings are left", mappings(t))
		}
		runtime.GC()
		runtime.Gosched()
	}
}

// TestWinUpdatesRandom has each rank update a stripe of its own in the memory of all,
// in all ways and of random lengths, and compares what it gets, and what is there in the
// end, with a model: this needs the order of the updates of a rank (MPI-4.1, Section
// 12.7.2: "by default, accumulates are ordered").
func TestWinUpdatesRandom(t *testing.T) {
	const p = 3
	seed := testSeed(t)
	t.Run("int64", func(t *testing.T) {
		eachTransport(t, p, func(ctx context.Context, c *Comm) error { return randomUpdates[int64](ctx, c, seed) })
	})
	t.Run("uint32", func(t *testing.T) {
		eachTransport(t, p, func(ctx context.Context, c *Comm) error { return randomUpdates[uint32](ctx, c, seed) })
	})
}

func randomUpdates[T int64 | uint32](ctx context.Context, c *Comm, seed uint64) error {
	const stripe, steps = 2000, 150
	p := c.Size()
	for _, make := range []func() (*Win[T], error){
		func() (*Win[T], error) { return WinAllocate[T](ctx, c, p*stripe) },
		func() (*Win[T], error) { return WinCreate(ctx, c, make([]T, p*stripe)) },
	} {
		w, err := make()
		if err != nil {
			return err
		}
		if err := randomStripes(ctx, c, w, stripe, steps, rand.New(rand.NewPCG(seed, uint64(c.Rank())))); err != nil {
			return err
		}
		if err := w.Free(ctx); err != nil {
			return err
		}
	}
	return nil
}

// randomStripes updates the caller's stripe of each rank.
func randomStripes[T int64 | uint32](ctx context.Context, c *Comm, w *Win[T], stripe, steps int, rng *rand.Rand) error {
	p, at := c.Size(), c.Rank()*stripe
	model := make([][]T, p)
	for r := range model {
		model[r] = make([]T, stripe)
	}
	ops := []struct {
		op Op[T]
		f  func(a, b T) T
	}{
		{Sum[T], func(a, b T) T { return a + b }}, {Replace[T], func(_, b T) T { return b }}, {NoOp[T], func(a, _ T) T { return a }},
		{Max[T], func(a, b T) T { return max(a, b) }}, {Bxor[T], func(a, b T) T { return a ^ b }}, {Prod[T], func(a, b T) T { return a * b }},
	}
	type check struct{ got, want []T }
	var open []check // of operations that need a Flush
	for step := range steps {
		target, o := rng.IntN(p), ops[rng.IntN(len(ops))]
		n := min(1<<rng.IntN(11), stripe)
		from := rng.IntN(stripe - n + 1)
		mem, src := model[target][from:from+n], make([]T, n)
		for i := range src {
			src[i] = T(rng.Uint32())
		}
		was := slices.Clone(mem)
		apply := func(n int) {
			for i := range n {
				mem[i] = o.f(mem[i], src[i])
			}
		}
		var err error
		switch kind := rng.IntN(8); kind {
		case 0, 1:
			apply(n)
			err = w.Accumulate(ctx, src, target, at+from, o.op)
		case 2, 3:
			apply(n)
			got := make([]T, n)
			open = append(open, check{got, was})
			err = w.GetAccumulate(ctx, src, got, target, at+from, o.op)
		case 4, 5:
			apply(1)
			var old T
			if old, err = w.FetchAndOp(ctx, src[0], target, at+from, o.op); err == nil && old != was[0] {
				err = fmt.Errorf("fetched %v, want %v", old, was[0])
			}
		case 6:
			cmp := was[0] + T(rng.IntN(2))
			if cmp == was[0] {
				mem[0] = src[0]
			}
			var old T
			if old, err = w.CompareAndSwap(ctx, cmp, src[0], target, at+from); err == nil && old != was[0] {
				err = fmt.Errorf("swapped %v, want %v", old, was[0])
			}
		case 7: // a Put and a Get are not ordered with updates
			got := make([]T, n)
			copy(mem, src)
			err = errors.Join(w.Flush(ctx, target), w.Put(ctx, src, target, at+from), w.Flush(ctx, target),
				w.Get(ctx, got, target, at+from), w.Flush(ctx, target), diff("put and got", got, src))
		}
		if err == nil && rng.IntN(20) == 0 {
			err = w.FlushAll(ctx)
			for _, k := range open {
				err = errors.Join(err, diff("result", k.got, k.want))
			}
			open = nil
		}
		if err != nil {
			return fmt.Errorf("step %d on rank %d: %w", step, target, err)
		}
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	for _, k := range open {
		if err := diff("result", k.got, k.want); err != nil {
			return err
		}
	}
	all := make([]T, p*stripe) // what the others have of the caller's memory
	if err := Alltoall(ctx, c, slices.Concat(model...), all); err != nil {
		return err
	}
	return diff("memory", w.Buf(), all)
}

// mappedVictimJob works on the memory of a rank that is killed.
func mappedVictimJob() error {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	w, err := Init(ctx)
	if err != nil {
		return err
	}
	c := w.Comm()
	win, err := WinAllocate[int64](ctx, c, 1<<18)
	if err != nil {
		return err
	}
	pids := make([]int, c.Size())
	if err := Allgather(ctx, c, []int{os.Getpid()}, pids); err != nil {
		return err
	}
	if c.Rank() == 1 {
		win.Buf()[1<<18-1] = 1
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		for atomic.LoadInt64(&win.Buf()[0]) < 100 { // others are at work
			runtime.Gosched()
		}
		return errors.Join(self.Kill(), Barrier(ctx, c))
	}
	buf := make([]int64, 1<<17)
	// Memory outlives the process, also when nothing of that is left.
	for left := 1000; left > 0 && err == nil; {
		if _, e := os.Stat(fmt.Sprintf("/proc/%d", pids[1])); e != nil {
			left--
		}
		_, err = win.FetchAndOp(ctx, 1, 1, 0, Sum)
		for _, e := range []error{win.Put(ctx, buf, 1, 1), win.Get(ctx, buf, 1, 1<<17), win.Flush(ctx, 1)} {
			if err == nil {
				err = e
			}
		}
	}
	if err != nil && !errors.Is(err, ErrProcFailed) {
		return err
	}
	fmt.Println("survived")
	return nil
}

// A rank that is killed takes nobody with it who works on its memory.
func TestWinMappedOfTheDead(t *testing.T) {
	sharing(t)
	out, errs := runJob(t, "mapped victim", 3, "WEFT_TRANSPORT=hybrid")
	for _, r := range []int{0, 2} {
		// On a busy machine it may say meanwhile that the other one does not answer.
		if errs[r] != nil || !strings.Contains(out[r], "survived\n") {
			t.Errorf("rank %d: %v, %q", r, errs[r], out[r])
		}
	}
}
