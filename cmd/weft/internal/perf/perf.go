// Package perf is `weft perf`: it measures throughput and latency of SCTP, RDMA, MPI, TCP
// and UDP between two processes, and works with the tools of perftest.
package perf

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/netem"
	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/internal/units"
)

// Bounds of the options of `weft perf`.
const (
	maxPerfSize    = 1 << 30
	maxPerfStreams = 65535
	maxPerfAssocs  = 20000
	maxPerfTime    = 24 * time.Hour
)

// defaultTime is how long to measure unless -time says otherwise.
const defaultTime = 3 * time.Second

// spec says what to measure. It travels to the server as JSON.
type spec struct {
	Mode     string
	Size     int
	Streams  int
	Assocs   int
	MTU      int // IP packet size; 0: the route's
	Latency  bool
	Bidir    bool
	Rate     float64 // bits per second offered; 0: as fast as possible
	GSO      bool
	BusyPoll time.Duration
	Window   int  // operations under way, for RDMA modes
	TCP      bool // RDMA over TCP instead of SCTP
	ZeroSum  bool // no checksums on this host
	Plain    bool // DATA chunks, not I-DATA
	Direct   bool // SCTP over IP, without UDP
	ZeroCopy bool // messages are sent by reference
	Shared   bool // MPI through memory that the ranks share

	local netip.Addr // our address on the way to the other side
}

// options are the flags of `weft perf`.
type options struct {
	spec
	time, warmup time.Duration
	server       string
	connect      string
	once         bool
	json         bool
	quiet        bool
	cpuprofile   string
	rounds       int
	count        int
	perftestOptions
}

// modes are the modes in the order in which help and compare show them.
var modes = []struct{ name, what string }{
	{"udp", "datagrams without a protocol: what the socket can do"},
	{"tcp", "one TCP connection per association"},
	{"sctp", "messages of SCTP associations"},
	{"send", "RDMA Send over DDP over SCTP"},
	{"write", "RDMA Write"},
	{"read", "RDMA Read"},
	{"atomic", "RDMA Atomic: fetch and add on 8 bytes, whatever -size says"},
	{"mpi", "MPI messages between two ranks"},
}

func isPerfMode(s string) bool {
	for _, m := range modes {
		if m.name == s {
			return true
		}
	}
	return false
}

