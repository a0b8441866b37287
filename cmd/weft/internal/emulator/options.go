// Package emulator is `weft net`: hosts that are network namespaces, joined by networks
// with the rates, delays and losses of package netem.
package emulator

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/netem"
)

// Bounds of the dimensions of an emulated network.
const (
	maxHosts = 64
	maxNets  = 8
)

// options are the flags of `weft net`.
type options struct {
	hosts, nets int
	params      netem.Params
	seed        uint64
	steps       []netem.Step
	control     string
	pcap        string
	stats       bool
	main        int
	on          int
	prefix      bool
	verbose     bool
	timeout     time.Duration
	env         []string
	cc          string
	offload     bool
	siteOptions
}

func newFlags(o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("weft net", flag.ContinueOnError)
	fs.IntVar(&o.hosts, "hosts", 2, "`number` of hosts")
	fs.IntVar(&o.nets, "nets", 1, "`number` of networks; each connects all hosts")
	for _, p := range []struct{ name, usage string }{
		{"rate", "line `rate`, such as 1gbit; 0 is unlimited"},
		{"delay", "one-way `delay`, such as 25us"},
		{"jitter", "random extra `delay` of up to this value"},
		{"loss", "`probability` that a packet is lost, such as 1%"},
		{"burst", "mean `number` of packets lost in a row"},
		{"gemodel", "Gilbert-Elliott loss model, `P,R[,BAD[,GOOD]]`: probabilities to enter and to leave the bad state, and of a loss in the bad and in the good state"},
		{"dup", "`probability` that a packet is duplicated"},
		{"reorder", "`probability` that a packet is delayed so that later ones overtake it"},
		{"corrupt", "`probability` that one bit of a packet is flipped"},
		{"mtu", "MTU: size of the largest IP packet in `bytes`"},
		{"queue", "size of the egress queue of a host in `bytes`"},
		{"downrate", "line `rate` into a host if it differs from -rate"},
		{"downqueue", "size of the ingress queue of a host in `bytes`"},
	} {
		fs.Func(p.name, p.usage, func(s string) error { return o.params.Set(p.name, s) })
	}
	o.params.MTU = 1500
	fs.Uint64Var(&o.seed, "seed", 1, "seed of all random decisions")
	fs.Func("at", "apply a `change` at a time after the start: \"5s cut net 1\", \"8s restore net 1\", \"2s set host 0 loss 5%\", \"0s set net 1 host 0 to 2 delay 9ms\"; may be repeated", func(s string) error {
		step, err := netem.ParseStep(s)
		o.steps = append(o.steps, step)
		return err
	})
	fs.StringVar(&o.control, "control", "", "create a Unix `socket` that takes one request per line: a change (cut, restore, set), answered by ok or an error, begun, answered when the commands start, or stats, answered by the counters as JSON")
	fs.StringVar(&o.pcap, "pcap", "", "write every delivered packet to a pcap `file`")
	fs.BoolVar(&o.stats, "stats", false, "print the counters of every host and network at the end")
	fs.IntVar(&o.main, "main", -1, "end all commands when the one on this `host` ends")
	fs.IntVar(&o.on, "on", -1, "run a single command on this `host` only")
	fs.BoolVar(&o.prefix, "l", false, "put the host before each line of output")
	fs.BoolVar(&o.verbose, "v", false, "report the start and the exit status of every process")
	fs.DurationVar(&o.timeout, "timeout", 0, "end all commands after this `time`; 0 means no limit")
	fs.BoolVar(&o.offload, "offload", true, "segmentation and receive offload (TSO, UDP GSO and GRO) on the interfaces of the hosts")
	fs.StringVar(&o.cc, "tcp", "", "TCP congestion `control` of the hosts: cubic, reno or bbr")
	fs.Func("x", "set an environment variable of the commands: `NAME=VALUE`", func(s string) error {
		if i := strings.IndexByte(s, '='); i < 1 {
			return errors.New("want NAME=VALUE")
		}
		o.env = append(o.env, s)
		return nil
	})
	o.siteFlags(fs)
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: weft net [flags] -- COMMAND [arguments] [ : COMMAND [arguments] … ]
       weft net -sites N [-hosts N] -wan "1gbit 9ms" [flags] -- COMMAND …

Net creates hosts (network namespaces) and networks between them, runs a command
on each host, and exits when all commands have exited. A single command runs on
every host, as the ranks of one MPI job. Several commands, separated by colons,
run on hosts 0, 1, 2, … in order. Host H has the address 10.77.N.(H+1) in network
N. It requires Linux and root.

The environment of the commands has WEFT_NET_HOST, WEFT_NET_HOSTS, WEFT_NET_ADDRS
and WEFT_NET_NAMES (network namespaces, for "ip netns exec"). If the commands and
the emulator outnumber the processors, it also has WEFT_SPIN=0 and GOMAXPROCS=1,
unless these variables are set: ranks that busy-poll, and more than one Go thread
per host, would take the processor time that the emulator and other hosts need.

The parameters apply to the packets that each host sends; -downrate and -downqueue
apply to the line into each host. Use -at to give some networks, hosts or pairs of
hosts other values, also from the start:

	-at "0s set net 1 delay 10ms" -at "0s set host 0 to 2 loss 5%"

With the same seed, the n-th packet from one host to another is treated the same.

`+sitesUsage)
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
	commands, err := splitCommands(fs.Args())
	if err == nil {
		err = o.check(commands)
	}
	if err != nil {
		return cli.Refuse(fs.Name(), err)
	}
	status, err := run(&o, commands)
	if err != nil {
		fmt.Fprintln(os.Stderr, "weft net:", err)
	}
	return status
}

// frugalVars are what commands find in their environment, unless it is set, if they and the
// emulator outnumber the processors. Ranks that poll would keep the network from its
// processor, and threads that the Go runtime wakes in case there is more to do would
// keep other hosts from theirs.
var frugalVars = []struct{ name, value string }{{"WEFT_SPIN", "0"}, {"GOMAXPROCS", "1"}}

// frugalEnv returns what of frugalVars n commands get, of so many processors.
func (o *options) frugalEnv(n, processors int, getenv func(string) string) (env []string) {
	if n < processors {
		return nil
	}
	for _, v := range frugalVars {
		given := func(s string) bool { return strings.HasPrefix(s, v.name+"=") }
		if getenv(v.name) == "" && !slices.ContainsFunc(o.env, given) {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}

// splitCommands splits the command line at words that are a colon.
func splitCommands(args []string) ([][]string, error) {
	var all [][]string
	for len(args) > 0 {
		i := slices.Index(args, ":")
		if i < 0 {
			i = len(args)
		}
		all = append(all, args[:i])
		args = args[min(i+1, len(args)):]
	}
	if len(all) == 0 || slices.ContainsFunc(all, func(c []string) bool { return len(c) == 0 }) {
		return nil, errors.New("no command given")
	}
	return all, nil
}

// check finds what the flag package cannot.
func (o *options) check(commands [][]string) error {
	if err := o.checkSites(); err != nil {
		return err
	}
	hosts := o.allHosts()
	switch {
	case o.hosts < 1 || o.hosts > maxHosts:
		return fmt.Errorf("-hosts %d: want 1 to %d", o.hosts, maxHosts)
	case o.nets < 1 || o.nets > maxNets:
		return fmt.Errorf("-nets %d: want 1 to %d", o.nets, maxNets)
	case o.main >= hosts || o.on >= hosts:
		return fmt.Errorf("-main %d -on %d: hosts are numbered 0 to %d", o.main, o.on, hosts-1)
	case len(commands) > hosts:
		return fmt.Errorf("%d commands for %d hosts", len(commands), hosts)
	case o.on >= 0 && len(commands) > 1:
		return errors.New("-on accepts only one command")
	case o.timeout < 0:
		return fmt.Errorf("-timeout %v is negative", o.timeout)
	}
	p := o.plan()
	for _, step := range o.steps {
		if err := p.check(step.Change, o); err != nil {
			return err
		}
	}
	return nil
}

// placement returns the host of each command that is started, and the command.
func (o *options) placement(commands [][]string) (hosts []int, argv [][]string) {
	switch {
	case o.on >= 0:
		return []int{o.on}, commands
	case len(commands) == 1:
		for h := range o.allHosts() {
			hosts, argv = append(hosts, h), append(argv, commands[0])
		}
	default:
		for h, c := range commands {
			hosts, argv = append(hosts, h), append(argv, c)
		}
	}
	return hosts, argv
}
