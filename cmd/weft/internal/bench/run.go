package bench

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

// test is one benchmark.
type test struct {
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
	text func(r *result) string
	head func(o *options) string
	// setup prepares a size. One-sided tests and collectives have buffers
	// that all iterations use.
	setup func(ctx context.Context, b *state, size int) (*testCase, error)
}

// testCase is a test at one size.
type testCase struct {
	// run does so many iterations, all ranks at the same time, and returns
	// what this rank measured: the values of the columns.
	run func(ctx context.Context, warmup, iters int) ([]float64, error)
	// check does it once more with known data and compares.
	check func(ctx context.Context) error
	done  func(ctx context.Context) error // may be nil
}

// state is what a rank's test works with.
type state struct {
	o    *options
	c    *mpi.Comm
	me   int
	size int // ranks

	children []child // of latency_mp
}

// largeSize is the length from which messages count as long, as with OSU.
const largeSize = 8192

func (t *test) fits(ranks int) error {
	switch {
	case t.exact > 0 && ranks != t.exact:
		return fmt.Errorf("%s requires %d ranks", t.name, t.exact)
	case t.even && ranks%2 != 0:
		return fmt.Errorf("%s requires an even number of ranks", t.name)
	case ranks < 2 && !t.alone:
		return fmt.Errorf("%s requires at least 2 ranks", t.name)
	}
	return nil
}

func tests() []*test {
	return slices.Concat(startupTests(), pt2ptTests(), oneSidedTests(), collectiveTests())
}

func findTest(name string) *test {
	for _, t := range tests() {
		if t.name == strings.TrimPrefix(name, "osu_") {
			return t
		}
	}
	return nil
}

// sizes lists the message sizes to measure.
func (t *test) sizes(o *options) []int {
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
func (t *test) counts(o *options, size int) (warmup, iters int) {
	k := 0
	if size > largeSize {
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

// row is the result for one size.
type row struct {
	Size       int       `json:"size"`
	Values     []float64 `json:"values"`
	Iterations int       `json:"iterations"`
	Validation string    `json:"validation,omitempty"`
}

// result is what -json prints.
type result struct {
	Test      string   `json:"test"`
	Ranks     int      `json:"ranks"`
	Transport string   `json:"transport"`
	Shared    bool     `json:"shared"` // through memory that the ranks share
	Columns   []string `json:"columns"`
	Rows      []row    `json:"rows"`
}

// sharesMemory reports whether ranks exchange messages through memory.
func sharesMemory(w *mpi.World) bool {
	return slices.ContainsFunc(w.Tunables(), func(t mpi.Tunable) bool { return t.Name == "WEFT_SHARED" && t.Value == "1" })
}

// runRank is one rank's part.
func runRank(ctx context.Context, o *options) error {
	start := time.Now()
	w, err := mpi.Init(ctx)
	if err != nil {
		return err
	}
	o.initTook = time.Since(start)
	if err := runIn(ctx, w, o, os.Stdout); err != nil {
		w.Abort(cli.ExitFail, err.Error())
		return err
	}
	return w.Finalize(ctx)
}

// runIn measures in a job; rank 0 prints to out.
func runIn(ctx context.Context, w *mpi.World, o *options, out io.Writer) (err error) {
	t := o.test
	if err := t.fits(w.Size()); err != nil {
		return err
	}
	b := &state{o: o, c: w.Comm(), me: w.Rank(), size: w.Size()}
	defer func() { err = errors.Join(err, b.stopChildren()) }()
	res := &result{Test: t.name, Ranks: w.Size(), Transport: w.Transport(), Shared: sharesMemory(w),
		Columns: slices.Clone(t.columns)}
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
		if row.Validation == failed {
			return errors.New("validation failed: wrong data received")
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
	passed = "Pass"
	failed = "Fail"
)

// measure runs one size.
func (b *state) measure(ctx context.Context, t *test, size int) (*row, error) {
	k, err := t.setup(ctx, b, size)
	if err != nil {
		return nil, err
	}
	warmup, iters := t.counts(b.o, size)
	row := &row{Size: size, Iterations: iters}
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
		row.Validation = passed
		if wrong[0] > 0 {
			row.Validation = failed
		}
	}
	if k.done != nil {
		err = k.done(ctx)
	}
	return row, err
}

// Columns are as wide as those of the OSU benchmarks.
const (
	sizeWidth   = 10
	columnWidth = 20
)

// how tells how messages travelled.
func (r *result) how() string {
	if r.Shared {
		return r.Transport + ", shared memory"
	}
	return r.Transport
}

func (r *result) header(w io.Writer, t *test, o *options) {
	fmt.Fprintf(w, "# weft %s (%d ranks, %s)\n", t.title, r.Ranks, r.how())
	if t.text != nil {
		return
	}
	if t.head != nil {
		fmt.Fprintln(w, t.head(o))
	}
	fmt.Fprintf(w, "%-*s", sizeWidth, "# Size")
	for _, c := range r.Columns {
		fmt.Fprintf(w, "%*s", columnWidth, c)
	}
	if o.full {
		fmt.Fprintf(w, "%*s", columnWidth, "Iterations")
	}
	if o.check {
		fmt.Fprintf(w, "%*s", columnWidth, "Validation")
	}
	fmt.Fprintln(w)
}

func (r *row) print(w io.Writer, o *options) {
	fmt.Fprintf(w, "%-*d", sizeWidth, r.Size)
	for _, v := range r.Values {
		fmt.Fprintf(w, "%*.2f", columnWidth, v)
	}
	if o.full {
		fmt.Fprintf(w, "%*d", columnWidth, r.Iterations)
	}
	if o.check {
		fmt.Fprintf(w, "%*s", columnWidth, r.Validation)
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

// memory returns n elements for a test to send or receive. It writes them: the system maps all memory that was never
// written to one page of zeros, and reading that from the cache would look faster than a real message is.
func memory[T any](n int) []T {
	b := make([]T, n)
	clear(b)
	return b
}

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
			return fmt.Errorf("byte %d from rank %d is %d, want %d", i, rank, v, pattern(rank, i))
		}
	}
	return nil
}