func newFlags(o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("weft perf", flag.ContinueOnError)
	size := units.Bytes(64 << 10)
	o.Size = int(size)
	setSize := func(s string) error {
		if err := size.Set(s); err != nil {
			return err
		}
		if size < 1 || size > maxPerfSize {
			return fmt.Errorf("want 1 to %v", units.Bytes(maxPerfSize))
		}
		o.Size, o.sizeSet = int(size), true
		return nil
	}
	fs.Func("size", "message `size` (default 64KiB; with -latency 64)", setSize)
	fs.DurationVar(&o.time, "time", 0, fmt.Sprintf("how long to measure (default %v; compare %v each)", defaultTime, compareTime))
	fs.DurationVar(&o.warmup, "warmup", 300*time.Millisecond, "warm-up `time` before the measurement")
	fs.IntVar(&o.Streams, "streams", 1, "`number` of streams, used round robin")
	fs.IntVar(&o.Assocs, "assocs", 1, "`number` of associations, connections or queue pairs")
	fs.Func("mtu", "MTU: a `number`, or auto for path MTU discovery (default 1500)", func(s string) error {
		if s == "auto" {
			o.MTU = 0
			return nil
		}
		var p netem.Params
		err := p.Set("mtu", s)
		o.MTU = p.MTU
		return err
	})
	o.MTU = 1500
	fs.DurationVar(&o.BusyPoll, "busy-poll", 0, "spin budget: `time` that a waiting goroutine busy-polls the socket before it parks; up to 8 times as long, at most 400us, where waits are short; negative: no polling (default: adaptive, up to 50us in mode sctp, 1ms in the RDMA modes, 5ms in mpi)")
	fs.BoolVar(&o.ZeroSum, "zero-checksum", false, "zero checksum (RFC 9653) in SCTP packets that do not leave the host, as in mode mpi")
	fs.BoolFunc("interleave", "message interleaving in mode sctp (RFC 8260: I-DATA chunks, whose header is 4 bytes longer) (default true)", func(s string) error {
		on, err := strconv.ParseBool(s)
		o.Plain = !on
		return err
	})
	fs.BoolFunc("encapsulate", "UDP encapsulation in mode sctp (RFC 6951); -encapsulate=false saves 8 bytes per packet and requires root or CAP_NET_RAW on both sides (default true)", func(s string) error {
		on, err := strconv.ParseBool(s)
		o.Direct = !on
		return err
	})
	fs.BoolVar(&o.ZeroCopy, "zerocopy", false, "zero-copy send in mode sctp, as in the RDMA modes and mpi")
	fs.BoolVar(&o.Shared, "shared", false, "mode mpi: use shared memory, as MPI programs on one host do, instead of SCTP")
	fs.BoolVar(&o.Bidir, "bidir", false, "send in both directions at once")
	fs.BoolVar(&o.Latency, "latency", false, "measure round trips of one message at a time")
	fs.IntVar(&o.count, "count", 0, "with -latency: end after this `number` of round trips, regardless of -time")
	fs.Func("rate", "offered `rate` in bits per second, such as 100mbit (default: as fast as possible)", func(s string) (err error) {
		o.Rate, err = units.ParseRate(s)
		return err
	})
	fs.BoolVar(&o.GSO, "gso", true, "mode udp: send batches of datagrams (UDP GSO)")
	fs.IntVar(&o.Window, "window", 16, fmt.Sprintf("`number` of outstanding operations in the RDMA modes and mpi (compare: at most %d in mpi with 1 MiB)", fewMessages))
	fs.StringVar(&o.server, "server", "", "run as the server: TCP `address` of the control connection")
	fs.BoolVar(&o.once, "once", false, "with -server: exit after one client")
	fs.StringVar(&o.connect, "connect", "", "`address` of the server (default: start one on this host)")
	fs.BoolVar(&o.json, "json", false, "print the result as JSON")
	fs.BoolVar(&o.quiet, "quiet", false, "do not print a line per second")
	fs.StringVar(&o.cpuprofile, "cpuprofile", "", "write a CPU profile of this side (mode mpi: of rank 0) to a `file`")
	fs.IntVar(&o.rounds, "rounds", compareRounds, "compare: `number` of rounds")
	fs.BoolVar(&o.TCP, "tcp", false, "RDMA modes: use MPA over TCP instead of SCTP")
	perftestFlags(fs, o, setSize)
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "usage: weft perf [flags] MODE\n       weft perf [flags] compare\n       weft perf -server ADDRESS\n       weft perf -R [flags] send|write|read [HOST]\n       weft run|net … weft perf [flags] mpi\n\n"+
			"Perf measures the throughput or latency of a transport between this process and a\nserver. It starts the server on this host, unless -connect names one.\n\nModes:\n\n")
		for _, m := range modes {
			fmt.Fprintf(fs.Output(), "  %-8s %s\n", m.name, m.what)
		}
		fmt.Fprint(fs.Output(), "  compare  all modes by turns, several rounds; prints medians and ratios\n\nFlags may come before and after the mode. The RDMA modes accept the flags of\nperftest (ib_write_bw and others). They print the columns of perftest with\n-format perftest, which -a, -n, -D and -report_gbits imply:\n\n"+
			"  weft perf write -a            like ib_write_bw -a\n  weft perf send -lat -n 10000  like ib_send_lat -n 10000\n\n"+
			"With -R the peer is a program of perftest that runs with -R, too. Without HOST, perf\nwaits for the peer as the server; with HOST it is the client. Both sides need the\nsame flags.\n\n"+
			"  weft perf -R write HOST       for ib_write_bw -R on HOST\n\n")
		fs.PrintDefaults()
	}
	return fs
}

