package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weftstack/weft/internal/bench"
	"github.com/weftstack/weft/internal/cli"
)

// settings are the flags.
type settings struct {
	rounds int           // of each measurement
	time   time.Duration // of each measurement
	scale  float64       // of the amount of work of the experiments under loss
	only   string        // names of stacks, separated by commas
	seeds  int
	losses string
	rate   string
	delay  string
	doc    string // file to write into
	write  bool
	lo1500 bool
}

// measures reports whether what has that name is to be measured.
func (s *settings) measures(name string) bool {
	return s.only == "" || slices.Contains(strings.Split(s.only, ","), name)
}

// experiment is one thing to measure. run writes a section of the document.
type experiment struct {
	name, what string
	root       bool
	run        func(ctx context.Context, s *settings, t *tools, w io.Writer) error
}

func experiments() []experiment {
	return []experiment{
		{"compare", "bytes, messages and latency of all stacks, on loopback", false, runCompare},
		{"loss", "ping-pong and farm under loss", true, runLoss},
		{"bulk", "goodput over long paths with loss, against TCP", true, runBulk},
		{"fair", "two flows that share a line", true, runFair},
		{"scale", "costs as associations, streams, queue pairs and outstanding data grow", false, runScale},
	}
}

// How often and how long compare measures, and how long the others do, unless the flags
// say otherwise: see `weft perf compare`.
const (
	compareRounds = 11
	compareTime   = 800 * time.Millisecond
	otherTime     = 2 * time.Second
)

func main() {
	if role := os.Getenv(envRole); role != "" {
		if err := child(role); err != nil {
			fmt.Fprintln(os.Stderr, "peers:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// run is the program without its process.
func run(ctx context.Context, args []string) int {
	var s settings
	fs := flag.NewFlagSet("peers", flag.ContinueOnError)
	fs.IntVar(&s.rounds, "rounds", compareRounds, "`number` of rounds of compare")
	fs.DurationVar(&s.time, "time", 0, fmt.Sprintf("how long each measurement of compare, bulk, fair and scale takes (bulk and fair: ten times that; default %v, compare %v)", otherTime, compareTime))
	fs.Float64Var(&s.scale, "scale", 1, "`part` of the work of the experiments under loss to do")
	fs.StringVar(&s.only, "only", "", "measure these `stacks` only, separated by commas; fair: pairs of them")
	fs.IntVar(&s.seeds, "seeds", 5, "`number` of seeds of the experiments under loss")
	fs.StringVar(&s.losses, "losses", "0%,1%,2%", "loss `probabilities` of the experiment loss")
	fs.StringVar(&s.rate, "rate", "", "line `rate` (default 1gbit; bulk and fair 100mbit)")
	fs.StringVar(&s.delay, "delay", "25us", "one-way `delay` of the experiment loss")
	fs.BoolVar(&s.lo1500, "lo1500", os.Geteuid() == 0, "run compare in a network namespace whose loopback has an MTU of 1500 (root)")
	fs.BoolVar(&s.write, "write", false, "write the section of the document too")
	fs.StringVar(&s.doc, "doc", "", "the `document` (default docs/performance.md of this repository)")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "usage: peers [flags] EXPERIMENT\n\n")
		for _, e := range experiments() {
			root := ""
			if e.root {
				root = " (root)"
			}
			fmt.Fprintf(fs.Output(), "  %-10s %s%s\n", e.name, e.what, root)
		}
		fmt.Fprint(fs.Output(), "\n")
		fs.PrintDefaults()
	}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	name := fs.Arg(0)
	if name == "" {
		name = "compare"
	}
	for _, e := range experiments() {
		if e.name != name || fs.NArg() > 1 {
			continue
		}
		switch {
		case cli.Given(fs, "time"):
		case name == "compare":
			s.time = compareTime
		default:
			s.time = otherTime
		}
		if s.rounds < 1 || s.seeds < 1 || s.time <= 0 || !(s.scale > 0 && s.scale <= 100) {
			fmt.Fprintln(os.Stderr, "peers: -rounds, -seeds, -time and -scale must be positive")
			return 2
		}
		if e.root && os.Geteuid() != 0 {
			fmt.Fprintf(os.Stderr, "peers: experiment %s makes network namespaces and needs root\n", name)
			return 1
		}
		if err := perform(ctx, &s, e); err != nil {
			fmt.Fprintln(os.Stderr, "peers:", err)
			return 1
		}
		return 0
	}
	fmt.Fprintf(os.Stderr, "peers: no experiment %q\n", strings.Join(fs.Args(), " "))
	fs.Usage()
	return 2
}

// perform runs one experiment, prints its section, and writes it where asked.
func perform(ctx context.Context, s *settings, e experiment) error {
	t, err := newTools(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	var section bytes.Buffer
	if err := e.run(ctx, s, t, &section); err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	os.Stdout.Write(section.Bytes())
	if !s.write {
		return nil
	}
	if s.doc == "" {
		s.doc = filepath.Join(t.root, "docs", "performance.md")
	}
	return bench.WriteSection(s.doc, e.name, section.Bytes())
}
