package perf

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/weftstack/weft/cmd/weft/internal/terminal"
	"github.com/weftstack/weft/internal/bench"
)

// comparison is one cell of the matrix of `weft perf compare`.
type comparison struct {
	Name string
	spec spec
	base []string // names of the cells to divide by
}

// matrix lists what compare measures. Cells that belong together follow each
// other, so that what disturbs the machine disturbs them alike.
func matrix(o *options) []comparison {
	load := func(mode string, size, mtu int, gso bool) spec {
		return spec{Mode: mode, Size: size, Streams: 1, Assocs: 1, MTU: mtu, GSO: gso, Window: o.Window}
	}
	trip := func(mode string, size int, poll time.Duration) spec {
		return spec{Mode: mode, Size: size, Streams: 1, Assocs: 1, MTU: 1500, Latency: true, BusyPoll: poll, Window: 4}
	}
	zero := func(s spec) spec {
		s.ZeroSum = true
		return s
	}
	byRef := func(s spec) spec {
		s.ZeroCopy = true
		return s
	}
	shared := func(s spec) spec {
		s.Shared = true
		return s
	}
	const big, huge = 64 << 10, 1 << 20
	const spin = time.Millisecond
	hugeMPI := load("mpi", huge, 1500, true)
	hugeMPI.Window = min(hugeMPI.Window, fewMessages)
	return []comparison{
		{"udp 1500", load("udp", big, 1500, false), nil},
		{"udp 1500 gso", load("udp", big, 1500, true), nil},
		{"tcp 1500 64K", load("tcp", big, 1500, true), nil},
		{"sctp 1500 64K", load("sctp", big, 1500, true), []string{"udp 1500 gso", "tcp 1500 64K"}},
		{"sctp zero 64K", zero(load("sctp", big, 1500, true)), []string{"sctp 1500 64K", "tcp 1500 64K"}},
		{"sctp ref 64K", byRef(load("sctp", big, 1500, true)), []string{"sctp 1500 64K", "udp 1500 gso", "tcp 1500 64K"}},
		{"sctp 1500 1M", load("sctp", huge, 1500, true), []string{"udp 1500 gso", "tcp 1500 64K"}},
		{"send 1500 1M", load("send", huge, 1500, true), []string{"sctp 1500 1M"}},
		{"write 1500 1M", load("write", huge, 1500, true), []string{"sctp 1500 1M"}},
		{"read 1500 1M", load("read", huge, 1500, true), []string{"sctp 1500 1M"}},
		{"mpi 1500 1M", hugeMPI, []string{"sctp 1500 1M"}},
		{"udp auto", load("udp", big, 0, false), nil},
		{"tcp auto 64K", load("tcp", big, 0, true), nil},
		{"sctp auto 64K", load("sctp", big, 0, true), []string{"udp auto", "tcp auto 64K"}},
		{"sctp auto ref", byRef(load("sctp", big, 0, true)), []string{"sctp auto 64K", "tcp auto 64K"}},
		{"tcp 1500 64", load("tcp", 64, 1500, true), nil},
		{"sctp 1500 64", load("sctp", 64, 1500, true), []string{"tcp 1500 64"}},
		{"mpi 1500 8", load("mpi", 8, 1500, true), nil},
		{"mpi shared 1M", shared(hugeMPI), []string{"mpi 1500 1M", "tcp auto 64K"}},
		{"udp trip 64", trip("udp", 64, 0), nil},
		{"tcp trip 64", trip("tcp", 64, 0), nil},
		{"sctp trip 64", trip("sctp", 64, 0), []string{"udp trip 64", "tcp trip 64"}},
		{"sctp park 64", trip("sctp", 64, -1), []string{"udp trip 64"}},
		{"udp spin 64", trip("udp", 64, spin), nil},
		{"sctp spin 64", trip("sctp", 64, spin), []string{"udp spin 64"}},
		{"sctp spin 2", trip("sctp", 2, spin), nil},
		{"write spin 2", trip("write", 2, spin), []string{"sctp spin 2"}},
		{"mpi spin 8", trip("mpi", 8, spin), []string{"udp spin 64"}},
		{"mpi shared 8", shared(trip("mpi", 8, spin)), []string{"mpi spin 8"}},
	}
}

// fewMessages is how many long messages of MPI are under way at most, each of which needs
// memory of its own. The modes beside it receive into the memory of one message again and
// again: where that of 16 does not fit into a cache, sctp carries a sixth less with it.
const fewMessages = 4

