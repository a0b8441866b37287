package perf

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/weftstack/weft/cmd/weft/internal/terminal"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/verbs"
)

// Formats of a result.
const (
	formatWeft     = "weft"
	formatPerftest = "perftest"
)

// Defaults and bounds of the perftest format; the defaults are perftest's.
const (
	perftestIterations    = 1000
	perftestDepth         = 128
	perftestLatencySize   = 2
	perftestMaxSize       = 8 << 20 // of -a, which begins at 2
	minPerftestIterations = 5
	maxPerftestIterations = 10_000_000
	// maxPeakIterations bounds those for which the peak is looked for, which
	// takes their square.
	maxPeakIterations = 20_000
	// mebi is perftest's MB.
	mebi = 1 << 20
)

// perftestOptions are the flags that the RDMA modes have from perftest.
type perftestOptions struct {
	format     string
	sizeSet    bool
	all        bool
	iterations int
	seconds    int // of -D
	gbits      bool
	rdmaCM     bool   // -R: the other side is a program of perftest
	host       string // of its server
	port       int
	recvDepth  int
	peerFlags  bool           // the last two were given
	listening  func(net.Addr) // for tests

	samples *perftestSamples // what the current measurement found
}

func perftestFlags(fs *flag.FlagSet, o *options, setSize func(string) error) {
	fs.StringVar(&o.format, "format", formatWeft, "columns of the result: `weft or perftest`")
	fs.Func("s", "perftest: as -size (default 65536; with -lat 2)", setSize)
	fs.BoolVar(&o.all, "a", false, "perftest: all sizes that are powers of 2, from 2 to 8 MiB")
	fs.IntVar(&o.iterations, "n", 0, "perftest: `number` of operations to measure (default 1000)")
	fs.IntVar(&o.seconds, "D", 0, "perftest: `seconds` to measure instead")
	fs.IntVar(&o.Window, "t", 16, "perftest: as -window (default 128 in its format)")
	fs.IntVar(&o.Assocs, "q", 1, "perftest: as -assocs: `number` of queue pairs")
	fs.BoolVar(&o.Bidir, "b", false, "perftest: as -bidir")
	fs.BoolVar(&o.Latency, "lat", false, "perftest: as -latency")
	fs.BoolVar(&o.rdmaCM, "R", false, "perftest: measure with one of its programs, which was given -R, over iWARP and TCP")
	fs.IntVar(&o.port, "p", peerPort, "with -R: TCP `port` of the server")
	fs.IntVar(&o.recvDepth, "r", peerRecvDepth, "with -R: receives posted for sends")
	fs.BoolVar(&o.gbits, "report_gbits", false, "perftest: report gigabits instead of mebibytes")
}

// likePerftest sets what the perftest format has other defaults for.
func (o *options) likePerftest(fs *flag.FlagSet) {
	o.peerFlags = cli.Given(fs, "p", "r")
	if o.all || o.iterations != 0 || o.seconds != 0 || o.gbits || o.rdmaCM {
		o.format = formatPerftest
	}
	o.TCP = o.TCP || o.rdmaCM
	if o.format != formatPerftest {
		return
	}
	if !cli.Given(fs, "t", "window") {
		o.Window = perftestDepth
	}
	if o.Latency && !o.sizeSet {
		o.Size = perftestLatencySize
	}
	if o.iterations == 0 {
		o.iterations = perftestIterations
		if o.rdmaCM && o.Mode == "write" && !o.Latency {
			o.iterations = writeBWCount
		}
	}
}

// checkPerftest finds what the flag package cannot.
func (o *options) checkPerftest() error {
	switch {
	case o.format != formatPerftest && o.format != formatWeft && o.format != "":
		return fmt.Errorf("-format %s: want weft or perftest", o.format)
	case o.peerFlags && !o.rdmaCM:
		return errors.New("-p and -r require -R")
	case o.format != formatPerftest:
		return nil
	case !isRDMAMode(o.Mode):
		return errors.New("the perftest format requires an RDMA mode")
	case o.iterations < minPerftestIterations || o.iterations > maxPerftestIterations:
		return fmt.Errorf("-n %d: want %d to %d", o.iterations, minPerftestIterations, maxPerftestIterations)
	case o.seconds < 0 || time.Duration(o.seconds)*time.Second > maxPerfTime:
		return fmt.Errorf("-D %d: want up to %v", o.seconds, maxPerfTime)
	case o.all && o.Mode == "atomic":
		return errors.New("-a: mode atomic has a single size")
	case o.all && o.sizeSet:
		return errors.New("-a and -s are mutually exclusive")
	case o.Latency && o.Bidir:
		return errors.New("-lat and -b are mutually exclusive")
	case o.rdmaCM:
		return o.checkPeer()
	}
	return nil
}

