package perf

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/testenv"
)

func TestPerftestColumns(t *testing.T) {
	const bw = "#bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]"
	const lat = "#bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec] 99% percentile[usec] 99.9% percentile[usec]"
	for _, tt := range []struct {
		args, columns string
		sizes         []int
		n             int // iterations
		values        int
	}{
		{"write -n 50", bw, []int{65536}, 50, 5},
		{"send -n 50 -q 3 -tcp", bw, []int{65536}, 150, 5},
		{"read -s 1000 -n 20 -t 4", bw, []int{1000}, 20, 5},
		{"atomic -n 20", bw, []int{8}, 20, 5},
		{"write -n 20 -b", bw, []int{65536}, 20, 5},
		{"send -n 300 -b -q 2 -t 8", bw, []int{65536}, 600, 5},
		{"write -n 10 -report_gbits", strings.ReplaceAll(bw, "MB", "Gb"), []int{65536}, 10, 5},
		{"send -s 8388608 -n 5", bw, []int{8 << 20}, 5, 5}, // receives share memory
		{"send -lat -n 20", lat, []int{2}, 20, 9},
		{"write -lat -n 20 -tcp -s 64", lat, []int{64}, 20, 9},
		{"read -lat -format perftest", lat, []int{2}, perftestIterations, 9},
		{"atomic -lat -n 20", lat, []int{8}, 20, 9},
		{"write -a -n 5", bw, []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10,
			128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20}, 5, 5},
	} {
		if testenv.Race && (slices.Max(tt.sizes) > 1<<20 || tt.n == perftestIterations) {
			continue // takes its time, and is like the others
		}
		t.Run(tt.args, func(t *testing.T) {
			out, errs, status := clitest.Weft(t, "", append([]string{"perf"}, strings.Fields(tt.args)...)...)
			if status != 0 {
				t.Fatalf("status %d: %s", status, errs)
			}
			var sizes []int
			columns := false
			for line := range strings.Lines(out) {
				f := strings.Fields(line)
				if strings.Join(f, " ") == tt.columns {
					columns = true
					continue
				}
				if !columns || strings.HasPrefix(line, "---") {
					continue
				}
				v := make([]float64, len(f))
				for i := range f {
					var err error
					if v[i], err = strconv.ParseFloat(f[i], 64); err != nil || v[i] < 0 {
						t.Fatalf("%q is no line of numbers", line)
					}
				}
				if len(v) != tt.values || int(v[1]) != tt.n {
					t.Fatalf("line %q, want %d values, of %d iterations", line, tt.values, tt.n)
				}
				sizes = append(sizes, int(v[0]))
				if tt.values == 9 && (v[2] > v[4] || v[4] > v[7] || v[7] > v[8] || v[8] > v[3]) {
					t.Errorf("times are out of order: %q", line)
				}
			}
			if !slices.Equal(sizes, tt.sizes) {
				t.Errorf("sizes %v, want %v:\n%s", sizes, tt.sizes, out)
			}
		})
	}
}

func TestPerftestDuration(t *testing.T) {
	for _, args := range [][]string{{"write", "-D", "1"}, {"send", "-lat", "-D", "1"}} {
		start := time.Now()
		out, errs, status := clitest.Weft(t, "", append([]string{"perf", "-json"}, args...)...)
		var rows []perftestRow
		if err := json.Unmarshal([]byte(out), &rows); err != nil || status != 0 || len(rows) != 1 {
			t.Fatalf("%q: status %d, %v, %s", args, status, err, errs)
		}
		r := rows[0]
		if r.Iterations < 1 || r.Duration < 0.99 || time.Since(start) < time.Second || (r.Latency != nil) != slices.Contains(args, "-lat") || r.Latency == nil && r.Average <= 0 {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

func TestPerftestSums(t *testing.T) {
	ms := time.Millisecond
	// Two operations at a time, of 10 ms; the last two are done sooner.
	s := perftestSamples{begun: []time.Duration{0, 0, 10 * ms, 10 * ms}, ended: []time.Duration{10 * ms, 10 * ms, 13 * ms, 14 * ms},
		took: 14 * ms, bytes: 4 * mebi}
	if got := s.shortest(); math.Abs(got-0.002) > 1e-9 {
		t.Errorf("the quickest run has %v s an operation, want 0.002", got)
	}
	o := options{spec: spec{Mode: "write", Size: mebi, Assocs: 1}, perftestOptions: perftestOptions{samples: &s}}
	if r := o.perftestRow(); r.Iterations != 4 || math.Abs(r.Peak-500) > 1e-6 || math.Abs(r.Average-4/0.014) > 1e-6 || math.Abs(r.MsgRate-4/0.014/1e6) > 1e-12 {
		t.Errorf("%+v", r)
	}
	var trips []time.Duration
	for i := range 1000 {
		trips = append(trips, time.Duration(2*(1000-i))*time.Microsecond)
	}
	l := newPerftestLatency(trips, true)
	if l.Min != 1 || l.Max != 1000 || l.Typical != 500 || l.Average != 500.5 || l.P99 != 990 || l.P999 != 999 || math.Abs(l.Stdev-288.675) > 0.01 {
		t.Errorf("%+v", l)
	}
	if l := newPerftestLatency(trips, false); l.Max != 2000 {
		t.Errorf("%+v", l)
	}
	if *newPerftestLatency(nil, true) != (perftestLatency{}) {
		t.Error("no samples, but times")
	}
}
