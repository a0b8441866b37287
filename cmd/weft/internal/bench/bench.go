// Package bench is `weft bench`: the tests of the OSU micro-benchmarks for MPI, and a
// comparison with an installed MPI.
package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/launch"
	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/internal/units"
)

// Bounds of the options of `weft bench`.
const (
	maxBenchSize    = 1 << 30
	maxBenchIters   = 1 << 30
	maxBenchWindow  = 1 << 16
	maxBenchThreads = 1 << 10
	maxBenchParts   = 1 << 16
)

// options are the flags of `weft bench`.
type options struct {
	test         *test
	n            int
	min, max     int // message sizes; -1: of the test
	iters        int // 0: of the test
	warmup       int // -1: of the test
	full         bool
	check        bool
	window       int
	threads      int
	parts        int
	sync         string
	win          string
	transport    string
	bind         string
	json         bool
	svg          string
	names        []string // of tests, for compare
	initTook     time.Duration
	mpirun, mpcc string
}

// syncKinds are the ways of -s.
var syncKinds = []string{"flush", "flush_local", "lock", "lock_all", "fence", "pscw"}

// windowKinds are the windows of -w.
var windowKinds = []string{"allocate", "create", "dynamic"}

func newFlags(o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("weft bench", flag.ContinueOnError)
	fs.IntVar(&o.n, "n", 2, "number of `ranks` to start")
	o.min, o.max = -1, -1
	fs.Func("m", "message sizes in bytes: `MIN:MAX`, MAX or MIN:, each twice the previous one", o.setSizes)
	fs.IntVar(&o.iters, "i", 0, "`iterations` per size (default: as in the OSU benchmarks, fewer for long messages)")
	fs.IntVar(&o.warmup, "x", -1, "warm-up `iterations` per size (default: as in the OSU benchmarks)")
	fs.BoolVar(&o.full, "f", false, "print minimum, maximum and iterations of collectives")
	fs.BoolVar(&o.check, "c", false, "validate the received data after each size")
	fs.IntVar(&o.window, "W", 64, "`number` of outstanding messages or operations in bandwidth tests")
	fs.StringVar(&o.sync, "s", "flush", "synchronization of one-sided tests: `flush`, flush_local, lock, lock_all, fence or pscw")
	fs.StringVar(&o.win, "w", "allocate", "window of one-sided tests: `allocate`, create or dynamic")
	fs.IntVar(&o.threads, "t", 2, "`number` of goroutines per rank in latency_mt, of child processes per rank in latency_mp")
	fs.IntVar(&o.parts, "p", 8, "`partitions` of partitioned_latency; reduced to a divisor of the size where needed")
	fs.StringVar(&o.transport, "transport", "", "transport of messages: `hybrid` (SCTP and RDMA), sctp or tcp")
	fs.StringVar(&o.bind, "bind-to", "", "bind each rank to a `core` of its own, to a hwthread, or to none, as weft run -bind-to; compare applies it to the other MPI as well (default: none, and the default of the other MPI)")
	fs.BoolVar(&o.json, "json", false, "print the result as JSON")
	fs.StringVar(&o.svg, "svg", "", "write a plot of the result to an SVG `file`")
	fs.StringVar(&o.mpirun, "mpirun", "mpirun", "compare: launcher of the other MPI")
	fs.StringVar(&o.mpcc, "mpicc", "mpicc", "compare: compiler of the other MPI")
	fs.Usage = func() {
		w := fs.Output()
		fmt.Fprint(w, "usage: weft bench [flags] TEST\n       weft bench [flags] compare [TEST ...]\n\n"+
			"Bench runs the tests of the OSU micro-benchmarks and prints the same columns. It\n"+
			"starts the ranks itself; under a launcher such as weft run it is one of the ranks.\n"+
			"Compare also runs the tests on the MPI that mpicc and mpirun belong to, over TCP;\nif the ranks share memory, both over the network and through shared memory.\n\nTests:\n\n")
		line := " "
		for _, t := range tests() {
			if len(line)+1+len(t.name) > 78 {
				fmt.Fprintln(w, line)
				line = " "
			}
			line += " " + t.name
		}
		fmt.Fprint(w, line, "\n\nFlags may come before and after the test.\n\n")
		fs.PrintDefaults()
	}
	return fs
}

