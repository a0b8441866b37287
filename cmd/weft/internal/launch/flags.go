package launch

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/internal/sites"
)

// runOptions are the flags of `weft run`.
type runOptions struct {
	n         int
	prefix    bool
	transport string
	pcap      string
	timeout   timeLimit
	wdir      string
	path      string
	version   bool
	verbose   bool
	keepOn    bool
	trace     string
	profile   bool
	json      bool
	env       []string // K=V, in order
	ownEnv    []string // K=V, of the first program only
	allEnv    bool

	hosts    string
	hostFile string
	rsh      string
	addr     string
	universe int
	names    string
	bind     string
	perHost  int
	mapBy    string
	over     bool
	notOver  bool
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
	fs.BoolVar(&o.prefix, "l", false, "put the rank before each line of output")
	fs.StringVar(&o.transport, "transport", "", "transport of messages, a `name`: hybrid (SCTP and RDMA, the default), sctp or tcp")
	fs.StringVar(&o.pcap, "pcap", "", "write every datagram that the ranks send to a pcap `file`")
	fs.StringVar(&o.trace, "trace", "", "write a trace of all MPI calls to a `file`, for the Chrome or Perfetto trace viewer")
	fs.BoolVar(&o.profile, "profile", false, "at the end print the time spent in MPI calls and the traffic between each pair of ranks to standard error")
	fs.BoolVar(&o.json, "json", false, "with -profile or -dry-run: print JSON")
	fs.Var((*seconds)(&o.timeout.after), "timeout", "end the job after this `time`, 5m or, in seconds, 300, with status 124, "+
		"and say what each rank waits for; 0 means no limit (default: $"+envTimeout+")")
	fs.StringVar(&o.wdir, "wdir", "", "working `directory` of the ranks; a program with a relative path is looked up there first")
	fs.StringVar(&o.path, "path", "", "`directories` to look up programs in before those of $PATH, separated by colons")
	fs.Func("configfile", "the only option: read the others and the programs from a `file`, one program in each line", func(string) error {
		return errors.New("want no other options and arguments: they are in the file")
	})
	fs.BoolVar(&o.version, "version", false, "print the version")
	fs.BoolVar(&o.verbose, "v", false, "report the start and the exit status of every process")
	fs.StringVar(&o.hosts, "hosts", "", "run the ranks on other hosts: `NAME:SLOTS,…`")
	fs.StringVar(&o.hostFile, "hostfile", "", "like -hosts, from a `file` with lines NAME slots=N max_slots=M")
	fs.StringVar(&o.rsh, "rsh", defaultRSH, "remote shell: a `command` that gets a host name and a shell script as its last arguments")
	fs.StringVar(&o.sites, "sites", os.Getenv(sites.EnvFile), "sites `file`: which hosts or ranks form a site, and which gateways carry messages between sites (default: $"+sites.EnvFile+")")
	fs.StringVar(&o.class, "job-class", "", "class of the job in the sites file: a `name`")
	fs.StringVar(&o.mode, "mode", "", "when messages to other sites count as sent, a `name`: piecewise, chained or lossy (default: what the sites file says)")
	fs.BoolVar(&o.dryRun, "dry-run", false, "start nothing: print where each rank would run, and by which gateways ranks would talk to each other")
	fs.StringVar(&o.addr, "addr", "", "`address` of this host that the ranks use (default: loopback); with -hosts, the address at which ranks reach the launcher (default: detected)")
	fs.IntVar(&o.universe, "usize", 0, "MPI_UNIVERSE_SIZE: the `number` of processes that the job can have (default: slots of -hosts, or processors)")
	fs.StringVar(&o.names, "nameserver", "", "name server for published ports: the `file` that weft nameserver -file has written (default: the launcher itself)")
	fs.StringVar(&o.bind, "bind-to", "none", "bind each rank to a processor of its own, of a `kind`: core (all its hardware threads), hwthread or none; spawned ranks are not bound")
	fs.IntVar(&o.perHost, "ppn", 0, "at most this `number` of ranks on each host, whatever its slots; without -n as many on each")
	fs.StringVar(&o.mapBy, "map-by", "slot", "how ranks are placed on hosts, a `rule`: slot fills a host before the next (core and hwthread are the same), node takes the hosts in turn, ppr:N:node is -ppn N")
	fs.BoolVar(&o.over, "oversubscribe", false, "with -hosts: more ranks than slots are placed on the hosts in turn; on one host that is always allowed")
	fs.BoolVar(&o.notOver, "nooversubscribe", false, "refuse more ranks than processors of this host, or slots of the hosts")
	fs.BoolVar(&o.allEnv, "genvall", false, "pass all variables on to other hosts, not only those with names WEFT_…")
	fs.BoolVar(&o.keepOn, "ft", false, "fault tolerance: report a rank that ends or stops answering to the others and keep the job running")
	fs.Func("x", "set an environment variable of the ranks: `NAME=VALUE`, or NAME to pass on its current value", addVariable(&o.env))
	fs.Func("env", "the same for this program only: `NAME=VALUE`, or two arguments NAME VALUE", addVariable(&o.ownEnv))
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: weft run [flags] PROGRAM [arguments] [: [-n N] [-wdir DIR] PROGRAM [arguments]]...

The names mpiexec and mpirun stand for weft run.

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

`+aliasUsage())
	}
	return fs
}

// addVariable returns the function of a flag that adds an environment variable to env.
func addVariable(env *[]string) func(string) error {
	return func(s string) error {
		name, _, set := strings.Cut(s, "=")
		switch {
		case name == "":
			return errors.New("the name of the variable is empty")
		case set && (name == pmi.EnvNames || name == pmi.EnvToken || name == sites.EnvProcess):
			return fmt.Errorf("%s holds a secret, and other users can read command lines: set it in the environment of weft run", name)
		}
		if !set {
			value, ok := os.LookupEnv(name)
			if !ok {
				return nil // the ranks do not have it either
			}
			s = name + "=" + value
		}
		*env = append(*env, s)
		return nil
	}
}
