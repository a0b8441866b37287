package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/weftstack/weft/internal/bench"
	"golang.org/x/sys/unix"
)

// column is one measurement of the comparison.
type column struct {
	head  string
	load  load
	value func(outcome) float64
	less  bool // smaller is better
}

// columns share runs: those of the same load follow each other.
func columns(mpi bool) []column {
	gbps := func(o outcome) float64 { return o.gbps }
	mmsgs := func(o outcome) float64 { return o.mmsgs }
	cpu := func(o outcome) float64 { return o.cpu }
	p50 := func(o outcome) float64 { return o.p50 }
	p99 := func(o outcome) float64 { return o.p99 }
	big, small, trip := load{size: 64 << 10}, load{size: 64}, load{trip: true, size: 64}
	cols := []column{
		{"64 KiB, Gb/s", big, gbps, false}, {"64 KiB, CPU s/GB", big, cpu, true},
	}
	if mpi {
		huge, eight := load{size: 1 << 20}, load{trip: true, size: 8}
		return append(cols, column{"1 MiB, Gb/s", huge, gbps, false}, column{"1 MiB, CPU s/GB", huge, cpu, true},
			column{"64 B, M messages/s", small, mmsgs, false},
			column{"8 B round trip p50, µs", eight, p50, true}, column{"p99", eight, p99, true})
	}
	return append(cols, column{"64 B, M messages/s", small, mmsgs, false},
		column{"64 B round trip p50, µs", trip, p50, true}, column{"p99", trip, p99, true})
}

// runLimit is how long a run may take beyond its measurement; after that, or
// when it fails, it is tried again up to maxRetries times. Other stacks hang now
// and then, on a busy machine above all, which is not our matter.
const (
	runLimit   = 20 * time.Second
	maxRetries = 5
)

// measure measures a contender once, and tells how many processors others used
// meanwhile.
func (c *contender) measure(ctx context.Context, s *settings, t *tools, l load) (o outcome, others float64, err error) {
	for try := 0; ; try++ {
		limited, cancel := context.WithTimeout(ctx, runLimit+10*s.time)
		others, err = watch(func() (err error) {
			o, err = c.run(limited, s, t, l)
			return err
		})
		if limited.Err() != nil && err != nil {
			err = fmt.Errorf("%w (%w)", limited.Err(), err)
		}
		cancel()
		if err == nil || errors.Is(err, errMissing) || ctx.Err() != nil || try == maxRetries {
			return o, others, err
		}
		fmt.Fprintf(os.Stderr, "%s, %s of %d bytes, again: %v\n", c.name, l.word(), l.size, err)
	}
}

// maxFar is how often a run is made at most until processors are near each other.
const maxFar = 4

// runCompare measures all stacks in alternating rounds: what disturbs the
// machine for a while disturbs each of them alike.
func runCompare(ctx context.Context, s *settings, t *tools, w io.Writer) error {
	if s.lo1500 {
		if err := privateLoopback(1500); err != nil {
			return err
		}
	}
	samples := map[string][]bench.Sample{} // by contender and column
	missing := map[string]error{}
	runs, noisy := 0, 0
	var cores bench.CoreLatencies
	cores.Calibrate()
	for round := range s.rounds {
		for _, c := range contenders() {
			if missing[c.name] != nil || !s.measures(c.name) {
				continue
			}
			cols := columns(c.mpi)
			if samples[c.name] == nil {
				samples[c.name] = make([]bench.Sample, len(cols))
			}
			for i := 0; i < len(cols); {
				var o outcome
				var others float64
				err := cores.Run(maxFar, func() (_ bool, err error) {
					o, others, err = c.measure(ctx, s, t, cols[i].load)
					return false, err
				})
				if err != nil {
					if ctx.Err() != nil {
						return err
					}
					if !errors.Is(err, errMissing) {
						err = fmt.Errorf("%s of %d bytes: %w", cols[i].load.word(), cols[i].load.size, err)
					}
					missing[c.name] = err
					break
				}
				runs++
				if others > bench.Noisy {
					noisy++
				}
				l := cols[i].load
				for ; i < len(cols) && cols[i].load == l; i++ {
					samples[c.name][i] = append(samples[c.name][i], cols[i].value(o))
				}
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, s.rounds, c.name)
		}
	}
	fmt.Fprint(w, bench.Provenance(runs, noisy), "\n", cores.String(), "\n")
	where := "the loopback interface as it is"
	if s.lo1500 {
		where = "a loopback interface with an MTU of 1,500"
	}
	fmt.Fprintf(w, "Two processes on %s, %v each, %d alternating rounds: medians (smallest–largest). CPU counts both processes.\n", where, s.time, s.rounds)
	for _, mpi := range []bool{false, true} {
		writeTable(w, mpi, samples)
	}
	for _, c := range contenders() {
		if err := missing[c.name]; err != nil {
			fmt.Fprintf(w, "\nNot measured: %s: %v.\n", c.name, err)
		}
	}
	return nil
}

// writeTable writes the rows of the MPI libraries or of the others.
func writeTable(w io.Writer, mpi bool, samples map[string][]bench.Sample) {
	cols := columns(mpi)
	fmt.Fprint(w, "\n| stack |")
	for _, c := range cols {
		fmt.Fprintf(w, " %s |", c.head)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(cols)))
	for _, c := range contenders() {
		row := samples[c.name]
		if c.mpi != mpi || row == nil || len(row[0]) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s (%s) |", c.name, c.note)
		for _, s := range row {
			fmt.Fprintf(w, " %s |", s)
		}
		fmt.Fprintln(w)
	}
	ours := "weft-sctp"
	if mpi {
		ours = "weft-mpi"
	}
	fmt.Fprintf(w, "\n%s relative to each (above 1 is better for weft):\n\n| stack |", ours)
	for _, c := range cols {
		fmt.Fprintf(w, " %s |", c.head)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(cols)))
	for _, c := range contenders() {
		row := samples[c.name]
		if c.mpi != mpi || c.name == ours || row == nil || len(samples[ours]) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s |", c.name)
		for i, s := range row {
			ratio := samples[ours][i].Median() / s.Median()
			if cols[i].less {
				ratio = 1 / ratio
			}
			fmt.Fprintf(w, " %s |", bench.Digits(ratio))
		}
		fmt.Fprintln(w)
	}
}

// privateLoopback moves this process and its children into a network namespace
// whose loopback has the given MTU.
func privateLoopback(mtu int) error {
	// Namespaces belong to threads: children are started by this one, which
	// stays the main goroutine's.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a network namespace (try -lo1500=false): %w", err)
	}
	said, err := exec.Command("ip", "link", "set", "lo", "mtu", fmt.Sprint(mtu), "up").CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip link: %w: %s", err, said)
	}
	return nil
}
