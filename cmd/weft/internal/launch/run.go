package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/capture"
	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/internal/sites"
)

// MaxRanks bounds -n: a slip of the finger must not start a fork bomb.
const MaxRanks = 4096

// runOptions are the flags of `weft run`.
type runOptions struct {
	n         int
	prefix    bool
	transport string
	pcap      string
	timeout   time.Duration
	wdir      string
	verbose   bool
	keepOn    bool
	trace     string
	profile   bool
	json      bool
	env       []string // K=V, in order

	hosts    string
	hostFile string
	rsh      string
	addr     string
	universe int
	names    string
	bind     string
	sites    string
	class    string
	mode     string
	dryRun   bool
	spread   *spread   // nil: all ranks run here
	sections []section // the programs
}

func runFlags(o *runOptions) *flag.FlagSet {
	fs := flag.NewFlagSet("weft run", flag.ContinueOnError)
	fs.IntVar(&o.n, "n", 1, "number of `ranks`")
	fs.IntVar(&o.n, "np", 1, "the same as -n")
	for _, name := range []string{"l", "prepend-rank", "tag-output"} {
		fs.BoolVar(&o.prefix, name, false, "put the rank before each line of output")
	}
	fs.StringVar(&o.transport, "transport", "", "transport of messages: `hybrid` (SCTP and RDMA), sctp or tcp")
	fs.StringVar(&o.pcap, "pcap", "", "write every datagram that the ranks send to a pcap `file`")
	fs.StringVar(&o.trace, "trace", "", "write a trace of all MPI calls to a `file`, for the Chrome or Perfetto trace viewer")
	fs.BoolVar(&o.profile, "profile", false, "at the end print the time spent in MPI calls and the traffic between each pair of ranks to standard error")
	fs.BoolVar(&o.json, "json", false, "with -profile or -dry-run: print JSON")
	fs.DurationVar(&o.timeout, "timeout", 0, "end the job after this `time`; 0 means no limit")
	fs.StringVar(&o.wdir, "wdir", "", "working `directory` of the ranks")
	fs.BoolVar(&o.verbose, "v", false, "report the start and the exit status of every process")
	fs.StringVar(&o.hosts, "hosts", "", "run the ranks on other hosts: `NAME:SLOTS,…`")
	fs.StringVar(&o.hostFile, "hostfile", "", "like -hosts, from a `file` with lines NAME slots=N")
	fs.StringVar(&o.rsh, "rsh", defaultRSH, "remote shell: a `command` that gets a host name and a shell script as its last arguments")
	fs.StringVar(&o.sites, "sites", os.Getenv(sites.EnvFile), "sites `file`: which hosts or ranks form a site, and which gateways carry messages between sites (default: $"+sites.EnvFile+")")
	fs.StringVar(&o.class, "job-class", "", "class of the job in the sites file: a `name`")
	fs.StringVar(&o.mode, "mode", "", "when messages to other sites count as sent: `piecewise`, chained or lossy (default: what the sites file says)")
	fs.BoolVar(&o.dryRun, "dry-run", false, "start nothing: print where each rank would run, and by which gateways ranks would talk to each other")
	fs.StringVar(&o.addr, "addr", "", "`address` of this host that the ranks use (default: loopback); with -hosts, the address at which ranks reach the launcher (default: detected)")
	fs.IntVar(&o.universe, "usize", 0, "MPI_UNIVERSE_SIZE: the `number` of processes that the job can have (default: slots of -hosts, or processors)")
	fs.StringVar(&o.names, "nameserver", "", "name server for published ports: the `file` that weft nameserver -file has written (default: the launcher itself)")
	fs.StringVar(&o.bind, "bind-to", "none", "bind each rank to a `core` of its own (all its hardware threads), to one hwthread, or to none; spawned ranks are not bound")
	fs.BoolVar(&o.keepOn, "ft", false, "fault tolerance: report a rank that ends or stops answering to the others and keep the job running")
	for _, name := range []string{"x", "env"} {
		fs.Func(name, "set an environment variable of the ranks: `NAME=VALUE`, or NAME to pass on its current value", func(s string) error {
			name, _, set := strings.Cut(s, "=")
			switch {
			case name == "":
				return errors.New("the name of the variable is empty")
			case set && (name == pmi.EnvNames || name == pmi.EnvToken || name == sites.EnvProcess):
				return fmt.Errorf("%s holds a secret, and other users can read command lines: set it in the environment of weft run", name)
			}
			if !set {
				s = name + "=" + os.Getenv(name)
			}
			o.env = append(o.env, s)
			return nil
		})
	}
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: weft run [flags] PROGRAM [arguments] [: [-n N] [-wdir DIR] PROGRAM [arguments]]...

Run starts the ranks of an MPI program on this host, or on those of -hosts, and
waits until all have exited. PROGRAM is an executable, or a Go package directory
or file, which is built first. A colon starts another program of the same job; its
ranks are numbered after those of the previous one. Processes that the ranks spawn
belong to the job.

On other hosts the executable must exist under the same path. The slots of the
hosts are filled in order, all of them unless -n is given. The ranks get the
current directory (or -wdir), the variables WEFT_… and those of -x. The host
localhost needs no remote shell. If all ranks run on this host, they use its
loopback interface, unless -addr or WEFT_ADDRS is set.

With -sites processes of different sites talk to each other through the gateways of
their sites, which must run (weft gateway); docs/gateways.md describes the file. Names
of -hosts are those of the file; a host may also play several sites.

When a rank fails, the other ranks are ended and its exit status is returned. With
-ft the failure is reported to the other ranks, which continue; the exit status is
0 if all remaining ranks exit with 0. A rank that the others declared failed
because it did not answer is killed when all others have finished.

`)
		fs.PrintDefaults()
		fmt.Fprint(fs.Output(), `
At -timeout and on SIGQUIT, run prints for each rank the MPI call that it is blocked
in and the messages that it waits for.
`)
	}
	return fs
}

func Main(args []string) int {
	var o runOptions
	fs := runFlags(&o)
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	err := o.check(fs.Args())
	if err == nil {
		err = o.checkHosts(cli.Given(fs, "n", "np") || len(o.sections) > 1)
	}
	if err != nil {
		return cli.Refuse(fs.Name(), err)
	}
	s, err := o.openSites()
	if err == nil && o.dryRun {
		return printPlan(&o, s)
	}
	status := cli.ExitFail
	if err == nil {
		status, err = run(o, s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "weft run:", err)
	}
	return status
}

// printPlan is weft run -dry-run.
func printPlan(o *runOptions, s *siteJob) int {
	d, err := o.plan(s)
	if err == nil && o.json {
		err = d.writeJSON(os.Stdout)
	} else if err == nil {
		err = d.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "weft run:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

// check finds what the flag package cannot. args are the programs.
func (o *runOptions) check(args []string) error {
	var err error
	if o.sections, err = sections(section{n: o.n, wdir: o.wdir}, args); err != nil {
		return err
	}
	o.n = 0
	for _, s := range o.sections {
		o.n += s.n
	}
	switch {
	case o.universe < 0 || o.universe > MaxRanks:
		return fmt.Errorf("-usize %d: want 1 to %d", o.universe, MaxRanks)
	case o.json && !o.profile && !o.dryRun:
		return errors.New("-json requires -profile or -dry-run")
	case (o.class != "" || o.mode != "") && o.sites == "":
		return errors.New("-job-class and -mode require -sites")
	case o.timeout < 0:
		return fmt.Errorf("-timeout %v is negative", o.timeout)
	case !slices.Contains([]string{"", "hybrid", "sctp", "tcp"}, o.transport):
		return fmt.Errorf("-transport %q: want hybrid, sctp or tcp", o.transport)
	}
	return CheckBind(o.bind)
}

// checkHosts places the ranks. counted tells that their number was given.
func (o *runOptions) checkHosts(counted bool) error {
	var hosts []host
	var err error
	switch {
	case o.hosts != "" && o.hostFile != "":
		return errors.New("-hosts and -hostfile are mutually exclusive")
	case o.hosts != "":
		hosts, err = parseHosts(o.hosts)
	case o.hostFile != "":
		hosts, err = readHostFile(o.hostFile)
	case o.rsh != defaultRSH:
		return errors.New("-rsh requires -hosts or -hostfile")
	default:
		return o.checkAddr()
	}
	if err != nil {
		return err
	}
	if o.pcap != "" || o.trace != "" || o.profile {
		return errors.New("-pcap, -trace and -profile require all ranks on this host")
	}
	if binds(o.bind) {
		return errors.New("-bind-to requires all ranks on this host")
	}
	n := o.n
	if !counted {
		n = 0
	}
	if o.spread, err = newSpread(hosts, n, o.rsh, o.wdir); err != nil {
		return err
	}
	o.n = len(o.spread.place)
	if len(o.sections) == 1 {
		o.sections[0].n = o.n
	}
	for _, s := range o.sections {
		for range s.n {
			o.spread.dirs = append(o.spread.dirs, s.wdir)
		}
	}
	return nil
}

// checkAddr returns an error unless -addr is an address, or not given.
func (o *runOptions) checkAddr() error {
	if o.addr == "" {
		return nil
	}
	if _, err := netip.ParseAddr(o.addr); err != nil {
		return fmt.Errorf("-addr %q: want an IP address of this host", o.addr)
	}
	return nil
}

// localAddrs returns the variables that have ranks on this host use its loopback
// interface only, unless something says that others are to reach them.
func (o *runOptions) localAddrs(s *siteJob) []string {
	const name = "WEFT_ADDRS"
	given := func(v string) bool { return strings.HasPrefix(v, name+"=") }
	switch {
	case !s.loopbackOnly() || o.spread != nil && !o.spread.allHere():
		return nil
	case os.Getenv(name) != "" || slices.ContainsFunc(o.env, given):
		return nil
	case o.spread == nil && o.addr != "":
		return []string{name + "=" + o.addr}
	}
	names := os.Getenv(pmi.EnvNames)
	for _, v := range o.env {
		if n, ok := strings.CutPrefix(v, pmi.EnvNames+"="); ok {
			names = n
		}
	}
	if at, _, ok := strings.Cut(names, "/"); ok {
		// Jobs on other hosts may share the name server, and connect.
		if ap, err := netip.ParseAddrPort(at); err != nil || !ap.Addr().IsLoopback() {
			return nil
		}
	}
	return []string{name + "=127.0.0.1"}
}

// room is how many processes there is room for.
func (o *runOptions) room() int {
	n := o.universe
	if n == 0 && o.spread == nil {
		n = runtime.NumCPU()
	}
	if n == 0 {
		for _, h := range o.spread.hosts {
			n += h.slots
		}
	}
	return max(n, o.n)
}

// run builds the programs where needed, runs the job and returns its status. s may be nil.
func run(o runOptions, s *siteJob) (int, error) {
	dir, err := os.MkdirTemp("", "weft-run-")
	if err != nil {
		return cli.ExitFail, err
	}
	defer os.RemoveAll(dir)

	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, process.PassedSignals()...)
	defer signal.Stop(signals)
	if o.timeout > 0 {
		timer := time.AfterFunc(o.timeout, func() { stop(fmt.Errorf("%w within %v", errTimeout, o.timeout)) })
		defer timer.Stop()
	}

	places, err := placesOf(o.bind, o.n)
	if err != nil {
		return cli.ExitFail, err
	}
	programs, apps, err := o.programs(ctx, dir)
	if err != nil {
		return cli.ExitFail, err
	}
	if o.transport != "" {
		o.env = append(o.env, "WEFT_TRANSPORT="+o.transport)
	}
	if o.names != "" {
		names, err := readNameServer(o.names)
		if err != nil {
			return cli.ExitFail, err
		}
		o.env = append(o.env, pmi.EnvNames+"="+names)
	}
	o.env = append(o.env, o.localAddrs(s)...)
	o.env = append(o.env, libraryPath(o.env)...)
	var pcap *os.File
	if o.pcap != "" {
		// Created first: a job of hours must not end in "no such directory".
		if pcap, err = os.Create(o.pcap); err != nil {
			return cli.ExitFail, err
		}
		defer pcap.Close()
	}
	var trace *os.File
	if o.trace != "" {
		if trace, err = os.Create(o.trace); err != nil {
			return cli.ExitFail, err
		}
		defer trace.Close()
	}
	j := &job{
		n: o.n, programs: programs, apps: apps, env: o.env, dir: o.wdir,
		prefix: o.prefix, verbose: o.verbose, keepOn: o.keepOn, scratch: dir, capture: pcap != nil,
		profile: o.profile, trace: trace != nil,
		spread: o.spread, addr: o.addr, universe: o.room(), places: places, sites: s,
	}
	status, err := j.run(ctx, signals)
	if trace != nil {
		count, mergeErr := mergeTraces(trace, j.tracks())
		if mergeErr == nil {
			fmt.Fprintf(os.Stderr, "weft run: %d calls traced in %s\n", count, o.trace)
		}
		status, err = spoil(status, err, mergeErr)
	}
	if o.profile {
		status, err = spoil(status, err, j.printProfile(os.Stderr, o.json))
	}
	if pcap != nil {
		count, mergeErr := capture.Merge(pcap, j.captureFiles())
		if mergeErr == nil {
			fmt.Fprintf(os.Stderr, "weft run: %d datagrams captured in %s (tshark -r %[2]s -d udp.port==1024-65535,sctp)\n",
				count, o.pcap)
		}
		status, err = spoil(status, err, mergeErr)
	}
	return status, err
}

// errTimeout ends a job that takes longer than -timeout.
var errTimeout = errors.New("the job did not end")

// spoil is the outcome of a job after which something else went wrong, or not.
func spoil(status int, err, more error) (int, error) {
	if more != nil && status == cli.ExitOK {
		status = cli.ExitFail
	}
	return status, errors.Join(err, more)
}