func Main(args []string) int {
	var o options
	fs := newFlags(&o)
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	var words []string
	for fs.NArg() > 0 { // flags behind the mode
		words = append(words, fs.Arg(0))
		if status, ok := cli.Start(fs, fs.Args()[1:]); !ok {
			return status
		}
	}
	switch {
	case len(words) == 1:
		o.Mode = words[0]
	case len(words) == 2 && o.rdmaCM:
		o.Mode, o.host = words[0], words[1]
	} // else more than one mode
	if o.Latency && !o.sizeSet {
		o.Size = 64
	}
	o.defaultTime(fs)
	o.likePerftest(fs)
	if err := o.check(); err != nil {
		return cli.Refuse(fs.Name(), err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "weft perf:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

// defaultTime sets -time if it was not given.
func (o *options) defaultTime(fs *flag.FlagSet) {
	switch {
	case cli.Given(fs, "time"):
	case o.Mode == "compare":
		o.time = compareTime
	default:
		o.time = defaultTime
	}
}

// check finds what the flag package cannot.
func (o *options) check() error {
	switch {
	case o.server != "":
		if o.Mode != "" || o.connect != "" {
			return errors.New("-server takes no mode: the client selects it")
		}
		return nil
	case o.Mode == "":
		return errors.New("give one mode")
	case o.Mode != "compare" && !isPerfMode(o.Mode):
		return fmt.Errorf("unknown mode %q", o.Mode)
	case o.time <= 0 || o.time > maxPerfTime || o.warmup < 0 || o.warmup > maxPerfTime:
		return fmt.Errorf("-time %v -warmup %v: want up to %v", o.time, o.warmup, maxPerfTime)
	case o.Streams < 1 || o.Streams > maxPerfStreams:
		return fmt.Errorf("-streams %d: want 1 to %d", o.Streams, maxPerfStreams)
	case o.Assocs < 1 || o.Assocs > maxPerfAssocs:
		return fmt.Errorf("-assocs %d: want 1 to %d", o.Assocs, maxPerfAssocs)
	case o.Window < 1 || o.Window > 4096:
		return fmt.Errorf("-window %d: want 1 to 4096", o.Window)
	case o.rounds < 1 || o.rounds > 1000:
		return fmt.Errorf("-rounds %d: want 1 to 1000", o.rounds)
	case o.count < 0 || o.count > 0 && !o.Latency:
		return fmt.Errorf("-count %d: want a positive number, with -latency", o.count)
	case o.TCP && !isRDMAMode(o.Mode):
		return fmt.Errorf("-tcp requires one of the RDMA modes")
	}
	if o.Mode == "atomic" {
		o.Size = atomicSize
	}
	return errors.Join(o.checkMode(), o.checkPerftest())
}

// perf does what the options say and prints the result.
func run(ctx context.Context, o *options) error {
	if o.Mode != "mpi" { // there rank 0 is measured, see runRank
		stop, err := startCPUProfile(o.cpuprofile)
		if err != nil {
			return err
		}
		defer stop()
	}
	if order := os.Getenv(envPerfRank); order != "" {
		return runOrdered(ctx, order)
	}
	switch {
	case o.server != "":
		return serve(ctx, o.server, o.once)
	case o.Mode == "compare":
		return compare(ctx, o)
	case o.Mode == "mpi" && os.Getenv(pmi.EnvRank) != "":
		// A launcher has started us: on other machines, or emulated ones.
		return runRank(ctx, o, func(r *result) error { return r.print(o) })
	case o.rdmaCM:
		return runPeer(ctx, o)
	case o.format == formatPerftest:
		return perftest(ctx, o)
	case o.Mode == "mpi":
		if o.connect != "" {
			return errors.New("mode mpi takes no -connect: to measure between hosts, start weft perf mpi by weft run")
		}
		return measureMPI(ctx, o)
	}
	res, err := measure(ctx, o)
	if err != nil {
		return err
	}
	return res.print(o)
}

// startCPUProfile writes a CPU profile to a file until stop is called; it does
// nothing if name is empty.
func startCPUProfile(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "weft perf: -cpuprofile: %v\n", err)
		}
	}, nil
}

