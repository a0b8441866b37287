// Command benchcmp runs chosen benchmarks and compares them with the baselines
// under testdata, by benchstat.
//
//	go run ./internal/benchcmp            run all and compare
//	go run ./internal/benchcmp -only mpi  only those of packages with mpi in their path
//	go run ./internal/benchcmp -update    … and make the result the baseline
//	go run ./internal/benchcmp -max 20    fail if anything takes 20 % longer
//
// It fails when something allocates more than its baseline. Times depend on the
// machine and on what else it does: compare them with a baseline taken on the same
// one, quiet.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/weftstack/weft/internal/bench"
)

// benchstat is the program that compares, at a version known to work.
const benchstat = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"

// suite is what is run of a package.
type suite struct{ dir, pattern string }

// suites are the benchmarks worth watching.
var suites = []suite{
	{"sctp/wire", "^BenchmarkChecksum$|^BenchmarkParse$|^BenchmarkAppend$"},
	{"sctp/internal/core", "^BenchmarkBulk$|^BenchmarkPingPong$"},
	{"sctp/internal/core/tx", "^BenchmarkSendAck$/./rack=true|^BenchmarkSackGaps$"},
	{"sctp/internal/core/seq", "^BenchmarkTSNMap$"},
	{"sctp/internal/core/reasm", "^BenchmarkReassembly$/size=1452"},
	{"sctp", "^BenchmarkThroughput$/mtu=1500/size=(64|65536|1048576)$/mode=upcall|^BenchmarkPingPong$/./size=64$|^BenchmarkRoundTrip$"},
	{"verbs", "^BenchmarkTransfer$|^BenchmarkPingPong$|^BenchmarkRegionLookup$"},
	{"mpi", "^BenchmarkPingPong$/transport=(sctp|tcp)/size=(0|65536|1048576)$|^BenchmarkStream$/transport=sctp"},
}

// baseline returns the file that holds what to compare with.
func (s suite) baseline() string { return filepath.Join(s.dir, "testdata", "baseline.bench") }

// options are the flags.
type options struct {
	only      string
	count     int
	benchtime time.Duration
	update    bool
	max       float64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.StringVar(&o.only, "only", "", "run packages whose `path` contains this")
	flag.IntVar(&o.count, "count", 6, "`number` of times to run each")
	flag.DurationVar(&o.benchtime, "benchtime", 100*time.Millisecond, "how long to run each")
	flag.BoolVar(&o.update, "update", false, "make the result the baseline")
	flag.Float64Var(&o.max, "max", 0, "fail if the median time of a benchmark grew by this `percentage`; 0 never fails")
	flag.Parse()
	if flag.NArg() > 0 || o.count < 1 || o.benchtime <= 0 || o.max < 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "benchcmp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	dir, err := os.MkdirTemp("", "benchcmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	found := false
	var worse []error
	for i, s := range suites {
		if !strings.Contains(s.dir, o.only) {
			continue
		}
		found = true
		busy, own, start := bench.ReadSystemCPU(), bench.ChildrenCPUSeconds(), time.Now()
		now, err := s.run(ctx, o)
		if err != nil {
			return err
		}
		if others := busy.Others(bench.ChildrenCPUSeconds()-own, time.Since(start)); others > bench.Noisy {
			fmt.Printf("%s: other programs used %.1f processors meanwhile: times are too noisy to compare\n", s.dir, others)
		}
		old, err := os.ReadFile(s.baseline())
		switch {
		case errors.Is(err, os.ErrNotExist):
			fmt.Printf("%s: no baseline yet\n", s.dir)
		case err != nil:
			return err
		default:
			file := filepath.Join(dir, fmt.Sprintf("now%d", i))
			if err := os.WriteFile(file, now, 0o644); err != nil {
				return err
			}
			cmd := exec.CommandContext(ctx, "go", "run", benchstat, "-table", "goos,goarch,pkg", "baseline="+s.baseline(),
				"now="+file)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("benchstat: %w", err)
			}
			worse = append(worse, compare(old, now, o.max)...)
		}
		if o.update {
			if err := os.MkdirAll(filepath.Dir(s.baseline()), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(s.baseline(), now, 0o644); err != nil {
				return err
			}
		}
	}
	if !found {
		return fmt.Errorf("no package with %q in its path", o.only)
	}
	if o.update {
		return nil
	}
	return errors.Join(worse...)
}

// run runs a suite and returns its results in the format of benchmarks.
func (s suite) run(ctx context.Context, o *options) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", s.pattern, "-benchmem",
		"-count", fmt.Sprint(o.count), "-benchtime", o.benchtime.String(), "./"+s.dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, os.Stderr), &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", s.dir, err, errs.String())
	}
	return results(out.Bytes()), nil
}

// results keeps the lines that benchstat reads.
func results(out []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(out) {
		for _, prefix := range []string{"Benchmark", "goos: ", "goarch: ", "pkg: ", "cpu: "} {
			if bytes.HasPrefix(line, []byte(prefix)) {
				kept = append(kept, line...)
				break
			}
		}
	}
	return kept
}
