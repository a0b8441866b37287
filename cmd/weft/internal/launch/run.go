package launch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/capture"
	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/cmd/weft/internal/version"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/pmi"
)

// MaxRanks bounds -n: a slip of the finger must not start a fork bomb.
const MaxRanks = 4096

func Main(args []string) int {
	var o runOptions
	fs := runFlags(&o)
	args, err := expandConfig(args)
	if err == nil {
		args, err = translate(fs, args)
	}
	if err != nil {
		return cli.Refuse(fs.Name(), err)
	}
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	if o.version {
		return version.Main(nil)
	}
	err = o.timeout.complete(cli.Given(fs, "timeout"))
	if err == nil {
		err = o.check(fs.Args())
	}
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
	if o.sections, err = sections(section{n: o.n, wdir: o.wdir, path: o.path, env: o.ownEnv}, args); err != nil {
		return err
	}
	o.n = 0
	for _, s := range o.sections {
		o.n += s.n
	}
	if err := o.checkMapping(); err != nil {
		return err
	}
	switch {
	case o.universe < 0 || o.universe > MaxRanks:
		return fmt.Errorf("-usize %d: want 1 to %d", o.universe, MaxRanks)
	case o.json && !o.profile && !o.dryRun:
		return errors.New("-json requires -profile or -dry-run")
	case (o.class != "" || o.mode != "") && o.sites == "":
		return errors.New("-job-class and -mode require -sites")
	case o.perHost < 0:
		return fmt.Errorf("-ppn %d is negative", o.perHost)
	case o.over && o.notOver:
		return errors.New("-oversubscribe and -nooversubscribe are mutually exclusive")
	case !slices.Contains([]string{"", "hybrid", "sctp", "tcp"}, o.transport):
		return fmt.Errorf("-transport %q: want hybrid, sctp or tcp", o.transport)
	}
	return CheckBind(o.bind)
}

// checkMapping reads -map-by, which may have the number of ranks on each host (ppr:N:node), and
// whether there may be more ranks than slots.
func (o *runOptions) checkMapping() error {
	by := strings.ToLower(o.mapBy)
	for suffix, flag := range map[string]*bool{":oversubscribe": &o.over, ":nooversubscribe": &o.notOver} {
		if rest, ok := strings.CutSuffix(by, suffix); ok {
			by, *flag = rest, true
		}
	}
	if rest, ok := strings.CutPrefix(by, "ppr:"); ok {
		count, unit, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || unit != "node" {
			return fmt.Errorf("-map-by %q: want ppr:N:node", o.mapBy)
		}
		by, o.perHost = "slot", n
	}
	switch by {
	case "slot", "core", "hwthread":
		o.mapBy = "slot"
	case "node":
		o.mapBy = "node"
	default:
		return fmt.Errorf("-map-by %q: ranks are placed by slot (core and hwthread are the same), node or ppr:N:node", o.mapBy)
	}
	return nil
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
	case o.perHost > 0 && !counted:
		o.n, o.sections[0].n = o.perHost, o.perHost
		return o.checkAddr()
	case o.perHost > 0 && o.n > o.perHost && !o.over:
		return fmt.Errorf("%d ranks do not fit on this host with -ppn %d: name more with -hosts, or add -oversubscribe", o.n, o.perHost)
	case o.notOver && o.n > runtime.NumCPU():
		return fmt.Errorf("-nooversubscribe: %d ranks, and this host has %d processors", o.n, runtime.NumCPU())
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
	if o.spread, err = newSpread(hosts, n, o.rsh, o.wdir, placement{o.perHost, o.mapBy == "node", o.over}); err != nil {
		return err
	}
	o.spread.allEnv = o.allEnv
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
	if o.timeout.after > 0 {
		timer := time.AfterFunc(o.timeout.after, func() { stop(o.timeout.passed()) })
		defer timer.Stop()
	}

	places, err := placesOf(o.bind, o.n)
	if err != nil {
		return cli.ExitFail, err
	}
	programs, apps, err := o.programs(ctx, dir)
	if err != nil {
		return stopped(ctx, err)
	}
	warnOfForeign(os.Stderr, programs)
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

// spoil is the outcome of a job after which something else went wrong, or not.
func spoil(status int, err, more error) (int, error) {
	if more != nil && status == cli.ExitOK {
		status = cli.ExitFail
	}
	return status, errors.Join(err, more)
}