// checkPeer finds what a measurement with perftest's own programs has not.
func (o *options) checkPeer() error {
	switch {
	case o.Mode == "atomic":
		return errors.New("-R requires mode send, write or read")
	case o.Bidir || o.seconds > 0 || o.Rate > 0 || o.BusyPoll != 0 || o.connect != "":
		return errors.New("-R does not support -b, -D, -rate, -busy-poll and -connect")
	case o.Latency && o.Assocs > 1:
		return errors.New("-R: -lat requires a single queue pair")
	case o.port < 1 || o.port > math.MaxUint16:
		return fmt.Errorf("-p %d: want up to %d", o.port, math.MaxUint16)
	case o.recvDepth < minRecvDepth || o.recvDepth > verbs.MaxDepth:
		return fmt.Errorf("-r %d: want %d to %d", o.recvDepth, minRecvDepth, verbs.MaxDepth)
	}
	return nil
}

// perftestSamples are the times of operations, from the start of a
// measurement.
type perftestSamples struct {
	mu    sync.Mutex
	begun []time.Duration // when each was posted
	ended []time.Duration // when each completed; same order
	trips []time.Duration // times of round trips
	took  time.Duration
	bytes uint64 // moved, in both directions
}

// perftestRow is one line of the result, as -json prints it.
type perftestRow struct {
	Mode       string `json:"mode"`
	Size       int    `json:"size"`
	Iterations int    `json:"iterations"`
	// Rates, of a bandwidth measurement. The peak is 0 if it was not looked
	// for: with -D, or more operations than maxPeakIterations.
	Peak     float64 `json:"bw_peak,omitempty"`
	Average  float64 `json:"bw_average,omitempty"`
	Unit     string  `json:"bw_unit,omitempty"` // MiB/s or Gb/s
	MsgRate  float64 `json:"msg_rate_mpps,omitempty"`
	Duration float64 `json:"seconds"`
	// Times in microseconds, of a latency measurement: half of a round trip
	// of send and write, all of one of read and atomic.
	Latency *perftestLatency `json:"latency_us,omitempty"`
}

type perftestLatency struct {
	Min     float64 `json:"t_min"`
	Max     float64 `json:"t_max"`
	Typical float64 `json:"t_typical"` // the median
	Average float64 `json:"t_avg"`
	Stdev   float64 `json:"t_stdev"`
	P99     float64 `json:"p99"`
	P999    float64 `json:"p99_9"`
}

// perftest measures one size, or with -a all.
func perftest(ctx context.Context, o *options) error {
	sizes := o.sizes()
	bar := progressbar.NewOptions(len(sizes), progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetVisibility(!o.quiet && terminal.Is(os.Stderr)),
		progressbar.OptionSetDescription("perf "+o.Mode), progressbar.OptionClearOnFinish())
	if !o.json {
		o.printPerftestHeader()
	}
	rows := make([]perftestRow, 0, len(sizes))
	for _, n := range sizes {
		one := *o
		one.Size, one.samples = n, new(perftestSamples)
		if _, err := measure(ctx, &one); err != nil {
			return fmt.Errorf("%d bytes: %w", n, err)
		}
		row := one.perftestRow()
		bar.Clear()
		if !o.json {
			row.print(o)
		}
		bar.Add(1)
		rows = append(rows, row)
	}
	bar.Finish()
	if o.json {
		return json.NewEncoder(os.Stdout).Encode(rows)
	}
	fmt.Println(perftestLine)
	return nil
}

