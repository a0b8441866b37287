package emulator

import (
	"flag"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/netem"
	"github.com/weftstack/weft/internal/sites"
)

// planned returns the options and the plan for a command line.
func planned(t *testing.T, args ...string) (*options, *plan) {
	t.Helper()
	var o options
	fs := newFlags(&o)
	fs.Init("weft net", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if err := fs.Parse(append(args, "x")); err != nil {
		t.Fatal(err)
	}
	if err := o.check([][]string{{"x"}}); err != nil {
		t.Fatal(err)
	}
	return &o, o.plan()
}

// packet returns the beginning of a packet to an address.
func packet(to string) []byte {
	pkt := make([]byte, 20)
	pkt[0] = 0x45
	dst := netip.MustParseAddr(to).As4()
	copy(pkt[16:], dst[:])
	return pkt
}

// way returns the ports that a packet passes from a node's first or other interface, and its
// last node.
func way(p *plan, f *netem.Fabric, node string, iface int, to string) string {
	i := slices.IndexFunc(p.nodes, func(n planNode) bool { return n.name == node })
	pkt, t := packet(to), p.taps[p.nodes[i].first+iface]
	net, from, at := t.net, t.port, p.next(f, t, pkt)
	var b strings.Builder
	for range 6 {
		if at < 0 {
			return b.String() + "nowhere"
		}
		fmt.Fprintf(&b, "%s > ", p.portName(net, from))
		if i := p.tapAt(net, at); i >= 0 {
			return b.String() + p.nodes[p.taps[i].node].name
		}
		var ok bool
		if net, from, at, ok = p.forward(net, at, pkt); !ok {
			return b.String() + "lost"
		}
	}
	return b.String() + "a loop"
}

func TestSitesRoutes(t *testing.T) {
	all := []string{"-sites", "3", "-hosts", "2", "-gateways", "2", "-wans", "2", "-wan", "1gbit 9ms", "-cross", "1"}
	for _, tt := range []struct {
		flags []string
		node  string
		iface int
		to    string
		want  string
	}{
		{nil, "s1h1", 0, "10.77.1.2", "lan site 1 host 1 > s1h2"},
		{nil, "s2h2", 0, "10.77.2.253", "lan site 2 host 2 > s2g2"},
		{nil, "s2g2", 0, "10.77.2.1", "lan site 2 gateway 2 > s2h1"},
		{nil, "s1h1", 0, "10.77.3.2", "lan site 1 host 1 > s1g1"},
		{nil, "s1g1", 0, "10.77.3.2", "nowhere"},
		{nil, "s1h1", 0, "10.77.4.2", "nowhere"},
		{nil, "s1h1", 0, "10.77.1.3", "nowhere"},
		{nil, "s1h1", 0, "198.18.1.33", "nowhere"},
		{nil, "s1g2", 1, "198.18.1.33", "wan 1 site 1 gateway 2 > wan 1 site 1 > wan 1 site 2 router > s2g1"},
		{nil, "s1g2", 2, "198.18.2.50", "wan 2 site 1 gateway 2 > wan 2 site 1 > wan 2 site 3 router > s3g2"},
		{nil, "s1g2", 2, "198.18.2.17", "wan 2 site 1 gateway 2 > s1g1"},
		{nil, "s1g2", 2, "198.18.1.17", "nowhere"},
		{nil, "s1x", 1, "198.18.2.63", "wan 2 site 1 cross-traffic > wan 2 site 1 > wan 2 site 3 router > s3x"},
		{[]string{"-routed", "yes"}, "s1h1", 0, "10.77.3.2", "lan site 1 host 1 > wan 1 site 1 > lan site 3 router > s3h2"},
		{[]string{"-routed", "yes"}, "s3h1", 0, "10.77.1.254", "lan site 3 host 1 > wan 1 site 3 > lan site 1 router > s1g1"},
		{[]string{"-overlap", "yes"}, "s3h1", 0, "10.77.1.2", "lan site 3 host 1 > s3h2"},
		{[]string{"-overlap", "yes"}, "s3h1", 0, "10.77.2.2", "nowhere"},
	} {
		o, p := planned(t, append(slices.Clone(all), tt.flags...)...)
		got := strings.Replace(way(p, p.fabric(o), tt.node, tt.iface, tt.to), "cross-traffic 1", "cross-traffic", 1)
		if got != tt.want {
			t.Errorf("%v: %s to %s: %s, want %s", tt.flags, tt.node, tt.to, got, tt.want)
		}
	}
}

// Hosts send what is for other sites to the first gateway that is not cut off.
func TestSitesDefaultGateway(t *testing.T) {
	o, p := planned(t, "-sites", "2", "-gateways", "2", "-wan", "9ms")
	f := p.fabric(o)
	for _, tt := range []struct{ command, want string }{
		{"restore", "s1g1"}, {"cut site 1 gateway 1", "s1g2"}, {"cut site 1 gateway 2", "nowhere"}, {"restore site 1 gateway 1", "s1g1"},
	} {
		c, err := netem.ParseChange(tt.command)
		if err == nil {
			err = p.apply(c, f)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := way(p, f, "s1h1", 0, "10.77.2.1"); !strings.HasSuffix(got, tt.want) {
			t.Errorf("after %q packets go %s, want to %s", tt.command, got, tt.want)
		}
	}
}

// Every node has an address of its own, which leads to it.
func TestSitesAddresses(t *testing.T) {
	o, p := planned(t, "-sites", "8", "-hosts", "7", "-gateways", "8", "-wans", "4", "-wan", "9ms", "-cross", "1", "-routed", "yes")
	seen := make(map[[4]byte]string)
	for _, n := range p.nodes {
		for _, f := range n.ifaces {
			if was, ok := seen[f.addr]; ok {
				t.Errorf("%s and %s have the address %v", was, n.name, f.addr)
			}
			seen[f.addr] = n.name
		}
	}
	f := p.fabric(o)
	for _, from := range p.nodes {
		for _, to := range p.nodes {
			for i := range min(len(from.ifaces), len(to.ifaces)) {
				if from.kind == kindCross != (to.kind == kindCross) || from.name == to.name {
					continue
				}
				addr := netip.AddrFrom4(to.ifaces[i].addr).String()
				if got := way(p, f, from.name, i, addr); !strings.HasSuffix(got, "> "+to.name) {
					t.Errorf("%s to %s (%s): %s", from.name, to.name, addr, got)
				}
			}
		}
	}
}

func TestSitesFile(t *testing.T) {
	o, p := planned(t, "-sites", "3", "-hosts", "2", "-gateways", "2", "-wans", "2", "-wan", "9ms", "-legs", "1-2,3-2", "-mode", "chained", "-associations", "4", "-congestion", "newreno")
	want := `# Written by weft net: 3 sites of 2 hosts.
jobs key-file jobs.key
mode chained
site s1
  hosts s1h1 s1h2
  gateway a lan 10.77.1.254:5747 wan 198.18.1.17:5748 198.18.2.17:5748 status 127.0.0.1:9117
  gateway b lan 10.77.1.253:5747 wan 198.18.1.18:5748 198.18.2.18:5748 status 127.0.0.1:9118
  tcp 10.77.1.0/24
site s2
  hosts s2h1 s2h2
  gateway a lan 10.77.2.254:5747 wan 198.18.1.33:5748 198.18.2.33:5748 status 127.0.0.1:9133
  gateway b lan 10.77.2.253:5747 wan 198.18.1.34:5748 198.18.2.34:5748 status 127.0.0.1:9134
  tcp 10.77.2.0/24
site s3
  hosts s3h1 s3h2
  gateway a lan 10.77.3.254:5747 wan 198.18.1.49:5748 198.18.2.49:5748 status 127.0.0.1:9149
  gateway b lan 10.77.3.253:5747 wan 198.18.1.50:5748 198.18.2.50:5748 status 127.0.0.1:9150
  tcp 10.77.3.0/24
leg s1 s2 key-file s1-s2.key associations 4 congestion newreno
leg s2 s3 key-file s2-s3.key associations 4 congestion newreno
`
	if got := p.sitesText(o); got != want {
		t.Errorf("sites file:\n%s\nwant\n%s", got, want)
	}
	dir := t.TempDir()
	if err := o.writeSites(dir); err != nil {
		t.Fatal(err)
	}
	if err := o.writeSites(dir); err == nil {
		t.Error("a sites file was overwritten")
	}
	f, err := sites.Read(filepath.Join(dir, sitesFileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.JobsKey(); err != nil {
		t.Error(err)
	}
	for _, l := range f.Legs {
		if _, err := l.Key(); err != nil {
			t.Error(err)
		}
	}
	if none, _ := planned(t, "-sites", "2", "-wan", "9ms", "-gateways", "0", "-routed", "yes"); none.hasSitesFile() || !o.hasSitesFile() {
		t.Error("want a sites file with gateways, and none without")
	}
	if at, err := f.Place("s3h2", 5); err != nil || at.Site.Number != 3 || at.Node != 2 {
		t.Errorf("host s3h2 is at %+v, %v", at, err)
	}
}

func TestSitesWrongUse(t *testing.T) {
	sites := func(args ...string) []string { return append([]string{"-sites", "2", "-wan", "1gbit 9ms"}, args...) }
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-gateways", "2"}, "-gateways is for -sites"},
		{[]string{"-cross", "1"}, "-cross is for -sites"},
		{[]string{"-sites", "2"}, "want the link of a site"},
		{sites("-sites", "9"), "-sites 9: want 1 to 8"},
		{sites("-sites", "-1"), "-sites -1: want 1 to 8"},
		{sites("-hosts", "65"), "-hosts 65: want 1 to 64"},
		{sites("-hosts", "64", "-sites", "2"), "want at most 128"},
		{sites("-gateways", "9"), "-gateways 9: want 0 to 8"},
		{sites("-gateways", "0"), "nothing joins the sites"},
		{sites("-wans", "5"), "-wans 5: want 1 to 4"},
		{sites("-nets", "2"), "want -wans"},
		{sites("-routed", "yes", "-overlap", "yes"), "same address"},
		{sites("-routed", "yes", "-mtu", "9000"), "longer than those of the WAN"},
		{sites("-cross", "17"), "-cross 17: want 0 to 16"},
		{sites("-sites", "1", "-cross", "1"), "there is one site"},
		{sites("-associations", "17"), "-associations 17: want 1 to 16"},
		{sites("-congestion", "reno"), "want bbr, cubic or newreno"},
		{sites("-legs", "1-3"), "there is no site 3"},
		{sites("-at", "0s cut net 0"), "sites have no nets"},
		{sites("-at", "0s cut site 3"), "there are 2 sites"},
		{sites("-main", "4"), "hosts are numbered 0 to 3"},
		{[]string{"-at", "0s cut wan"}, "there are no sites"},
	} {
		var o options
		fs := newFlags(&o)
		fs.SetOutput(io.Discard)
		err := fs.Parse(append(tt.args, "x"))
		if err == nil {
			err = o.check([][]string{{"x"}})
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want an error with %q", tt.args, err, tt.want)
		}
	}
	for _, tt := range []struct{ name, value, want string }{
		{"routed", "maybe", "want yes or no"}, {"legs", "1-1", "want pairs"}, {"legs", "1-2,2-1", "there twice"}, {"legs", "1", "want pairs"},
		{"wan", "fast", "no rate"}, {"lan", "9ms loss 2", "no probability"}, {"mode", "fast", "want piecewise, chained or lossy"}, {"cross", "x", "not a number"},
		{"daemons", "1", "want yes or no"},
	} {
		fs := newFlags(new(options))
		fs.SetOutput(io.Discard)
		if err := fs.Set(tt.name, tt.value); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("-%s %s: %v, want an error with %q", tt.name, tt.value, err, tt.want)
		}
	}
}
