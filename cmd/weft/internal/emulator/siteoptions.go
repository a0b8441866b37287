package emulator

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weftstack/weft/internal/netem"
)

// siteOptions are the flags of `weft net` for sites.
type siteOptions struct {
	sites    int // 0: networks that join all hosts
	gateways int // of each site
	wans     int
	wan      netem.Params
	wanGiven bool
	routed   bool
	overlap  bool
	cross    int    // flows of cross-traffic between two sites, in each direction
	crossCC  string // their congestion control
	daemons  string // yes, no
	mode     string
	legs     []sitePair // nil: all pairs
	wanLegs  int        // associations of a leg
	legCC    string     // congestion control of a leg
	dir      string
	given    []string // flags that ask for sites
}

// A sitePair is two sites, from 0, the lower one first.
type sitePair struct{ a, b int }

// sitesUsage is the part of the usage that is about sites.
const sitesUsage = `With -sites, N sites of -hosts hosts each have a LAN, with -gateways gateway hosts in
it, and are joined by WANs. Commands run on the hosts of site 1, then of site 2, and so
on. The parameters above are those of the LANs. All of a site shares its link to a WAN,
whose parameters -wan gives: a rate, the delay from site to site, and others by name.
The address of host H of site S is 10.77.S.H, that of gateway G 10.77.S.(255-G) and, in
WAN W, 198.18.W.(16*S+G). A sites file and keys for it are written, and a weft gateway
runs on each gateway host, unless there are none (-gateways 0 -routed yes). The
environment of the commands also has WEFT_NET_SITE,
WEFT_NET_NODE and WEFT_NET_GATEWAYS (their namespaces), and tells programs of package mpi
where they are, as weft run -sites does. An argument of a command that is just @ becomes
the path of the sites file.

Commands to -at and to the control socket name the parts of sites by numbers from 1:

	-at "5s kill site 1 gateway 1" -at "8s start site 1 gateway 1"
	-at "5s cut wan" -at "6s restore wan" -at "2s cut site 2 gateway 1"
	-at "0s set wan site 1 to 2 delay 20ms" -at "1s set lan site 2 host 3 loss 2%"

`

// siteFlags defines the flags for sites.
func (o *options) siteFlags(fs *flag.FlagSet) {
	noted := func(name, usage string, set func(string) error) {
		fs.Func(name, usage, func(s string) error {
			o.given = append(o.given, name)
			return set(s)
		})
	}
	number := func(to *int) func(string) error {
		return func(s string) (err error) {
			if *to, err = strconv.Atoi(s); err != nil {
				return fmt.Errorf("%q is not a number", s)
			}
			return nil
		}
	}
	yes := func(to *bool) func(string) error {
		return func(s string) error {
			if s != "yes" && s != "no" {
				return errors.New("want yes or no")
			}
			*to = s == "yes"
			return nil
		}
	}
	o.gateways, o.wans, o.wanLegs, o.mode, o.daemons = 1, 1, 1, "piecewise", "yes"
	o.wan.MTU = 1500
	fs.IntVar(&o.sites, "sites", 0, "`number` of sites with -hosts hosts each; 0: all hosts are in all networks")
	noted("gateways", "with -sites: `number` of gateway hosts of each site (default 1)", number(&o.gateways))
	noted("wan", "with -sites: the `link` of each site to the others, such as \"1gbit 9ms loss 1% queue 1MiB\"", func(s string) error {
		o.wanGiven = true
		return o.wan.ParseLink(s)
	})
	fs.Func("lan", "the `link` of each host, such as \"1gbit 25us\": -rate, -delay and others in one", o.params.ParseLink)
	noted("wans", "with -sites: `number` of WANs; gateways have an address in each (default 1)", number(&o.wans))
	noted("routed", "with -sites: whether hosts reach hosts of other sites directly, `yes` or no; if not, a gateway gets what they send there (default no)", yes(&o.routed))
	noted("overlap", "with -sites: whether all LANs have the same addresses, `yes` or no (default no)", yes(&o.overlap))
	noted("cross", "with -sites: `number` of bulk TCP flows that use the WAN from each site to each other one, and their congestion control if it is not cubic, such as \"2 reno\" (default 0)", func(s string) error {
		n, cc, _ := strings.Cut(s, " ")
		if o.crossCC = strings.TrimSpace(cc); o.crossCC == "" {
			o.crossCC = "cubic"
		}
		return number(&o.cross)(n)
	})
	noted("daemons", "with -sites: whether a weft gateway runs on each gateway host, `yes` or no (default yes)", func(s string) error {
		if o.daemons = s; s != "yes" && s != "no" {
			return errors.New("want yes or no")
		}
		return nil
	})
	noted("mode", "with -sites: `mode` in the sites file: piecewise, chained or lossy (default piecewise)", func(s string) error {
		if o.mode = s; s != "piecewise" && s != "chained" && s != "lossy" {
			return errors.New("want piecewise, chained or lossy")
		}
		return nil
	})
	noted("legs", "with -sites: `pairs` of sites whose gateways have legs, such as 1-2,2-3 (default: all)", o.parseLegs)
	noted("associations", "with -sites: `number` of associations of each leg in the sites file (default 1)", number(&o.wanLegs))
	noted("congestion", "with -sites: congestion `control` of each leg in the sites file: bbr, cubic or newreno (default bbr)", func(s string) error {
		if o.legCC = s; s != "bbr" && s != "cubic" && s != "newreno" {
			return errors.New("want bbr, cubic or newreno")
		}
		return nil
	})
	noted("dir", "with -sites: `directory` for the sites file and its keys, which must not have them (default: one that is removed at the end)", func(s string) error {
		o.dir = s
		return nil
	})
}