// sizes are those to measure.
func (o *options) sizes() []int {
	if !o.all {
		return []int{o.Size}
	}
	var sizes []int
	for n := 2; n <= perftestMaxSize; n *= 2 {
		sizes = append(sizes, n)
	}
	return sizes
}

// unit is that of a rate.
func (o *options) unit() string {
	if o.gbits {
		return "Gb/s"
	}
	return "MiB/s"
}

// perftestRun measures with a source that is open.
func perftestRun(ctx context.Context, o *options, c *control, src source) error {
	e, ok := src.(*rdmaEnd)
	if !ok {
		return errors.New("the perftest format requires an RDMA mode")
	}
	s := o.samples
	var end time.Duration // of the measurement, with -D
	if o.seconds > 0 {
		end = time.Duration(o.seconds) * time.Second
	}
	if o.Latency {
		return e.perftestTrips(ctx, o, end)
	}
	counts := func() (uint64, error) {
		reply, err := c.ask(request{Op: "counts"})
		return reply.Counts.Bytes + src.counts().Bytes, err
	}
	before, err := counts()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := each(len(e.conns), func(i int) error {
		return e.conns[i].iterate(ctx, o.iterations, start, end, s)
	}); err != nil {
		return err
	}
	s.took = time.Since(start)
	if o.Bidir {
		after, err := counts()
		s.bytes, s.took = after-before, time.Since(start)
		return err
	}
	s.bytes = uint64(len(s.ended)) * uint64(o.Size)
	return nil
}

