package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/mpi"
)

// benchTest is one benchmark.
type benchTest struct {
	name, title string
	columns     []string // after the size
	more        []string // with -f
	even        bool     // wants an even number of ranks
	exact       int      // wants so many ranks; 0: any from 2
	min, max    int      // default sizes
	iters       [2]int   // default iterations of short and long messages
	warmup      [2]int
	single      bool // of one size only
	alone       bool // one rank is enough
	// text is printed instead of a table, if it is not nil, and head above one.
	text func(r *benchResult) string
	head func(o *benchOptions) string
	// setup prepares a size. One-sided tests and collectives have buffers
	// that all iterations use.
	setup func(ctx context.Context, b *benchState, size int) (*benchCase, error)
}

// benchCase is a test at one size.
type benchCase struct {
	// run does so many iterations, all ranks at the same time, and returns
	// what this rank measured: the values of the columns.
	run func(ctx context.Context, warmup, iters int) ([]float64, error)
	// check does it once more with known data and compares.
	check func(ctx context.Context) error
	done  func(ctx context.Context) error // may be nil
}

// benchState is what a rank's test works with.
type benchState struct {
	o    *benchOptions
	c    *mpi.Comm
	me   int
	size int // ranks

	children []child // of latency_mp
}

// benchLarge is the length from which messages count as long, as with OSU.
const benchLarge = 8192

func (t *benchTest) fits(ranks int) error {
	switch {
	case t.exact > 0 && ranks != t.exact:
		return fmt.Errorf("%s wants %d ranks", t.name, t.exact)
	case t.even && ranks%2 != 0:
		return fmt.Errorf("%s wants an even number of ranks", t.name)
	case ranks < 2 && !t.alone:
		return fmt.Errorf("%s wants at least 2 ranks", t.name)
	}
	return nil
}

func benchTests() []*benchTest {
	return slices.Concat(benchStartup(), benchPt2pt(), benchOneSided(), benchCollectives())
}

func findBench(name string) *benchTest {
	for _, t := range benchTests() {
		if t.name == strings.TrimPrefix(name, "osu_") {
			return t
		}
	}
	return nil
}

// sizes lists the message sizes to measure.
func (t *benchTest) sizes(o *benchOptions) []int {
	lo, hi := t.min, t.max
	if t.single {
		return []int{t.max}
	}
	if o.min >= 0 {
		lo = o.min
		if t.min > 1 { // reductions have whole elements
			lo = max((o.min+t.min-1)/t.min, 1) * t.min
		}
	}
	if o.max >= 0 {
		hi = o.max
	}
	var out []int
	for s := lo; s <= hi; s = max(2*s, 1) {
		out = append(out, s)
	}
	return out
}

// counts returns the iterations of a size.
func (t *benchTest) counts(o *benchOptions, size int) (warmup, iters int) {
	k := 0
	if size > benchLarge {
		k = 1
	}
	warmup, iters = t.warmup[k], t.iters[k]
	if o.iters > 0 {
		iters = o.iters
		warmup = min(warmup, iters)
	}
	if o.warmup >= 0 {
		warmup = o.warmup
	}
	return warmup, iters
}

// benchRow is the result for one size.
type benchRow struct {
	Size       int       `json:"size"`
	Values     []float64 `json:"values"`
	Iterations int       `json:"iterations"`
	Validation string    `json:"validation,omitempty"`
}

// benchResult is what -json prints.
type benchResult struct {
	Test      string     `json:"test"`
	Ranks     int        `json:"ranks"`
	Transport string     `json:"transport"`
	Shared    bool       `json:"shared"` // through memory that the ranks share
	Columns   []string   `json:"columns"`
	Rows      []benchRow `json:"rows"`
}

// sharesMemory reports whether ranks exchange messages through memory.
func sharesMemory(w *mpi.World) bool {
	return slices.ContainsFunc(w.Tunables(), func(t mpi.Tunable) bool { return t.Name == "WEFT_SHARED" && t.Value == "1" })
}

// benchRank is one rank's part.
func benchRank(ctx context.Context, o *benchOptions) error {
	start := time.Now()
	w, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	o.initTook = time.Since(start)
	if err := benchIn(ctx, w, o, os.Stdout); err != nil {
		w.Abort(cli.ExitFail, err.Error())
		return err
	}
	return w.Finalize(ctx)
}