// setSizes reads the value of -m.
func (o *options) setSizes(s string) error {
	lo, hi, both := strings.Cut(s, ":")
	if !both {
		lo, hi = "", s
	}
	for _, v := range []struct {
		text string
		to   *int
	}{{lo, &o.min}, {hi, &o.max}} {
		if v.text == "" {
			continue
		}
		var n units.Bytes
		if err := n.Set(v.text); err != nil {
			return err
		}
		if n < 0 || n > maxBenchSize {
			return fmt.Errorf("want sizes of 0 to %v", units.Bytes(maxBenchSize))
		}
		*v.to = int(n)
	}
	if lo+hi == "" || o.max >= 0 && o.min > o.max {
		return errors.New("want MIN:MAX")
	}
	return nil
}

func Main(args []string) int {
	var o options
	fs := newFlags(&o)
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	var words []string
	for fs.NArg() > 0 { // flags may follow a test
		words = append(words, fs.Arg(0))
		if status, ok := cli.Start(fs, fs.Args()[1:]); !ok {
			return status
		}
	}
	if len(words) == 1 && words[0] == childWord {
		return childMain()
	}
	if err := o.use(words); err != nil {
		return cli.Refuse(fs.Name(), err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case o.test == nil:
		err = compare(ctx, &o)
	case os.Getenv(pmi.EnvFD) != "" || os.Getenv(pmi.EnvPort) != "":
		err = runRank(ctx, &o)
	default:
		return start(ctx, &o, args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "weft bench:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

// use takes the words of the command and finds what is wrong with the options.
func (o *options) use(words []string) error {
	if len(words) == 0 {
		return errors.New("give a test, or compare")
	}
	tests := words
	if words[0] == "compare" {
		if tests = words[1:]; len(tests) == 0 {
			tests = slices.Clone(comparedTests)
		}
	} else if len(words) > 1 {
		return errors.New("give one test")
	}
	for _, name := range tests {
		t := findTest(name)
		if t == nil {
			return fmt.Errorf("unknown test %q", name)
		}
		if err := t.fits(o.n); err != nil {
			return err
		}
		if words[0] != "compare" {
			o.test = t
		}
	}
	o.names = tests
	switch {
	case o.n < 1 || o.n > launch.MaxRanks:
		return fmt.Errorf("-n %d: want 1 to %d ranks", o.n, launch.MaxRanks)
	case o.iters < 0 || o.iters > maxBenchIters || o.warmup < -1 || o.warmup > maxBenchIters:
		return fmt.Errorf("-i %d -x %d: want up to %d", o.iters, o.warmup, maxBenchIters)
	case o.window < 1 || o.window > maxBenchWindow:
		return fmt.Errorf("-W %d: want 1 to %d", o.window, maxBenchWindow)
	case o.threads < 1 || o.threads > maxBenchThreads:
		return fmt.Errorf("-t %d: want 1 to %d", o.threads, maxBenchThreads)
	case o.parts < 1 || o.parts > maxBenchParts:
		return fmt.Errorf("-p %d: want 1 to %d", o.parts, maxBenchParts)
	case !slices.Contains(windowKinds, o.win):
		return fmt.Errorf("-w %q: want one of %v", o.win, windowKinds)
	case !slices.Contains(syncKinds, o.sync):
		return fmt.Errorf("-s %q: want one of %v", o.sync, syncKinds)
	case !slices.Contains([]string{"", "hybrid", "sctp", "tcp"}, o.transport):
		return fmt.Errorf("-transport %q: want hybrid, sctp or tcp", o.transport)
	case o.test != nil && o.test.text != nil && o.svg != "":
		return fmt.Errorf("-svg: %s has no sizes to plot", o.test.name)
	case o.test == nil && o.svg != "":
		return errors.New("-svg requires a single test")
	}
	return launch.CheckBind(o.bind)
}

// start starts this program again as the ranks of a job.
func start(ctx context.Context, o *options, args []string) int {
	cmd, err := command(ctx, o, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "weft bench:", err)
		return cli.ExitFail
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), cli.ExitFail)
	case err != nil:
		fmt.Fprintln(os.Stderr, "weft bench:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

// command is `weft run` of `weft bench` with the given arguments.
func command(ctx context.Context, o *options, args []string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	words := []string{"run", "-n", fmt.Sprint(o.n)}
	if o.transport != "" {
		words = append(words, "-transport", o.transport)
	}
	if o.bind != "" {
		words = append(words, "-bind-to", o.bind)
	}
	words = append(append(words, self, "bench"), args...)
	cmd := exec.CommandContext(ctx, self, words...)
	cmd.WaitDelay = 2 * process.KillGrace
	return cmd, nil
}
