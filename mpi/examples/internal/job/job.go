// Package job is what every example does to become a rank of a job.
package job

import (
	"context"
	"io"
	"log"
	"os"

	"github.com/weftstack/weft/mpi"
)

// Main joins the job that the process was started for, or is one of its own,
// runs an example on all ranks, and leaves the job. If run fails the job ends.
func Main(run func(ctx context.Context, c *mpi.Comm, out io.Writer) error) {
	ctx := context.Background()
	w, err := mpi.Init(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, w.Comm(), os.Stdout); err != nil {
		w.Abort(1, err.Error())
		log.Fatal(err)
	}
	if err := w.Finalize(ctx); err != nil {
		log.Fatal(err)
	}
}