// benchIn measures in a job; rank 0 prints to out.
func benchIn(ctx context.Context, w *mpi.World, o *benchOptions, out io.Writer) (err error) {
	t := o.test
	if err := t.fits(w.Size()); err != nil {
		return err
	}
	b := &benchState{o: o, c: w.Comm(), me: w.Rank(), size: w.Size()}
	defer func() { err = errors.Join(err, b.stopChildren()) }()
	res := &benchResult{Test: t.name, Ranks: w.Size(), Transport: w.Transport(), Shared: sharesMemory(w), Columns: slices.Clone(t.columns)}
	if o.full {
		res.Columns = append(res.Columns, t.more...)
	}
	print := b.me == 0 && !o.json
	if print {
		res.header(out, t, o)
	}
	for _, size := range t.sizes(o) {
		row, err := b.measure(ctx, t, size)
		if err != nil {
			return fmt.Errorf("%s of %d bytes: %w", t.name, size, err)
		}
		row.Values = row.Values[:len(res.Columns)]
		res.Rows = append(res.Rows, *row)
		if print && t.text == nil {
			row.print(out, o)
		}
		if row.Validation == benchFailed {
			return errors.New("wrong data arrived")
		}
	}
	if b.me != 0 {
		return nil
	}
	if print && t.text != nil {
		fmt.Fprintln(out, t.text(res))
	}
	if o.svg != "" {
		if err := os.WriteFile(o.svg, res.svg(t), 0o666); err != nil {
			return err
		}
	}
	if o.json {
		return json.NewEncoder(out).Encode(res)
	}
	return nil
}

const (
	benchPassed = "Pass"
	benchFailed = "Fail"
)

// measure runs one size.
func (b *benchState) measure(ctx context.Context, t *benchTest, size int) (*benchRow, error) {
	k, err := t.setup(ctx, b, size)
	if err != nil {
		return nil, err
	}
	warmup, iters := t.counts(b.o, size)
	row := &benchRow{Size: size, Iterations: iters}
	if err := mpi.Barrier(ctx, b.c); err != nil {
		return nil, err
	}
	if row.Values, err = k.run(ctx, warmup, iters); err != nil {
		return nil, err
	}
	if b.o.check {
		wrong := []int32{0}
		if err := k.check(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "rank %d: %v\n", b.me, err)
			wrong[0] = 1
		}
		if err := mpi.Allreduce(ctx, b.c, wrong, wrong, mpi.Max); err != nil {
			return nil, err
		}
		row.Validation = benchPassed
		if wrong[0] > 0 {
			row.Validation = benchFailed
		}
	}
	if k.done != nil {
		err = k.done(ctx)
	}
	return row, err
}

// Columns are as wide as those of the OSU benchmarks.
const (
	benchSizeWidth = 10
	benchWidth     = 20
)

// how tells how messages travelled.
func (r *benchResult) how() string {
	if r.Shared {
		return r.Transport + ", shared memory"
	}
	return r.Transport
}

func (r *benchResult) header(w io.Writer, t *benchTest, o *benchOptions) {
	fmt.Fprintf(w, "# weft %s (%d ranks, %s)\n", t.title, r.Ranks, r.how())
	if t.text != nil {
		return
	}
	if t.head != nil {
		fmt.Fprintln(w, t.head(o))
	}
	fmt.Fprintf(w, "%-*s", benchSizeWidth, "# Size")
	for _, c := range r.Columns {
		fmt.Fprintf(w, "%*s", benchWidth, c)
	}
	if o.full {
		fmt.Fprintf(w, "%*s", benchWidth, "Iterations")
	}
	if o.check {
		fmt.Fprintf(w, "%*s", benchWidth, "Validation")
	}
	fmt.Fprintln(w)
}

func (r *benchRow) print(w io.Writer, o *benchOptions) {
	fmt.Fprintf(w, "%-*d", benchSizeWidth, r.Size)
	for _, v := range r.Values {
		fmt.Fprintf(w, "%*.2f", benchWidth, v)
	}
	if o.full {
		fmt.Fprintf(w, "%*d", benchWidth, r.Iterations)
	}
	if o.check {
		fmt.Fprintf(w, "%*s", benchWidth, r.Validation)
	}
	fmt.Fprintln(w)
}

// timed runs warmup and iters iterations and returns how long the latter took.
func timed(warmup, iters int, f func() error) (time.Duration, error) {
	for range warmup {
		if err := f(); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	for range iters {
		if err := f(); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// micros is the time of one of n, in microseconds.
func micros(d time.Duration, n int) float64 { return float64(d) / 1e3 / float64(n) }

// megabytes is a bandwidth in MB/s, of 10^6 bytes as the OSU benchmarks have it.
func megabytes(bytes float64, d time.Duration) float64 { return bytes / 1e6 / d.Seconds() }

// pattern is byte i of the data that a rank sends.
func pattern(rank, i int) byte { return byte(rank*37 + i*7 + i>>8 + 1) }

func fillPattern(b []byte, rank int) {
	for i := range b {
		b[i] = pattern(rank, i)
	}
}

func checkPattern(b []byte, rank int) error {
	for i, v := range b {
		if v != pattern(rank, i) {
			return fmt.Errorf("byte %d from rank %d is %d, not %d", i, rank, v, pattern(rank, i))
		}
	}
	return nil
}
