package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/cmd/weft/internal/launch"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/mpi"
)

// localTag runs a test with ranks in this process and returns what it prints.
func localTag(t *testing.T, ranks int, o options, opts ...mpi.Option) string {
	t.Helper()
	var b bytes.Buffer
	err := mpi.RunLocal(t.Context(), ranks, func(ctx context.Context, w *mpi.World) error {
		return runIn(ctx, w, &o, &b)
	}, opts...)
	if err != nil {
		t.Fatalf("%s: %v", o.test.name, err)
	}
	return b.String()
}

// TestBenchEveryTest runs all tests on few bytes and checks the data.
func TestBenchEveryTest(t *testing.T) {
	t.Setenv(clitest.EnvRole, "weft") // of the children of latency_mp
	for _, test := range tests() {
		t.Run(test.name, func(t *testing.T) {
			o := options{test: test, initTook: time.Second, min: 4, max: 16, iters: 3, warmup: 1, full: true, check: true, window: 4, threads: 2, parts: 4, sync: "flush", json: true}
			for _, ranks := range []int{2, 3, 4} {
				if test.fits(ranks) != nil {
					continue
				}
				var res result
				if err := json.Unmarshal([]byte(localTag(t, ranks, o)), &res); err != nil {
					t.Fatal(err)
				}
				rows := 3
				if test.single {
					rows = 1
				}
				if res.Test != test.name || res.Ranks != ranks || len(res.Rows) != rows {
					t.Fatalf("result %+v", res)
				}
				for _, r := range res.Rows {
					if len(r.Values) != len(res.Columns) || r.Validation != passed || r.Iterations != 3 || r.Values[0] <= 0 {
						t.Errorf("row %+v", r)
					}
				}
			}
		})
	}
}

func TestBenchSynchronizations(t *testing.T) {
	for i, sync := range syncKinds {
		for k, name := range []string{"put_latency", "get_bw", "put_bibw", "fop_latency"} {
			o := options{test: findTest(name), min: 8, max: 8, iters: 2, warmup: 1, check: true, window: 3, sync: sync,
				win: windowKinds[(i+k)%len(windowKinds)]}
			for _, tr := range []string{mpi.TransportInproc, mpi.TransportHybrid} {
				if out := localTag(t, 2, o, mpi.WithTransport(tr)); !strings.Contains(out, passed) {
					t.Errorf("%s with %s over %s: %s", name, sync, tr, out)
				}
			}
		}
	}
}

// TestBenchFindsWrongData lets data arrive that is not what was sent.
func TestBenchFindsWrongData(t *testing.T) {
	test := *findTest("bcast")
	setup := test.setup
	test.setup = func(ctx context.Context, b *state, size int) (*testCase, error) {
		k, err := setup(ctx, b, size)
		k.check = func(context.Context) error {
			buf := make([]byte, size)
			fillPattern(buf, b.me)
			buf[size-1]++
			return checkPattern(buf, b.me)
		}
		return k, err
	}
	o := options{test: &test, min: 8, max: 8, iters: 1, check: true, sync: "flush"}
	err := mpi.RunLocal(t.Context(), 2, func(ctx context.Context, w *mpi.World) error { return runIn(ctx, w, &o, io.Discard) })
	if err == nil || !strings.Contains(err.Error(), "wrong data") {
		t.Errorf("error %v", err)
	}
}

// TestBenchPrintsColumns compares the form with that of the OSU benchmarks: a
// size in 10 columns, values in 20 with two decimals.
func TestBenchPrintsColumns(t *testing.T) {
	o := options{test: findTest("allreduce"), min: 1, max: 8, iters: 2, warmup: 0, full: true, sync: "flush"}
	lines := strings.Split(localTag(t, 3, o), "\n")
	want := []string{"# weft MPI Allreduce Latency Test (3 ranks, inproc)",
		fmt.Sprintf("%-10s%20s%20s%20s%20s", "# Size", "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations")}
	if !slices.Equal(lines[:2], want) || len(lines) != 5 {
		t.Errorf("lines %q", lines)
	}
	var b strings.Builder
	(&row{Size: 4, Values: []float64{1.234}, Iterations: 7}).print(&b, &options{})
	if got, want := b.String(), fmt.Sprintf("%-10s%20s\n", "4", "1.23"); got != want {
		t.Errorf("row %q, want %q", got, want)
	}
}

