package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/mpi"
)

// startupTests are the tests of starting a job.
func startupTests() []*test {
	once := test{single: true, alone: true, iters: [2]int{1, 1}}
	start, hello := once, once
	start.name, start.title, start.columns = "init", "MPI Init Test", []string{"Min (ms)", "Max (ms)", "Avg (ms)"}
	start.setup = initTest
	start.text = func(r *result) string {
		v := r.Rows[0].Values
		return fmt.Sprintf("nprocs: %d, min: %d ms, max: %d ms, avg: %d ms", r.Ranks, int(v[0]), int(v[1]), int(v[2]))
	}
	hello.name, hello.title, hello.columns = "hello", "MPI Hello World Test", []string{"Processes"}
	hello.setup = helloTest
	hello.text = func(r *result) string {
		return fmt.Sprintf("This is a test with %d processes", int(r.Rows[0].Values[0]))
	}
	return []*test{&start, &hello}
}

// initTest tells how long mpi.Init took on the ranks.
func initTest(_ context.Context, b *state, _ int) (*testCase, error) {
	return &testCase{
		run: func(ctx context.Context, _, _ int) ([]float64, error) {
			ms := float64(b.o.initTook) / float64(time.Millisecond)
			all := make([]float64, b.size)
			if err := mpi.Allgather(ctx, b.c, []float64{ms}, all); err != nil {
				return nil, err
			}
			v := []float64{ms, ms, 0}
			for _, x := range all {
				v[0], v[1], v[2] = min(v[0], x), max(v[1], x), v[2]+x/float64(b.size)
			}
			return v, nil
		},
		check: func(context.Context) error {
			if b.o.initTook <= 0 {
				return errors.New("the time of Init was not recorded")
			}
			return nil
		},
	}, nil
}

// helloTest counts the ranks: each sends its number.
func helloTest(_ context.Context, b *state, _ int) (*testCase, error) {
	all := make([]int, b.size)
	run := func(ctx context.Context, _, _ int) ([]float64, error) {
		clear(all)
		return []float64{float64(b.size)}, mpi.Allgather(ctx, b.c, []int{b.me + 1}, all)
	}
	return &testCase{run: run, check: func(ctx context.Context) error {
		if _, err := run(ctx, 0, 0); err != nil {
			return err
		}
		for r, v := range all {
			if v != r+1 {
				return fmt.Errorf("message of rank %d names rank %d", r, v-1)
			}
		}
		return nil
	}}, nil
}

// childWord is the word that starts a child of latency_mp: it does nothing until
// its standard input ends.
const childWord = "child"

func childMain() int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	return cli.ExitOK
}

// processesTest is latency between ranks that have started other processes,
// which is no business of theirs.
func processesTest(ctx context.Context, b *state, size int) (*testCase, error) {
	if b.children == nil {
		if err := b.startChildren(); err != nil {
			return nil, err
		}
	}
	return latency(ctx, b, size)
}

// startChildren starts processes that live until stopChildren.
func (b *state) startChildren() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for range b.o.threads {
		cmd := exec.Command(self, "bench", childWord)
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return fmt.Errorf("starting a process: %w", err)
		}
		b.children = append(b.children, child{cmd, in})
	}
	return nil
}

// child is a process of latency_mp.
type child struct {
	cmd *exec.Cmd
	in  io.Closer
}

func (b *state) stopChildren() error {
	var errs []error
	for _, c := range b.children {
		errs = append(errs, c.in.Close(), c.cmd.Wait())
	}
	b.children = nil
	return errors.Join(errs...)
}