// A run of compare is short, and there are many: where processors move, each way that
// they lie lasts for a second or so, and of few runs the median is one of them by chance.
const (
	compareTime   = 800 * time.Millisecond
	compareRounds = 11
)

// noisy is how many processors others may use before a run does not count.
const noisy = bench.Noisy

// maxRetries is how often a run is tried again that was noisy, or on processors far
// from each other.
const maxRetries = 2

// comparedRow is the outcome of one cell, as -json prints it.
type comparedRow struct {
	Name   string             `json:"name"`
	Median result             `json:"median"`
	Min    float64            `json:"min"`
	Max    float64            `json:"max"`
	Unit   string             `json:"unit"` // Gb/s, messages/s or µs (p50 of a round trip)
	Ratios map[string]float64 `json:"ratios"`
	Noisy  int                `json:"noisy_runs"`
}

// value is what a cell is judged by: rate for loads, time for round trips.
func (r *result) value() (float64, string) {
	switch {
	case r.Latency != nil:
		return r.Latency.P50, "µs"
	case r.Size < 1024:
		return r.MsgsPerS / 1e6, "M msg/s"
	}
	return r.Gbps, "Gb/s"
}

// compare runs the matrix several times over and prints medians and ratios.
func compare(ctx context.Context, o *options) error {
	cells := matrix(o)
	results := make(map[string][]*result)
	loud := make(map[string]int)
	var cores bench.CoreLatencies
	cores.Calibrate()
	bar := progressbar.NewOptions(len(cells)*o.rounds, progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetVisibility(terminal.Is(os.Stderr)), progressbar.OptionSetDescription("perf"),
		progressbar.OptionClearOnFinish())
	for range o.rounds {
		for i := range cells {
			c := &cells[i]
			bar.Describe(fmt.Sprintf("%-14s", c.Name))
			var res *result
			err := cores.Run(1+maxRetries, func() (bool, error) {
				var err error
				if res, err = cell(ctx, o, c); err != nil {
					return false, err
				}
				if res.OtherCPU > noisy {
					loud[c.Name]++
				}
				return res.OtherCPU > noisy, nil
			})
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			results[c.Name] = append(results[c.Name], res)
			bar.Add(1)
		}
	}
	bar.Finish()
	rows := make([]comparedRow, len(cells))
	medians := make(map[string]float64)
	for i, c := range cells {
		rs := results[c.Name]
		slices.SortFunc(rs, func(a, b *result) int {
			x, _ := a.value()
			y, _ := b.value()
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		row := comparedRow{Name: c.Name, Median: *rs[len(rs)/2], Ratios: map[string]float64{}, Noisy: loud[c.Name]}
		medians[c.Name], row.Unit = row.Median.value()
		row.Min, _ = rs[0].value()
		row.Max, _ = rs[len(rs)-1].value()
		for _, b := range c.base {
			if medians[b] > 0 { // or too little time
				row.Ratios[b] = medians[c.Name] / medians[b]
			}
		}
		rows[i] = row
	}
	if o.json {
		return json.NewEncoder(os.Stdout).Encode(rows)
	}
	printComparison(cells, rows)
	if s := cores.String(); s != "" {
		fmt.Println(s)
	}
	return nil
}

// cell measures one cell once.
func cell(ctx context.Context, o *options, c *comparison) (*result, error) {
	one := *o
	one.spec = c.spec
	one.quiet, one.json, one.cpuprofile = true, false, "" // that is of this process
	if c.spec.Mode == "mpi" {
		return mpiRun(ctx, &one)
	}
	return measure(ctx, &one)
}

func printComparison(cells []comparison, rows []comparedRow) {
	fmt.Printf("%-14s %9s %-8s %19s %9s %10s %8s  %s\n", "what", "median", "", "min – max", "cpu_s/GB", "allocs/msg",
		"retrans", "ratios")
	quiet := true
	for i, r := range rows {
		v, unit := r.Median.value()
		fmt.Printf("%-14s %9.2f %-8s %8.2f – %8.2f %9.3f %10.3f %8d ", r.Name, v, unit, r.Min, r.Max, r.Median.CPUPerGB,
			r.Median.AllocsPerMsg, r.Median.Retransmits)
		for _, b := range cells[i].base {
			fmt.Printf(" %.2f× %s", r.Ratios[b], b)
		}
		if r.Noisy > 0 {
			fmt.Printf(" (%d noisy)", r.Noisy)
			quiet = false
		}
		fmt.Println()
	}
	if !quiet {
		fmt.Println("Other programs used more than a quarter of a processor during the runs marked noisy: repeat on a quiet machine.")
	}
}