// iterate makes n operations, or as many as fit until end, with a window of
// them under way, and notes their times.
func (c *rdmaConn) iterate(ctx context.Context, n int, start time.Time, end time.Duration, s *perftestSamples) error {
	e := c.end
	op := rdmaOps[e.spec.Mode]
	room := e.spec.Window
	var begun, ended []time.Duration
	over := func(now time.Duration, posted int) bool {
		return posted >= n || end > 0 && now >= end
	}
	if end > 0 {
		n = maxPerftestIterations
	}
	for posted := 0; ; {
		now := time.Since(start)
		for ; room > 0 && !over(now, posted) && (op != verbs.OpSend || c.credit > 0); room-- {
			if err := c.post(op); err != nil {
				return c.why(err)
			}
			begun = append(begun, now)
			posted++
			c.credit--
			now = time.Since(start)
		}
		if len(ended) == posted && over(now, posted) {
			break
		}
		done, err := c.reap(ctx)
		if err != nil {
			return err
		}
		now = time.Since(start)
		for range done {
			ended = append(ended, now)
		}
		if room += done; op != verbs.OpSend {
			e.msgs.Add(uint64(done))
			e.bytes.Add(uint64(done * e.spec.Size))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.ended = append(s.begun, begun...), append(s.ended, ended...)
	return nil
}

// perftestTrips makes round trips one after the other.
func (e *rdmaEnd) perftestTrips(ctx context.Context, o *options, end time.Duration) error {
	warm := o.iterations / 10
	for range min(warm, perftestIterations) {
		if err := e.trip(ctx); err != nil {
			return err
		}
	}
	start := time.Now()
	last := start
	for n := 0; n < maxPerftestIterations; n++ {
		if end > 0 && last.Sub(start) >= end || end == 0 && n == o.iterations {
			break
		}
		if err := e.trip(ctx); err != nil {
			return err
		}
		now := time.Now()
		o.samples.trips = append(o.samples.trips, now.Sub(last))
		last = now
	}
	o.samples.took = last.Sub(start)
	return nil
}

// perftestRow sums the samples up.
func (o *options) perftestRow() perftestRow {
	s := o.samples
	row := perftestRow{Mode: o.Mode, Size: o.Size, Iterations: len(s.ended), Duration: s.took.Seconds()}
	if o.Latency {
		row.Iterations = len(s.trips)
		row.Latency = newPerftestLatency(s.trips, !rdmaOps[o.Mode].Responds())
		return row
	}
	unit := 1.0 / mebi
	row.Unit = o.unit()
	if o.gbits {
		unit = 8 / 1e9
	}
	row.Average = float64(s.bytes) / s.took.Seconds() * unit
	row.MsgRate = float64(s.bytes) / float64(o.Size) / s.took.Seconds() / 1e6
	if o.seconds == 0 && !o.Bidir && o.Assocs == 1 && len(s.ended) <= maxPeakIterations {
		if each := s.shortest(); each > 0 {
			row.Peak = max(float64(o.Size)/each*unit, row.Average)
		}
	}
	return row
}

// shortest returns the least time in seconds that an operation took, averaged
// over any run of operations from a post to a completion: the peak bandwidth of
// perftest.
func (s *perftestSamples) shortest() float64 {
	best := math.Inf(1)
	for i, begun := range s.begun {
		for j := i; j < len(s.ended); j++ {
			if each := (s.ended[j] - begun).Seconds() / float64(j-i+1); each > 0 && each < best {
				best = each
			}
		}
	}
	if math.IsInf(best, 1) {
		return 0
	}
	return best
}

// newPerftestLatency sums up round trips, of which half counts if half is true.
func newPerftestLatency(trips []time.Duration, half bool) *perftestLatency {
	us := make([]float64, len(trips))
	sum := 0.0
	for i, t := range trips {
		us[i] = float64(t) / 1e3
		if half {
			us[i] /= 2
		}
		sum += us[i]
	}
	if len(us) == 0 {
		return &perftestLatency{}
	}
	slices.Sort(us)
	at := func(q float64) float64 { return us[min(len(us)-1, int(math.Ceil(q*float64(len(us))))-1)] }
	l := &perftestLatency{Min: us[0], Max: us[len(us)-1], Typical: at(0.5), Average: sum / float64(len(us)),
		P99: at(0.99), P999: at(0.999)}
	for _, v := range us {
		l.Stdev += (v - l.Average) * (v - l.Average)
	}
	l.Stdev = math.Sqrt(l.Stdev / float64(len(us)))
	return l
}

const perftestLine = "---------------------------------------------------------------------------------------"

var perftestNames = map[string]string{"send": "Send", "write": "RDMA_Write", "read": "RDMA_Read",
	"atomic": "Atomic FETCH_AND_ADD"}

// printPerftestHeader says what is measured, and prints the names of columns.
func (o *options) printPerftestHeader() {
	what, way, over := "BW", "", "SCTP"
	if o.Latency {
		what = "Latency"
	}
	if o.Bidir {
		way = " Bidirectional"
	}
	if o.TCP {
		over = "TCP"
	}
	fmt.Println(perftestLine)
	fmt.Printf("                    %s%s %s Test\n", perftestNames[o.Mode], way, what)
	fmt.Printf(" Number of qps   : %-8d Transport type : iWARP over %s\n", o.Assocs, over)
	if o.Latency {
		fmt.Printf(" Mtu             : %s\n", mtuText(o.MTU))
	} else {
		fmt.Printf(" TX depth        : %-8d Mtu            : %s\n", o.Window, mtuText(o.MTU))
	}
	fmt.Println(perftestLine)
	switch {
	case o.Latency && o.seconds > 0:
		fmt.Println(" #bytes        #iterations       t_avg[usec]    tps average")
	case o.Latency:
		fmt.Println(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] ")
	case o.gbits:
		fmt.Println(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
	default:
		fmt.Println(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]")
	}
}

func (r *perftestRow) print(o *options) {
	switch l := r.Latency; {
	case l != nil && o.seconds > 0:
		fmt.Printf(" %-7d       %-10d        %-7.2f        %-7.2f\n", r.Size, r.Iterations, l.Average,
			float64(r.Iterations)/r.Duration)
	case l != nil:
		fmt.Printf(" %-7d %-10d     %-7.2f        %-7.2f      %-7.2f         %-7.2f        %-7.2f         %-7.2f                %-7.2f\n",
			r.Size, r.Iterations, l.Min, l.Max, l.Typical, l.Average, l.Stdev, l.P99, l.P999)
	default:
		fmt.Printf(" %-7d    %-10d       %-7.2f            %-7.2f              %s\n", r.Size, r.Iterations, r.Peak,
			r.Average, strconv.FormatFloat(r.MsgRate, 'f', 6, 64))
	}
}
