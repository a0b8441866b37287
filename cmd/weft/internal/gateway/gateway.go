// Package gateway is `weft gateway`: a daemon that relays messages between the processes of its site and other sites,
// and commands that show its state, make keys and explain a sites file.
package gateway

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"os/signal"
	"strings"

	"github.com/weftstack/weft/cmd/weft/internal/gateway/tcp"
	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/internal/units"
)

// options are the flags of `weft gateway`.
type options struct {
	file, site, gateway string
	status              string
	bindLAN, bindWAN    []netip.AddrPort
	memory              units.Bytes
	maxFlows            int
	logJSON             bool
	tcp                 *tcp.Options
}

// commands are those behind `weft gateway`.
var commands = map[string]func(args []string) int{"status": statusMain, "keygen": keygenMain, "check": checkMain}

// Main is `weft gateway`.
func Main(args []string) int {
	if len(args) > 0 && commands[args[0]] != nil {
		return commands[args[0]](args[1:])
	}
	var o options
	fs := newFlags(&o)
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	if err := o.check(fs); err != nil {
		return cli.Refuse(fs.Name(), err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, process.TermSignal)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "weft gateway:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

func newFlags(o *options) *flag.FlagSet {
	fs := flag.NewFlagSet("weft gateway", flag.ContinueOnError)
	fs.StringVar(&o.file, "sites", "", "sites `file`")
	fs.StringVar(&o.site, "site", "", "`name` of the site")
	fs.StringVar(&o.gateway, "gateway", "", "`name` of the gateway in the site (default: the only one)")
	fs.StringVar(&o.status, "status", "", "HTTP `address` of /status and /metrics, or off (default: that of the sites file, or "+defaultStatus+")")
	bind := func(name string, list *[]netip.AddrPort, what string) {
		fs.Func(name, "`addresses` to listen on instead of those of the sites file, which "+what+" use, behind NAT: ADDRESS:PORT,…", func(s string) error {
			for item := range strings.SplitSeq(s, ",") {
				a, err := netip.ParseAddrPort(item)
				if err != nil || a.Port() == 0 {
					return fmt.Errorf("%q: want ADDRESS:PORT, such as 10.0.0.5:5748", item)
				}
				*list = append(*list, a)
			}
			return nil
		})
	}
	bind("bind-lan", &o.bindLAN, "processes")
	bind("bind-wan", &o.bindWAN, "other gateways")
	fs.Var(&o.memory, "memory", "`limit` of the memory of all messages under way (default 64MiB)")
	fs.IntVar(&o.maxFlows, "max-flows", 0, "largest `number` of flows (default 65536)")
	fs.BoolVar(&o.logJSON, "log-json", false, "log as JSON")
	o.tcp = tcp.Flags(fs)
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: weft gateway -sites FILE -site NAME [-gateway NAME] [flags]
       weft gateway status [-json] [-wait TIME] [ADDRESS]
       weft gateway check [-json] FILE
       weft gateway keygen FILE

Gateway relays messages of MPI jobs between the processes of its site and the
gateways of other sites, until it is interrupted or terminated. The sites file says
who belongs to which site, and at which addresses; docs/gateways.md describes it.
The files with keys are named there: they must not be readable by others.

It carries TCP connections of other programs, too, to the ranges of other sites (lines
"tcp" of the sites file): those that rules of the packet filter lead to -tcp, which need
Linux and root, and those that programs ask for at the port -socks. It connects to
hosts in the ranges of its own site for other sites, unless -tcp-refuse is given.

It logs to standard error which peers come and go, and who was refused. A site
with several gateways shares its flows among them; when one ends, they continue
through the others.

	status   shows legs, flows and counters of a running gateway
	check    reads a sites file, and prints sites, legs and routes
	keygen   writes a new random key to a file that only its owner may read

`)
		fs.PrintDefaults()
	}
	return fs
}

// Limits of the flags.
const (
	minMemory   = 1 << 20
	maxMemory   = min(1<<40, math.MaxInt)
	maxMaxFlows = 1 << 24
)

// check finds what the flag package cannot.
func (o *options) check(fs *flag.FlagSet) error {
	switch {
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.file == "":
		return errors.New("want -sites FILE")
	case o.site == "":
		return errors.New("want -site NAME")
	case cli.Given(fs, "memory") && (o.memory < minMemory || o.memory > maxMemory):
		return fmt.Errorf("-memory %v: want %v to %v", o.memory, units.Bytes(minMemory), units.Bytes(maxMemory))
	case cli.Given(fs, "max-flows") && (o.maxFlows < 1 || o.maxFlows > maxMaxFlows):
		return fmt.Errorf("-max-flows %d: want 1 to %d", o.maxFlows, maxMaxFlows)
	case o.status != "" && o.status != "off":
		if _, err := netip.ParseAddrPort(o.status); err != nil {
			return fmt.Errorf("-status %q: want ADDRESS:PORT, such as %s, or off", o.status, defaultStatus)
		}
	}
	return o.tcp.Check()
}

// find returns the site and the gateway that the flags name.
func (o *options) find(f *sites.File) (*sites.Site, *sites.Gateway, error) {
	s := f.Site(o.site)
	if s == nil {
		var names []string
		for _, s := range f.Sites {
			names = append(names, s.Name)
		}
		return nil, nil, fmt.Errorf("-site %s: %s has no such site, but %s", o.site, f.Name, strings.Join(names, ", "))
	}
	if o.gateway == "" && len(s.Gateways) == 1 {
		return s, s.Gateways[0], nil
	}
	if g := s.Gateway(o.gateway); g != nil {
		return s, g, nil
	}
	var names []string
	for _, g := range s.Gateways {
		names = append(names, g.Name)
	}
	switch {
	case len(names) == 0:
		return nil, nil, fmt.Errorf("%s:%d: site %s has no gateway", f.Name, s.Line, s.Name)
	case o.gateway == "":
		return nil, nil, fmt.Errorf("site %s has several gateways: want -gateway with one of %s", s.Name, strings.Join(names, ", "))
	}
	return nil, nil, fmt.Errorf("-gateway %s: site %s has no such gateway, but %s", o.gateway, s.Name, strings.Join(names, ", "))
}

// newLog returns the log of the daemon, on standard error.
func (o *options) newLog() *slog.Logger {
	if o.logJSON {
		return slog.New(slog.NewJSONHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}
