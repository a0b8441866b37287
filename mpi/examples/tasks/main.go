// Tasks counts prime numbers with a farm: rank 0 hands out ranges of numbers,
// one at a time, to whoever has finished the one before, so that fast ranks do
// more. A worker's result is also its request for more work.
//
//	weft run -n 4 ./mpi/examples/tasks
package main

import (
	"context"
	"fmt"
	"io"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/examples/internal/job"
)

const (
	limit = 200_000 // primes below it are counted
	chunk = 1_000   // numbers of a task
)

// Tags of messages.
const (
	tagTask = iota // first number of a range
	tagStop        // no more tasks
	tagDone        // primes in the range; -1 asks for the first task
)

func primes(from, to int) (count int) {
	for n := max(from, 2); n < to; n++ {
		prime := true
		for d := 2; d*d <= n && prime; d++ {
			prime = n%d != 0
		}
		if prime {
			count++
		}
	}
	return count
}

// master hands out the tasks and returns the number of primes.
func master(ctx context.Context, c *mpi.Comm) (total int, err error) {
	next := 0
	for working := c.Size() - 1; working > 0; {
		done := make([]int, 1)
		st, err := mpi.Recv(ctx, c, done, mpi.AnySource, tagDone)
		if err != nil {
			return 0, err
		}
		total += max(done[0], 0)
		tag := tagTask
		if next >= limit {
			tag = tagStop
			working--
		}
		if err := mpi.Send(ctx, c, []int{next}, st.Source, tag); err != nil {
			return 0, err
		}
		next += chunk
	}
	for ; next < limit; next += chunk { // there are no workers
		total += primes(next, next+chunk)
	}
	return total, nil
}

func worker(ctx context.Context, c *mpi.Comm) error {
	done := []int{-1}
	for {
		if err := mpi.Send(ctx, c, done, 0, tagDone); err != nil {
			return err
		}
		task := make([]int, 1)
		st, err := mpi.Recv(ctx, c, task, 0, mpi.AnyTag)
		if err != nil || st.Tag == tagStop {
			return err
		}
		done[0] = primes(task[0], task[0]+chunk)
	}
}

func run(ctx context.Context, c *mpi.Comm, out io.Writer) error {
	if c.Rank() > 0 {
		return worker(ctx, c)
	}
	total, err := master(ctx, c)
	if err == nil {
		fmt.Fprintf(out, "%d primes below %d\n", total, limit)
	}
	return err
}

func main() { job.Main(run) }
