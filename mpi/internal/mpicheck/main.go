// Mpicheck is a program of n ranks that uses package mpi in many ways and
// verifies every result. Rank 0 prints what was checked; a rank that finds
// something wrong ends the job.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/weftstack/weft/mpi"
)

// timeout bounds a run.
const timeout = 2 * time.Minute

var parts = []struct {
	name string
	run  func(ctx context.Context, c *mpi.Comm) error
}{
	{"messages", messages}, {"wildcards", wildcards}, {"requests", requests},
	{"collectives", collectives}, {"reductions", reductions}, {"nonblocking", nonblocking},
	{"communicators", communicators}, {"intercommunicators", intercommunicators},
	{"topologies", topologies}, {"windows", windows}, {"atomics", atomics}, {"partitions", partitions},
	{"ports", ports}, {"spawning", spawning},
	{"files", files}, {"shared pointers", sharedPointers}, {"threads", threads},
}

// check performs all parts on duplicates of c, each followed by a barrier.
func check(ctx context.Context, c *mpi.Comm) error {
	for _, p := range parts {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if err := p.run(ctx, d); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := mpi.Barrier(ctx, d); err != nil {
			return fmt.Errorf("after %s: %w", p.name, err)
		}
		d.Free()
		if c.Rank() == 0 {
			fmt.Println("verified", p.name)
		}
	}
	return nil
}

func main() {
	ctx, stop := context.WithTimeout(context.Background(), timeout)
	defer stop()
	w, err := mpi.Init(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 1 && os.Args[1] == "child" {
		err = child(ctx, w, nil)
	} else {
		err = check(ctx, w.Comm())
	}
	if err != nil {
		w.Abort(1, err.Error())
		log.Fatal(err)
	}
	if err := w.Finalize(ctx); err != nil {
		log.Fatal(err)
	}
	if w.Rank() == 0 && len(os.Args) == 1 {
		fmt.Fprintf(os.Stdout, "%d ranks over %s: all verified\n", w.Size(), w.Transport())
	}
}