// byDefault is how messages travel if nothing is said.
var byDefault = map[bool]string{true: "hybrid, shared memory", false: "hybrid"}[runtime.GOOS == "linux"]

func TestBenchStartsItsRanks(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "x.svg")
	out, _, status := clitest.Weft(t, "", "bench", "latency", "-m", "1:4", "-i", "5", "-x", "1", "-c", "-json", "-svg", svg, "-transport", "tcp")
	var res result
	if err := json.Unmarshal([]byte(out), &res); err != nil || status != 0 || len(res.Rows) != 3 || res.Transport != "tcp" {
		t.Errorf("status %d, %v, result %+v", status, err, res)
	}
	text, err := os.ReadFile(svg)
	if err != nil || xml.Unmarshal(text, new(struct{})) != nil || strings.Count(string(text), "<circle") != 3 {
		t.Errorf("%v, drawing %s", err, text)
	}
	out, _, status = clitest.Weft(t, "", "run", "-n", "4", os.Args[0], "bench", "mbw_mr", "-m", "8:8", "-i", "2", "-x", "0")
	if status != 0 || !strings.Contains(out, "(4 ranks, "+byDefault+")") || !strings.Contains(out, "Messages/s") {
		t.Errorf("in a job: status %d", status)
	}
	if _, _, status := clitest.Weft(t, "", "run", "-n", "3", os.Args[0], "bench", "latency"); status == 0 {
		t.Error("latency ran with 3 ranks")
	}
}

// TestBenchStartup runs the tests of starting a job, as processes.
func TestBenchStartup(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"init", "-n", "3"}, `^# weft MPI Init Test \(3 ranks, ` + byDefault + `\)\nnprocs: 3, min: (\d+) ms, max: (\d+) ms, avg: (\d+) ms\n$`},
		{[]string{"osu_hello", "-n", "4", "-transport", "tcp"}, `^# weft MPI Hello World Test \(4 ranks, tcp\)\nThis is a test with 4 processes\n$`},
		{[]string{"hello", "-n", "1"}, `This is a test with 1 processes\n$`},
		{[]string{"latency_mp", "-t", "3", "-m", "8:8", "-i", "3", "-x", "0", "-c"},
			`Multi-process Latency Test \(2 ranks, ` + byDefault + `\)\n# Number of processes started by the sender: 3\n# Number of processes started by the receiver: 3\n# Size +Latency \(us\) +Validation\n8 +[0-9.]+ +Pass\n$`},
	} {
		out, errs, status := clitest.Weft(t, "", append([]string{"bench"}, tt.args...)...)
		if status != 0 || !regexp.MustCompile(tt.want).MatchString(out) {
			t.Errorf("%v: status %d\n%s%s", tt.args, status, out, errs)
		}
	}
	out, _, _ := clitest.Weft(t, "", "bench", "init", "-json")
	var res result
	if err := json.Unmarshal([]byte(out), &res); err != nil || len(res.Rows) != 1 {
		t.Fatalf("%v, %s", err, out)
	}
	if v := res.Rows[0].Values; v[0] <= 0 || v[0] > v[2] || v[2] > v[1] {
		t.Errorf("minimum, maximum and average %v", v)
	}
}

func TestBenchWrongUseExitsWithTwo(t *testing.T) {
	for _, args := range [][]string{
		{}, {"pigeon"}, {"latency", "bw"}, {"-m", "x", "bw"}, {"-m", "9:8", "bw"}, {"-m", "2GiB", "bw"}, {"-m", ":", "bw"}, {"-i", "-1", "bw"},
		{"-x", "-2", "bw"}, {"-W", "0", "bw"}, {"-s", "hope", "put_bw"}, {"-w", "open", "put_bw"}, {"-t", "0", "latency_mt"}, {"-t", "1025", "latency_mt"}, {"-p", "0", "bw"}, {"-p", "65537", "bw"}, {"-transport", "pigeon", "bw"}, {"-n", "3", "bw"}, {"-n", "1", "bcast"},
		{"-n", "3", "multi_lat"}, {"compare", "pigeon"}, {"init", "-svg", "x"}, {"compare", "-svg", "x"},
	} {
		clitest.WantMisused(t, "weft bench", append([]string{"bench"}, args...)...)
	}
}

