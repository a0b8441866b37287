//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/mpi"
)

func init() { spawnRoles["stopped"] = stoppedRole }

// stoppedRole has rank 1 stop after all have met. Without fault tolerance rank 0 lets it go
// on after the time given; with it the others finish.
func stoppedRole(ctx context.Context, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	pause, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	w, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	c := w.Comm()
	pid := []int{os.Getpid()}
	if err := mpi.Bcast(ctx, c, pid, 1); err != nil {
		return err
	}
	if c.Rank() == 1 {
		if err := syscall.Kill(pid[0], syscall.SIGSTOP); err != nil {
			return err
		}
	}
	if pause > 0 {
		if c.Rank() == 0 {
			time.Sleep(pause)
			if err := syscall.Kill(pid[0], syscall.SIGCONT); err != nil {
				return err
			}
		}
		if err := mpi.Barrier(ctx, c); err != nil {
			return err
		}
		fmt.Println("all are here")
		return w.Finalize(ctx)
	}
	for err == nil {
		err = mpi.Barrier(ctx, c)
	}
	if c.Rank() == 1 {
		return errors.New("the stopped rank goes on")
	}
	_ = c.Revoke()
	if c, err = c.Shrink(ctx); err != nil {
		return err
	}
	fmt.Println("finished with", c.Size())
	return w.Finalize(ctx)
}

// A rank that is stopped for longer than it takes to call it silent is waited for. The job
// names the silent rank once, and once more when that answers again.
func TestRunWaitsForAStoppedRank(t *testing.T) {
	for _, transport := range []string{"hybrid", "sctp", "tcp"} {
		t.Run("transport="+transport, func(t *testing.T) {
			t.Parallel() // it mostly waits
			out, errs, status := clitest.Weft(t, "", "run", "-n", "3", "-transport", transport, os.Args[0], "stopped", "12s")
			if status != 0 || strings.Count(out, "all are here") != 3 {
				t.Errorf("status %d, output %q; want 0 and three ranks", status, out)
			}
			if transport == "tcp" {
				return // the system of the stopped rank answers for it
			}
			for _, want := range []string{"does not answer rank ", "answers rank "} {
				if !strings.Contains(errs, "weft run: rank 1 (pid ") || !strings.Contains(errs, want) {
					t.Errorf("said %q, want a line of rank 1 with %q", errs, want)
				}
			}
		})
	}
}

// A rank that never goes on does not keep a fault tolerant job from ending.
func TestRunEndsWithoutAStoppedRank(t *testing.T) {
	t.Parallel() // it mostly waits
	out, errs, status := clitest.Weft(t, "", "run", "-ft", "-n", "3", os.Args[0], "stopped", "0s")
	if status != 0 || strings.Count(out, "finished with 2") != 2 {
		t.Errorf("status %d, output %q; want 0 and two ranks", status, out)
	}
	if !strings.Contains(errs, "weft run: killing rank 1 (pid ") || !strings.Contains(errs, "): rank ") {
		t.Errorf("said %q, want that rank 1 is killed", errs)
	}
}
