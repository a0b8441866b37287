// Sort sorts numbers that are spread over the ranks (sample sort). The ranks
// sort what they have, and agree, from samples of it, about numbers that divide
// all into parts of about the same length, one per rank. Each gets its part in
// pieces from all others and merges them.
//
//	weft run -n 4 ./mpi/examples/sort
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/examples/internal/job"
)

const numbers = 100_000 // in all

// mine returns the caller's share of the numbers. Who has which does not matter:
// they are the same for any number of ranks.
func mine(c *mpi.Comm) []uint64 {
	rng := rand.New(rand.NewPCG(1, 2))
	var own []uint64
	for i := range numbers {
		if x := rng.Uint64(); i%c.Size() == c.Rank() {
			own = append(own, x)
		}
	}
	return own
}

// sorted returns the caller's part of all numbers in order: all of it comes
// after that of the rank before.
func sorted(ctx context.Context, c *mpi.Comm, own []uint64) ([]uint64, error) {
	slices.Sort(own)
	n := c.Size()
	samples := make([]uint64, n)
	for i := range samples {
		samples[i] = own[i*len(own)/n]
	}
	all := make([]uint64, n*n)
	if err := mpi.Allgather(ctx, c, samples, all); err != nil {
		return nil, err
	}
	slices.Sort(all)
	pieces := make([][]uint64, n)
	for i := range n - 1 {
		cut, _ := slices.BinarySearch(own, all[(i+1)*n])
		pieces[i], own = own[:cut], own[cut:]
	}
	pieces[n-1] = own
	got, err := mpi.AlltoallSlices(ctx, c, pieces)
	if err != nil {
		return nil, err
	}
	part := slices.Concat(got...)
	slices.Sort(part)
	return part, nil
}

func run(ctx context.Context, c *mpi.Comm, out io.Writer) error {
	part, err := sorted(ctx, c, mine(c))
	if err != nil {
		return err
	}
	// Each part must follow that of the rank before.
	last := make([]uint64, 1)
	if err := mpi.Exscan(ctx, c, part[len(part)-1:], last, mpi.Max[uint64]); err != nil {
		return err
	}
	if c.Rank() > 0 && last[0] > part[0] {
		return errors.New("the parts overlap")
	}
	// What is in all places must not depend on how many ranks there are.
	first := make([]int, 1)
	if err := mpi.Exscan(ctx, c, []int{len(part)}, first, mpi.Sum[int]); err != nil {
		return err
	}
	check := make([]uint64, 1)
	for i, x := range part {
		check[0] += x * uint64(2*(first[0]+i)+1)
	}
	if err := mpi.Allreduce(ctx, c, check, check, mpi.Sum[uint64]); err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Fprintf(out, "%d numbers from %d on, checksum %x\n", numbers, part[0], check[0])
	}
	return nil
}

func main() { job.Main(run) }