func TestBenchSizes(t *testing.T) {
	for _, tt := range []struct {
		test, m string
		want    []int
	}{
		{"latency", "0:4", []int{0, 1, 2, 4}}, {"latency", "3:13", []int{3, 6, 12}}, {"latency", "4", []int{1, 2, 4}},
		{"allreduce", "1:16", []int{4, 8, 16}}, {"allreduce", "6:16", []int{8, 16}}, {"barrier", "1:16", []int{0}}, {"cas_latency", "1:2", []int{8}},
	} {
		o := options{min: -1, max: -1}
		if err := o.setSizes(tt.m); err != nil {
			t.Fatal(err)
		}
		if got := findTest(tt.test).sizes(&o); !slices.Equal(got, tt.want) {
			t.Errorf("%s -m %s: %v, want %v", tt.test, tt.m, got, tt.want)
		}
	}
	if test := findTest("osu_latency"); test == nil {
		t.Error("OSU's own names are unknown")
	}
}

func TestParseBench(t *testing.T) {
	got, err := parseOutput([]byte("1 2.5\n2 3\n"))
	if err != nil || got[1] != 2.5 || got[2] != 3 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "x y\n", "1\n"} {
		if _, err := parseOutput([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestBenchCompare runs on another MPI, if one is installed.
func TestBenchCompare(t *testing.T) {
	if _, _, status := clitest.Weft(t, "", "bench", "compare", "-mpicc", "no-such-compiler"); status != cli.ExitFail {
		t.Errorf("status %d without another MPI", status)
	}
	if _, _, status := clitest.Weft(t, "", "bench", "compare", "iallreduce"); status != cli.ExitFail {
		t.Errorf("status %d for a test without another form", status)
	}
	for _, tool := range []string{"mpicc", "mpirun"} {
		if _, err := exec.LookPath(tool); err != nil {
			testenv.Lacking(t, "there is no other MPI: %v", err)
		}
	}
	out, errs, status := clitest.Weft(t, "", "bench", "compare", "latency", "allreduce", "put_latency", "-json", "-m", "4:8", "-i", "3", "-x", "1")
	if strings.Contains(errs, "cannot find -l") {
		testenv.Lacking(t, "mpicc does not work: %s", errs)
	}
	if status != 0 {
		t.Fatalf("status %d", status)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	for _, name := range []string{"latency", "allreduce", "put_latency"} {
		var c comparedTest
		if err := dec.Decode(&c); err != nil {
			t.Fatal(err)
		}
		if c.Test != name || len(c.Rows) != 2 || c.Other == "" {
			t.Errorf("%s: %+v", name, c)
		}
		for _, r := range c.Rows {
			shared := r.Network > 0 && r.NetworkRatio > 0 && r.Memory > 0 && r.MemoryRatio > 0
			if r.Weft <= 0 || r.Other <= 0 || r.Ratio <= 0 || c.Shared != shared || shared != (runtime.GOOS == "linux") {
				t.Errorf("%s: row %+v", name, r)
			}
		}
	}
	if err := dec.Decode(new(comparedTest)); !errors.Is(err, io.EOF) {
		t.Errorf("more output: %v", err)
	}
}

func TestBenchBindsRanks(t *testing.T) {
	if _, errs, status := clitest.Weft(t, "", "bench", "-bind-to", "board", "latency"); status != cli.ExitUsage || !strings.Contains(errs, "want core") {
		t.Errorf("an unknown kind: status %d, %q", status, errs)
	}
	want := "unsupported"
	n := 2
	if runtime.GOOS == "linux" {
		n = min(runtime.NumCPU()+1, launch.MaxRanks)
		want = fmt.Sprintf("%d available for %d ranks", runtime.NumCPU(), n)
	}
	if _, errs, status := clitest.Weft(t, "", "bench", "-n", fmt.Sprint(n), "-bind-to", "hwthread", "hello"); status != cli.ExitFail || !strings.Contains(errs, want) {
		t.Errorf("too many ranks: status %d, %q", status, errs)
	}
}
