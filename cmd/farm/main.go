package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/internal/units"
	"github.com/weftstack/weft/mpi"
)

// Bounds of the options.
const (
	maxTask        = 1 << 30
	maxTasks       = 100_000_000
	maxTags        = 10_000
	maxFanout      = 10_000
	maxOutstanding = 10_000
)

// options are the flags, the same on every rank.
type options struct {
	input       string
	task        units.Bytes
	tasks       int
	seed        uint64
	tags        int
	fanout      int
	outstanding int
	table       string
	json        bool
	pause       time.Duration
	ft          bool
}

func newFlags(o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("farm", flag.ContinueOnError)
	fs.StringVar(&o.input, "input", "", "`file` to split into tasks")
	o.task = 30 << 10
	fs.Var(&o.task, "task", "`size` of a task")
	fs.IntVar(&o.tasks, "tasks", 0, "without -input: `number` of synthetic tasks")
	fs.Uint64Var(&o.seed, "seed", 1, "seed of the synthetic tasks")
	fs.IntVar(&o.tags, "tags", 10, "`number` of task types, each a message tag")
	fs.IntVar(&o.fanout, "fanout", 1, "`number` of tasks per request")
	fs.IntVar(&o.outstanding, "outstanding", 10, "`number` of requests that each worker keeps outstanding")
	fs.StringVar(&o.table, "table", "", "write the table of digests and the histogram to a `file` (- for standard output)")
	fs.DurationVar(&o.pause, "pause", 0, "extra `time` per task, to simulate work")
	fs.BoolVar(&o.ft, "ft", os.Getenv("WEFT_FT") == "1", "continue when ranks fail, as under weft run -ft")
	fs.BoolVar(&o.json, "json", false, "print the result as JSON")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: weft run -n RANKS farm [flags]

Farm splits a file (or synthetic data) into tasks. Rank 0 hands them to the other
ranks, which compute the SHA-256 digest and the byte histogram of each, and checks
the result.

`)
		fs.PrintDefaults()
	}
	return fs
}

// check finds what the flag package cannot.
func (o *options) check(args int) error {
	within := func(name string, v, low, high int) error {
		if v < low || v > high {
			return fmt.Errorf("-%s %d: want %d to %d", name, v, low, high)
		}
		return nil
	}
	switch {
	case args > 0:
		return errors.New("unexpected arguments")
	case o.input == "" && o.tasks == 0:
		return errors.New("give -input FILE or -tasks N")
	case o.input != "" && o.tasks != 0:
		return errors.New("-input and -tasks are mutually exclusive")
	case o.pause < 0:
		return fmt.Errorf("-pause %v is negative", o.pause)
	case o.task < 1 || o.task > maxTask:
		return fmt.Errorf("-task %v: want 1 to %v", o.task, units.Bytes(maxTask))
	}
	return errors.Join(
		within("tasks", o.tasks, 0, maxTasks),
		within("tags", o.tags, 1, maxTags),
		within("fanout", o.fanout, 1, maxFanout),
		within("outstanding", o.outstanding, 1, maxOutstanding),
	)
}

func main() {
	// Help, or what is wrong with a flag, is the same on every rank: one says it.
	help, say := io.Writer(os.Stdout), io.Writer(os.Stderr)
	if r := os.Getenv(pmi.EnvRank); r != "" && r != "0" {
		help, say = io.Discard, io.Discard
	}
	var o options
	fs := newFlags(&o)
	err := cli.Parse(fs, os.Args[1:], help)
	if err == nil {
		err = o.check(fs.NArg())
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		cli.Misused(say, "farm", err)
		os.Exit(2)
	}
	if err := run(context.Background(), &o); err != nil {
		fmt.Fprintln(os.Stderr, "farm:", err)
		os.Exit(1)
	}
}

// run is one rank's part of the job.
func run(ctx context.Context, o *options) error {
	var opts []mpi.Option
	if o.ft {
		opts = append(opts, mpi.WithFaultTolerance())
	}
	w, err := mpi.Init(ctx, opts...)
	if err != nil {
		return err
	}
	if o.ft {
		return runTolerant(ctx, w, o)
	}
	if w.Comm().Rank() != 0 {
		if err := work(ctx, w.Comm(), o); err != nil {
			return err
		}
		return w.Finalize(ctx)
	}
	res, err := lead(ctx, w.Comm(), o)
	if err != nil {
		// The workers wait for tasks: end them too.
		w.Abort(1, err.Error())
		return err
	}
	return conclude(ctx, w, o, res)
}

// conclude reports the result and ends the part of rank 0.
func conclude(ctx context.Context, w *mpi.World, o *options, res *result) error {
	if err := report(os.Stdout, o, res); err != nil {
		return err
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	if !res.verified {
		return errors.New("the collected digests differ from those that rank 0 computed")
	}
	return nil
}
