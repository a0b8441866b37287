package launch

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/mpi"
)

// waysRole has rank 1 leave in some way after all have met. The others go on without it,
// if they are to, and finish.
func waysRole(ctx context.Context, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	w, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	c := w.Comm()
	// The others may learn of the end of rank 1 before its part of the barrier.
	err = mpi.Barrier(ctx, c)
	if c.Rank() == 1 && err == nil {
		switch args[0] {
		case "panic":
			panic("odd")
		case "exit 3":
			os.Exit(3)
		case "exit 0":
			os.Exit(0)
		case "log.Fatal":
			log.Fatal("odd")
		case "return":
			return errors.New("odd")
		case "kill":
			p, _ := os.FindProcess(os.Getpid())
			p.Kill()
			select {}
		case "goexit":
			runtime.Goexit()
		case "abort":
			w.Abort(42, "odd")
			select {}
		case "exit 3 finalized":
			if err := w.Finalize(ctx); err != nil {
				return err
			}
			os.Exit(3)
		}
	}
	if args[0] != "exit 3 finalized" {
		for err == nil {
			err = mpi.Barrier(ctx, c)
		}
		if os.Getenv("WEFT_FT") != "1" {
			return err
		}
		_ = c.Revoke()
		if c, err = c.Shrink(ctx); err != nil {
			return err
		}
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	fmt.Println("finished with", c.Size())
	return nil
}

// Each way to die has a message and a status, without and with -ft: the others then go on,
// and the job has succeeded if they do.
func TestRunWaysToDie(t *testing.T) {
	for _, tt := range []struct {
		way, message   string
		status, withFT int
	}{
		{"panic", "exited with status 2", 2, 0},
		{"exit 3", "exited with status 3", 3, 0},
		{"exit 0", "exited without finalizing", 1, 0},
		{"log.Fatal", "exited with status 1", 1, 0},
		{"return", "exited with status 1", 1, 0},
		{"kill", "was killed by signal 9", 128 + 9, 0},
		{"abort", "rank 1 aborted the job with code 42: odd", 42, 42},
		{"exit 3 finalized", "exited with status 3", 3, 3},
	} {
		if runtime.GOOS == "windows" && tt.way == "kill" {
			tt.message, tt.status = "exited with status 1", 1
		}
		for _, ft := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/ft=%t", tt.way, ft), func(t *testing.T) {
				args, want := []string{"run", "-n", "3", os.Args[0], "ways", tt.way}, tt.status
				if ft {
					args, want = append([]string{"run", "-ft"}, args[1:]...), tt.withFT
				}
				out, errs, status := clitest.Weft(t, "", args...)
				if status != want {
					t.Errorf("status %d, want %d", status, want)
				}
				if !strings.Contains(errs, "rank 1") || !strings.Contains(errs, tt.message) {
					t.Errorf("message %q lacks %q", errs, tt.message)
				}
				if n := strings.Count(out, "finished with 2"); ft && tt.withFT == 0 && n != 2 {
					t.Errorf("%d ranks have gone on, want 2", n)
				}
			})
		}
	}
}

// A program goes on when its main goroutine ends by Goexit: the other goroutines still
// answer on its links. Only a time limit ends the job.
func TestRunEndsGoexitAtTimeout(t *testing.T) {
	t.Parallel() // it mostly waits
	if _, errs, status := clitest.Weft(t, "", "run", "-n", "2", "-timeout", "3s", os.Args[0], "ways", "goexit"); status != exitTimeout || !strings.Contains(errs, "did not end within 3s") {
		t.Errorf("status %d, message %q", status, errs)
	}
}