// measure measures once, against a server that it starts where none is given.
func measure(ctx context.Context, o *options) (*result, error) {
	addr := o.connect
	if addr == "" {
		child, childAddr, err := startPerfServer(ctx)
		if err != nil {
			return nil, err
		}
		defer func() {
			// It ends by itself when its client has gone.
			kill := time.AfterFunc(process.KillGrace, func() { child.Process.Kill() })
			child.Wait()
			kill.Stop()
		}()
		addr = childAddr
	}
	return runClient(ctx, o, addr)
}

// startPerfServer starts this program again as the server for one client.
func startPerfServer(ctx context.Context) (*exec.Cmd, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	cmd := exec.CommandContext(ctx, self, "perf", "-server", "127.0.0.1:0", "-once")
	if p := os.Getenv(envPerfServerProfile); p != "" {
		cmd.Args = append(cmd.Args, "-cpuprofile", p)
		cmd.Env = append(os.Environ(), envPerfServerProfile+"=")
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = process.ChildAttr()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	buf := make([]byte, 256)
	n, err := out.Read(buf)
	addr, ok := strings.CutPrefix(strings.TrimSpace(string(buf[:n])), servingPrefix)
	if err != nil || !ok {
		cmd.Process.Kill()
		cmd.Wait()
		return nil, "", fmt.Errorf("the server did not start: %q, %v", buf[:n], err)
	}
	return cmd, addr, nil
}

// envPerfServerProfile names a file for a CPU profile of the server that a
// client starts.
const envPerfServerProfile = "WEFT_PERF_SERVER_PROFILE"

// servingPrefix is what a server prints before its address.
const servingPrefix = "serving at "

// result is what one measurement found, as -json prints it.
type result struct {
	Mode         string       `json:"mode"`
	Size         int          `json:"size"`
	MTU          int          `json:"mtu"`
	Bytes        uint64       `json:"bytes"`
	Seconds      float64      `json:"seconds"`
	Gbps         float64      `json:"gbps"`
	MsgsPerS     float64      `json:"msgs_per_s"`
	Latency      *percentiles `json:"latency_us,omitempty"`
	CPUPerGB     float64      `json:"cpu_s_per_gb"`
	AllocsPerGB  float64      `json:"allocs_per_gb"`
	AllocsPerMsg float64      `json:"allocs_per_msg"`
	Retransmits  uint64       `json:"retransmissions"`
	Drops        uint64       `json:"drops"`
	OtherCPU     float64      `json:"other_cpu"` // cores that other programs used meanwhile; -1: unknown
	Streams      int          `json:"streams"`
	Assocs       int          `json:"assocs"`
	Intervals    []interval   `json:"intervals,omitempty"` // of about a second
}

// percentiles are round trip times in microseconds.
type percentiles struct {
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

func (r *result) print(o *options) error {
	if o.json {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	if r.Latency != nil {
		l := r.Latency
		fmt.Printf("%-8s %9s %10s %9s %9s %9s %9s %9s %9s\n", "mode", "size", "trips/s", "min_us", "p50_us", "p90_us",
			"p99_us", "p99.9_us", "max_us")
		fmt.Printf("%-8s %9d %10.0f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f\n", r.Mode, r.Size, r.MsgsPerS, l.Min, l.P50, l.P90,
			l.P99, l.P999, l.Max)
		fmt.Print(r.noise())
		return nil
	}
	fmt.Printf("%-8s %9s %6s %8s %9s %12s %8s %10s %8s %7s\n", "mode", "size", "mtu", "seconds", "Gb/s", "messages/s",
		"cpu_s/GB", "allocs/msg", "retrans", "drops")
	fmt.Printf("%-8s %9d %6s %8.2f %9.2f %12.0f %8.3f %10.3f %8d %7d\n", r.Mode, r.Size, mtuText(r.MTU), r.Seconds,
		r.Gbps, r.MsgsPerS, r.CPUPerGB, r.AllocsPerMsg, r.Retransmits, r.Drops)
	fmt.Print(r.noise())
	return nil
}

func mtuText(mtu int) string {
	if mtu == 0 {
		return "auto"
	}
	return fmt.Sprint(mtu)
}
