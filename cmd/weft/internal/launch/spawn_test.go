package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi"
)

// spawnRoles are programs of several ranks that start others or connect to them.
var spawnRoles map[string]func(ctx context.Context, args []string) error

func init() {
	spawnRoles = map[string]func(context.Context, []string) error{
		"parent": parentRole, "child": childRole, "parent-missing": parentMissingRole, "parent-outlives": parentOutlivesRole,
		"parent-wait": parentWaitRole, "server": serverRole, "client": clientRole, "parent-many": parentManyRole,
		"bereft": bereftRole, "client-dies": clientDiesRole, "parent-hasty": parentHastyRole,
		"init-again": initAgainRole, "ways": waysRole, "site": siteRole,
	}
}

// spawnTransports are those that the tests use. Every process of the race
// detector takes a second to end.
func spawnTransports() []string {
	if testenv.Race {
		return []string{"hybrid"}
	}
	return []string{"hybrid", "sctp", "tcp"}
}

// within runs f as one rank of a job.
func within(ctx context.Context, f func(ctx context.Context, w *mpi.World) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	w, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	if err := f(ctx, w); err != nil {
		w.Abort(9, err.Error())
		return err
	}
	return w.Finalize(ctx)
}

// together checks a communicator, and windows, of two groups.
func together(ctx context.Context, c *mpi.Comm, high bool, want int) error {
	m, err := c.IntercommMerge(ctx, high)
	if err != nil {
		return err
	}
	sum := []int{m.Rank()}
	if err := mpi.Allreduce(ctx, m, sum, sum, mpi.Sum); err != nil {
		return err
	}
	if m.Size() != want || sum[0] != want*(want-1)/2 {
		return fmt.Errorf("%d ranks, sum %d", m.Size(), sum[0])
	}
	w, err := mpi.WinAllocate[int64](ctx, m, want)
	if err != nil {
		return err
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	for r := range want {
		if err := w.Put(ctx, []int64{int64(m.Rank())}, r, m.Rank()); err != nil {
			return err
		}
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	var x [1]int64
	next := (m.Rank() + 1) % want
	if err := w.Get(ctx, x[:], next, m.Rank()); err != nil {
		return err
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	for r, v := range w.Buf() {
		if v != int64(r) || x[0] != int64(m.Rank()) {
			return fmt.Errorf("window %v, got %d", w.Buf(), x[0])
		}
	}
	if err := w.Free(ctx); err != nil {
		return err
	}
	m.Free()
	return nil
}

func parentRole(ctx context.Context, args []string) error {
	return within(ctx, func(ctx context.Context, w *mpi.World) error {
		dir, err := filepath.EvalSymlinks(os.TempDir())
		if err != nil {
			return err
		}
		cmds := []mpi.Command{
			{Path: os.Args[0], Args: []string{"child", "0", "two words\n", ""}, N: 1},
			{Path: filepath.Base(os.Args[0]), Args: []string{"child", "1", "two words\n", dir}, N: 2,
				Info: mpi.Info{mpi.InfoWdir: dir, mpi.InfoPath: filepath.Dir(os.Args[0])}},
		}
		c, err := w.Comm().SpawnMultiple(ctx, cmds, 0)
		if err != nil {
			return err
		}
		if err := together(ctx, c, false, w.Size()+3); err != nil {
			return err
		}
		if err := c.Disconnect(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Printf("parents done, universe %d\n", w.UniverseSize(ctx))
		}
		return mpi.Barrier(ctx, w.Comm())
	})
}

func childRole(ctx context.Context, args []string) error {
	return within(ctx, func(ctx context.Context, w *mpi.World) error {
		if n := w.AppNum(ctx); strconv.Itoa(n) != args[0] || args[1] != "two words\n" || w.Size() != 3 {
			return fmt.Errorf("command %d, arguments %q, size %d", n, args, w.Size())
		}
		if args[2] != "" {
			if dir, err := os.Getwd(); err != nil || dir != args[2] {
				return fmt.Errorf("in %s, %w; want %s", dir, err, args[2])
			}
		}
		p := w.Parent()
		if n := w.UniverseSize(ctx); n < p.RemoteSize()+p.Size() {
			return fmt.Errorf("room for %d processes, where %d and %d run", n, p.RemoteSize(), p.Size())
		}
		if err := together(ctx, p, true, p.RemoteSize()+p.Size()); err != nil {
			return err
		}
		if err := p.Disconnect(ctx); err != nil {
			return err
		}
		fmt.Printf("child %d done\n", w.Rank())
		return nil
	})
}

func TestRunSpawns(t *testing.T) {
	for _, tr := range spawnTransports() {
		t.Run("transport="+tr, func(t *testing.T) {
			out, _, status := clitest.Weft(t, "", "run", "-n", "2", "-l", "-usize", "17", "-transport", tr, os.Args[0], "parent")
			if status != 0 {
				t.Errorf("status %d", status)
			}
			for _, want := range []string{"[0] parents done, universe 17\n", "[1:0] child 0 done\n", "[1:1] child 1 done\n", "[1:2] child 2 done\n"} {
				if strings.Count(out, want) != 1 {
					t.Errorf("output lacks %q", want)
				}
			}
		})
	}
}

// TestRunSpawnsBeyondUniverse starts more processes than MPI_UNIVERSE_SIZE says that there is room for:
// it is advice, and the children get a number that counts them.
func TestRunSpawnsBeyondUniverse(t *testing.T) {
	out, _, status := clitest.Weft(t, "", "run", "-n", "2", "-l", "-usize", "2", "-transport", "tcp", os.Args[0], "parent")
	if status != 0 || strings.Count(out, "[0] parents done, universe 2\n") != 1 || strings.Count(out, " done\n") != 3 {
		t.Errorf("status %d, output %q", status, out)
	}
}

// parentMissingRole spawns what is not there, and goes on.
func parentMissingRole(ctx context.Context, args []string) error {
	return within(ctx, func(ctx context.Context, w *mpi.World) error {
		cmds := []mpi.Command{{Path: os.Args[0], Args: []string{"alone"}, N: 1}, {Path: "no-such-program-anywhere", N: 2}}
		_, err := w.Comm().SpawnMultiple(ctx, cmds, 0)
		if !errors.Is(err, mpi.ErrSpawn) {
			return fmt.Errorf("spawned: %w", err)
		}
		if w.Rank() == 0 {
			fmt.Println(err)
		}
		for _, c := range []mpi.Command{
			{Path: os.Args[0], N: 1, Info: mpi.Info{mpi.InfoWdir: filepath.Join(os.Args[0], "nowhere")}},
			{Path: os.Args[0], N: 1, Info: mpi.Info{mpi.InfoHost: "elsewhere"}},
			{Path: os.Args[0], N: mpi.MaxSpawn + 1},
		} {
			if _, err := w.Comm().Spawn(ctx, c, 0); !errors.Is(err, mpi.ErrSpawn) {
				return fmt.Errorf("spawned %+v: %w", c, err)
			}
		}
		return mpi.Barrier(ctx, w.Comm())
	})
}

func TestRunSpawnsNothing(t *testing.T) {
	out, _, status := clitest.Weft(t, "", "run", "-n", "2", os.Args[0], "parent-missing")
	if status != 0 || !strings.Contains(out, "no-such-program-anywhere") || !strings.Contains(out, "not found") {
		t.Errorf("status %d, output %q", status, out)
	}
}

// parentWaitRole spawns a program that ends in a bad way.
func parentWaitRole(ctx context.Context, args []string) error {
	return within(ctx, func(ctx context.Context, w *mpi.World) error {
		c, err := w.Comm().Spawn(ctx, mpi.Command{Path: os.Args[0], Args: args, N: 2}, 0)
		if err != nil {
			return err
		}
		_, err = mpi.Recv(ctx, c, make([]int, 1), 0, 0)
		return err
	})
}

func TestRunEndsWithSpawned(t *testing.T) {
	for _, tt := range []struct {
		name, role, message string
		status              int
	}{
		{"never joins", "alone", "spawned rank 1:", cli.ExitFail},
		{"aborts", "abort", "spawned group 1: rank 1 aborted the job with code 42: out of luck", 42},
		{"fails", "exit", "spawned rank 1:1 (pid ", 3},
		{"killed", "die", "spawned rank 1:1 (pid ", 128 + 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "killed" && runtime.GOOS == "windows" {
				tt.status = 1
			}
			_, errs, status := clitest.Weft(t, "", "run", "-n", "2", os.Args[0], "parent-wait", tt.role, "1")
			if status != tt.status || !strings.Contains(errs, tt.message) {
				t.Errorf("status %d, message %q; want %d and %q", status, errs, tt.status, tt.message)
			}
		})
	}
}

// parentHastyRole spawns many processes of which the first end before the last
// are started.
func parentHastyRole(ctx context.Context, args []string) error {
	return within(ctx, func(ctx context.Context, w *mpi.World) error {
		_, err := w.Comm().Spawn(ctx, mpi.Command{Path: os.Args[0], Args: []string{"alone"}, N: 32}, 0)
		return err
	})
}

// TestRunSurvivesHastySpawned has a launcher that is starting processes see the
// end of them all: it must fail the job, no more.
func TestRunSurvivesHastySpawned(t *testing.T) {
	_, errs, status := clitest.Weft(t, "", "run", "-n", "1", os.Args[0], "parent-hasty")
	if status != cli.ExitFail || !strings.Contains(errs, "exited without joining the job") || strings.Contains(errs, "panic") {
		t.Errorf("status %d", status)
	}
}

// parentOutlivesRole is played by parents, and with an argument by their children,
// of which one dies.
func parentOutlivesRole(ctx context.Context, args []string) error {
	return within(ctx, func(ctx context.Context, w *mpi.World) error {
		c, high := w.Parent(), true
		if c == nil {
			var err error
			high = false
			if c, err = w.Comm().Spawn(ctx, mpi.Command{Path: os.Args[0], Args: []string{"parent-outlives"}, N: 2}, 0); err != nil {
				return err
			}
		}
		m, err := c.IntercommMerge(ctx, high)
		if err != nil {
			return err
		}
		if high && w.Rank() == 1 {
			for r := range 3 { // all have m
				if _, err := mpi.Recv(ctx, m, make([]int, 1), r, 1); err != nil {
					return err
				}
			}
			p, _ := os.FindProcess(os.Getpid())
			_ = p.Kill()
			select {}
		}
		if err := mpi.Send(ctx, m, []int{1}, 3, 1); err != nil {
			return err
		}
		// The links of SCTP do not show it: the launcher tells.
		_, err = mpi.Recv(ctx, m, make([]int, 1), 3, 0)
		var re *mpi.RankError
		if !errors.As(err, &re) || re.Rank != 1 || re.Other == high {
			return fmt.Errorf("received from the dead: %w", err)
		}
		s, err := m.Shrink(ctx)
		if err != nil {
			return err
		}
		sum := []int{1}
		if err := mpi.Allreduce(ctx, s, sum, sum, mpi.Sum); err != nil {
			return err
		}
		fmt.Printf("%d survivors\n", sum[0])
		return nil
	})
}

func TestRunSurvivesSpawned(t *testing.T) {
	for _, tr := range spawnTransports() {
		t.Run("transport="+tr, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("a kill looks like an exit with status 1 here")
			}
			out, errs, status := clitest.Weft(t, "", "run", "-n", "2", "-ft", "-transport", tr, os.Args[0], "parent-outlives")
			if status != 0 || strings.Count(out, "3 survivors\n") != 3 || !strings.Contains(errs, "spawned rank 1:1 (pid ") {
				t.Errorf("status %d", status)
			}
		})
	}
}

// parentManyRole spawns again and again.
func parentManyRole(ctx context.Context, args []string) error {
	return within(ctx, func(ctx context.Context, w *mpi.World) error {
		if p := w.Parent(); p != nil {
			return p.Disconnect(ctx)
		}
		for range 3 {
			c, err := w.Comm().Spawn(ctx, mpi.Command{Path: os.Args[0], Args: []string{"parent-many"}, N: 2}, 0)
			if err != nil {
				return err
			}
			if err := c.Disconnect(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestRunSpawnsAgain(t *testing.T) {
	if _, _, status := clitest.Weft(t, "", "run", "-n", "1", os.Args[0], "parent-many"); status != 0 {
		t.Errorf("status %d", status)
	}
	if _, _, status := clitest.Weft(t, "", "run", "-hosts", "localhost:2", "-n", "1", os.Args[0], "parent-many"); status != 0 {
		t.Errorf("with hosts: status %d", status)
	}
}