// parseLegs parses pairs of sites: 1-2,2-3.
func (o *options) parseLegs(s string) error {
	o.legs = []sitePair{}
	for _, word := range strings.Split(s, ",") {
		x, y, _ := strings.Cut(word, "-")
		a, err1 := strconv.Atoi(x)
		b, err2 := strconv.Atoi(y)
		if err1 != nil || err2 != nil || a < 1 || b < 1 || a == b {
			return fmt.Errorf("%q: want pairs of sites, such as 1-2,2-3", s)
		}
		pair := sitePair{min(a, b) - 1, max(a, b) - 1}
		if slices.Contains(o.legs, pair) {
			return fmt.Errorf("%q: sites %d and %d are there twice", s, pair.a+1, pair.b+1)
		}
		o.legs = append(o.legs, pair)
	}
	return nil
}

// allHosts returns the number of hosts that run commands.
func (o *options) allHosts() int { return max(o.sites, 1) * o.hosts }

// maxAllNodes bounds the namespaces of sites.
const maxAllNodes = 128

// checkSites checks the flags for sites, and completes them.
func (o *options) checkSites() error {
	if o.sites == 0 {
		if len(o.given) > 0 {
			return fmt.Errorf("-%s is for -sites", o.given[0])
		}
		return nil
	}
	switch {
	case o.sites < 1 || o.sites > maxSites:
		return fmt.Errorf("-sites %d: want 1 to %d", o.sites, maxSites)
	case o.hosts < 1 || o.hosts > maxHosts:
		return fmt.Errorf("-hosts %d: want 1 to %d", o.hosts, maxHosts)
	case o.gateways < 0 || o.gateways > maxGateways:
		return fmt.Errorf("-gateways %d: want 0 to %d", o.gateways, maxGateways)
	case o.gateways == 0 && !o.routed && o.sites > 1:
		return errors.New("-gateways 0: without -routed yes nothing joins the sites")
	case o.sites*(o.hosts+o.gateways+1) > maxAllNodes:
		return fmt.Errorf("-sites %d -hosts %d -gateways %d: want at most %d hosts and gateways, with one more for each site",
			o.sites, o.hosts, o.gateways, maxAllNodes)
	case o.wans < 1 || o.wans > maxWANs:
		return fmt.Errorf("-wans %d: want 1 to %d", o.wans, maxWANs)
	case o.nets != 1:
		return fmt.Errorf("-nets %d: each site has one LAN (want -wans)", o.nets)
	case o.routed && o.overlap:
		return errors.New("-routed yes -overlap yes: hosts of two sites with the same address cannot reach each other")
	case o.routed && o.params.MTU > o.wan.MTU:
		return fmt.Errorf("-routed yes: packets of hosts (MTU %d) are longer than those of the WAN (MTU %d)", o.params.MTU, o.wan.MTU)
	case o.cross < 0 || o.cross > maxCross:
		return fmt.Errorf("-cross %d: want 0 to %d", o.cross, maxCross)
	case o.cross > 0 && o.sites == 1:
		return fmt.Errorf("-cross %d: there is one site", o.cross)
	case o.wanLegs < 1 || o.wanLegs > maxWanLegs:
		return fmt.Errorf("-associations %d: want 1 to %d", o.wanLegs, maxWanLegs)
	case !o.wanGiven && o.sites > 1:
		return errors.New(`-sites: want the link of a site too, such as -wan "1gbit 9ms"`)
	}
	for _, l := range o.legs {
		if l.b >= o.sites {
			return fmt.Errorf("-legs: there is no site %d (-sites %d)", l.b+1, o.sites)
		}
	}
	if o.legs == nil {
		for a := range o.sites {
			for b := a + 1; b < o.sites; b++ {
				o.legs = append(o.legs, sitePair{a, b})
			}
		}
	}
	return nil
}

// maxWanLegs bounds the associations of a leg.
const maxWanLegs = 16
