package sites

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/sctp"
)

const two = `
jobs key-file jobs.key        # one key for all jobs
mode chained
site lyon
  hosts n1 n2 n[03-05].lan
  gateway a lan 10.0.0.254:5747 wan 192.0.2.1:5748 192.0.2.129:5748 status 127.0.0.1:9180
  gateway b lan 10.0.0.253:5747 wan 192.0.2.2:5748
  tcp 10.1.0.0/16 2001:db8:1::/48
site tokyo 4
  hosts t[1,3-4]
  gateway a lan 10.0.0.254:5747 wan [2001:db8::1]:5748
site paris
  gateway a lan 10.0.0.254:5747 wan 198.51.100.1:5748
leg lyon tokyo key-file wan.key associations 2 rate 1.5gbit congestion newreno
leg tokyo paris key-file /etc/weft/paris.key
job-class bulk weight 2 rate 200mbit
job-class fast weight 10
`

func parse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("dir/sites", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParse(t *testing.T) {
	f := parse(t, two)
	if f.Mode != Chained || f.JobsKeyFile != filepath.Join("dir", "jobs.key") {
		t.Errorf("mode %q, key file %q", f.Mode, f.JobsKeyFile)
	}
	lyon, tokyo, paris := f.Site("lyon"), f.Site("tokyo"), f.Site("paris")
	for i, s := range []*Site{lyon, tokyo, paris} {
		if want := []uint16{1, 4, 5}[i]; s.Number != want || f.SiteNumber(want) != s {
			t.Errorf("site %s has the number %d, want %d", s.Name, s.Number, want)
		}
	}
	if want := []string{"n1", "n2", "n03.lan", "n04.lan", "n05.lan"}; !slices.Equal(lyon.Hosts, want) {
		t.Errorf("hosts %q, want %q", lyon.Hosts, want)
	}
	if want := []string{"t1", "t3", "t4"}; !slices.Equal(tokyo.Hosts, want) {
		t.Errorf("hosts %q, want %q", tokyo.Hosts, want)
	}
	g := lyon.Gateway("a")
	if g.Number != 1 || g.LANAddr().String() != "10.0.0.254:5747" && g.LANAddr().String() != "10.0.0.254:5747/5747" ||
		len(g.WANAddr().Addrs) != 2 || g.WANAddr().Port != 5748 || g.Status.String() != "127.0.0.1:9180" {
		t.Errorf("gateway %+v, %v, %v", g, g.LANAddr(), g.WANAddr())
	}
	if b := lyon.Gateway("b"); b.Number != 2 || b.Status.IsValid() || lyon.Gateway("c") != nil {
		t.Errorf("gateway %+v", b)
	}
	if want := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8:1::/48")}; !slices.Equal(lyon.TCP, want) {
		t.Errorf("ranges %v, want %v", lyon.TCP, want)
	}
	l := f.Leg(tokyo, lyon)
	if l.Associations != 2 || l.Rate != 1_500_000_000 || l.Congestion.Algorithm() != sctp.NewReno || l.KeyFile != filepath.Join("dir", "wan.key") || l.Other(lyon) != tokyo || l.Other(paris) != nil {
		t.Errorf("leg %+v", l)
	}
	if l := f.Leg(paris, tokyo); l.KeyFile != "/etc/weft/paris.key" || l.Associations != 1 || l.Rate != 0 || l.Congestion != DefaultCongestion {
		t.Errorf("leg %+v", l)
	}
	if c := f.Class("fast"); c.Number != 2 || c.Weight != 10 || c.Rate != 0 || f.Class("bulk").Rate != 200_000_000 || f.Class("x") != nil {
		t.Errorf("class %+v", c)
	}
	if p := f.Path(lyon, paris); names(p) != "lyon-tokyo-paris" || f.Next(lyon, paris) != tokyo || f.Next(lyon, tokyo) != tokyo || f.Next(lyon, lyon) != nil {
		t.Errorf("path %s", names(p))
	}
}

// Each mistake is told with its line, the word, and what was expected.
func TestMistakes(t *testing.T) {
	const head = "jobs key-file k\nsite a\n" // two lines
	gw := func(n int) string { return fmt.Sprintf("gateway g lan 10.0.0.%d:1 wan 192.0.2.%[1]d:2\n", n) }
	ab := head + "ranks 0\n" + gw(1) + "site b\nranks 1\n" + gw(2) // lines 3 to 7
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "# nothing\n", "f: no sites: want lines site NAME"},
		{"directive", "site a\n\n host n1\n", `f:3: "host": want jobs, mode, site, hosts, ranks, gateway, tcp, leg, route or job-class`},
		{"jobs", "jobs key k", `f:1: jobs "key": want jobs key-file FILE`},
		{"jobs without file", "jobs key-file # x", `f:1: jobs key-file: want the name of a file`},
		{"jobs twice", "jobs key-file a\njobs key-file b", `f:2: jobs key-file: already in line 1`},
		{"jobs and more", "jobs key-file a b", `f:1: "b": want nothing after the key file`},
		{"mode", "mode safe", `f:1: mode "safe": want piecewise, chained or lossy`},
		{"mode twice", "mode lossy\nmode lossy", `f:2: mode: already in line 1`},
		{"site name", "site 4", `f:1: site "4": want a name of at most 64 letters, digits, - _ or . that begins with a letter`},
		{"site twice", "site a\nsite a", `f:2: site a: already in line 1`},
		{"site number", "site a 0", `f:1: site a "0": want a number from 1 to 65535`},
		{"site number twice", "site a 2\nsite b 2", `f:2: site b: site a of line 1 has the number 2 already`},
		{"site number after the largest", "site a 65535\nsite b", `f:2: site b: want a number, as the site before has the largest one`},
		{"site and more", "site a 1 b", `f:1: "b": want nothing after the number of the site`},
		{"outside", "hosts n1", `f:1: hosts: want it below a line site NAME`},
		{"after a leg", ab + "leg a b key-file w\nranks 7", `f:9: ranks: want it below a line site NAME`},
		{"no hosts", "site a\nhosts", `f:2: hosts: want names of hosts, such as n1 n[2-8]`},
		{"host name", "site a\nhosts n1 -x", `f:2: host "-x": want a name or an IP address`},
		{"host range", "site a\nhosts n[1-", `f:2: hosts "n[1-": want one range in brackets, such as n[1-4] or n[1,3-5]`},
		{"host range number", "site a\nhosts n[1-x]", `f:2: hosts "n[1-x]": "1-x" is not a number or a range, such as 3-8`},
		{"host range order", "site a\nhosts n[3-1]", `f:2: hosts "n[3-1]": range "3-1" ends before it begins`},
		{"host range size", "site a\nhosts n[1-65535]", `f:2: hosts "n[1-65535]": too many: a site has at most 65534 hosts, all sites 131072`},
		{"host too many", "site a\nhosts n[1-65534] m", `f:2: host m: too many: a site has at most 65534 hosts, all sites 131072`},
		{"host twice", "site a\nhosts n1\nsite b\nhosts n1", `f:4: host n1: already in site a`},
		{"no ranks", "site a\nranks", `f:2: ranks: want numbers of ranks, such as 0-3 8`},
		{"rank", "site a\nranks x", `f:2: ranks "x": want a number or a range from 0 to 65534, such as 0-3`},
		{"rank too large", "site a\nranks 0-65535", `f:2: ranks "0-65535": want a number or a range from 0 to 65534, such as 0-3`},
		{"rank order", "site a\nranks 3-1", `f:2: ranks "3-1": the range ends before it begins`},
		{"rank twice", "site a\nranks 0-3\nsite b\nranks 7 2-9", `f:4: ranks "2-9": rank 2 is already in site a by line 2`},
		{"rank covered", "site a\nranks 4\nsite b\nranks 0-9", `f:4: ranks "0-9": rank 4 is already in site a by line 2`},
		{"hosts and ranks", "site a\nhosts n\nranks 1", `f:1: site a has hosts and ranks: want one of them`},
		{"hosts or ranks", head + "hosts n\n" + gw(1) + "site b\nranks 1\n" + gw(2), `f:5: site b has ranks, but other sites have hosts: want the same in all sites`},
		{"gateway name", "site a\ngateway", `f:2: gateway "": want a name of at most 64 letters, digits, - _ or . that begins with a letter`},
		{"gateway twice", "site a\n" + gw(1) + gw(2), `f:3: gateway g: already in line 2`},
		{"gateway word", "site a\ngateway g dmz 1.2.3.4:5", `f:2: gateway g "dmz": want lan, wan or status, and addresses such as 192.0.2.1:5748`},
		{"gateway address", "site a\ngateway g lan 1.2.3.4", `f:2: gateway g lan "1.2.3.4": want ADDRESS:PORT, such as 192.0.2.1:5748 or [2001:db8::1]:5748`},
		{"gateway port", "site a\ngateway g lan 1.2.3.4:0", `f:2: gateway g lan "1.2.3.4:0": want ADDRESS:PORT, such as 192.0.2.1:5748 or [2001:db8::1]:5748`},
		{"gateway any", "site a\ngateway g lan 0.0.0.0:1", `f:2: gateway g lan 0.0.0.0:1: want an address that others reach it at`},
		{"gateway without address", "site a\ngateway g lan wan 1.2.3.4:5", `f:2: gateway g lan: want ADDRESS:PORT after it`},
		{"gateway without wan", "site a\ngateway g lan 1.2.3.4:5", `f:2: gateway g: want lan ADDRESS:PORT wan ADDRESS:PORT`},
		{"gateway lan twice", "site a\ngateway g lan 1.2.3.4:5 wan 1.2.3.4:6\ngateway h lan 1.2.3.4:5 wan 1.2.3.4:7", `f:3: gateway h lan 1.2.3.4:5: already in line 2`},
		{"gateway wan twice", head + "gateway g lan 1.2.3.4:5 wan 1.2.3.4:6\nsite b\ngateway h lan 1.2.3.4:5 wan 1.2.3.4:6", `f:5: gateway h wan 1.2.3.4:6: already in line 3`},
		{"gateway status twice", "site a\ngateway g status 1.2.3.4:5 1.2.3.4:6", `f:2: gateway g status: want one address`},
		{"gateway status twice the same", "site a\ngateway g status 1.2.3.4:5 1.2.3.4:5", `f:2: gateway g status 1.2.3.4:5: already in line 2`},
		{"no gateway", "jobs key-file k\nsite a\nsite b\n" + gw(2), `f:2: site a has no gateway: want a line gateway NAME lan ADDRESS:PORT wan ADDRESS:PORT`},
		{"no tcp", "site a\ntcp", `f:2: tcp: want ranges of addresses, such as 10.1.0.0/16`},
		{"tcp", "site a\ntcp 10.1.0.0", `f:2: tcp "10.1.0.0": want a range of addresses, such as 10.1.0.0/16`},
		{"tcp bits", "site a\ntcp 10.1.2.0/16", `f:2: tcp 10.1.2.0/16: want 10.1.0.0/16, without bits beyond the length`},
		{"tcp twice", "site a\ntcp 10.1.0.0/16\nsite b\ntcp 10.0.0.0/8", `f:4: tcp 10.0.0.0/8: overlaps 10.1.0.0/16 of site a in line 2`},
		{"class name", "job-class 1", `f:1: job-class "1": want a name of at most 64 letters, digits, - _ or . that begins with a letter`},
		{"class default", "job-class default", `f:1: job-class default: want another name, as jobs without a class are called so`},
		{"class twice", "job-class x\njob-class x", `f:2: job-class x: already in line 1`},
		{"class word", "job-class x wait 1", `f:1: job-class x "wait": want weight, rate`},
		{"class weight", "job-class x weight 0", `f:1: job-class x weight "0": want a number from 1 to 1000`},
		{"class rate", "job-class x rate fast", `f:1: job-class x rate "fast": want bits per second from 80kbit to 1000gbit, such as 200mbit`},
		{"class option twice", "job-class x weight 1 weight 1", `f:1: job-class x: weight twice`},
		{"no jobs key", "site a\n" + gw(1) + "site b\n" + gw(2), `f: no key for jobs: want a line jobs key-file FILE`},
		{"leg without sites", ab + "leg", `f:8: leg: want a name of a site after it`},
		{"leg with one site", ab + "leg a", `f:8: leg a: want a name of a site after it`},
		{"leg with unknown site", ab + "leg a c", `f:8: leg a "c": there is no site of that name`},
		{"leg with itself", ab + "leg a a key-file w", `f:8: leg a a: want two sites`},
		{"leg twice", ab + "leg a b key-file w\nleg b a key-file w", `f:9: leg b a: already in line 8; more gateways, or associations N, make it several`},
		{"leg without key", ab + "leg a b rate 1mbit", `f:8: leg a b: want key-file FILE`},
		{"leg with empty key", ab + "leg a b key-file", `f:8: leg a b key-file: want the name of a file`},
		{"leg word", ab + "leg a b key w", `f:8: leg a b "key": want key-file, associations, rate, congestion`},
		{"leg congestion", ab + "leg a b key-file w congestion reno", `f:8: leg a b congestion "reno": want bbr, cubic or newreno`},
		{"leg congestion missing", ab + "leg a b key-file w congestion", `f:8: leg a b congestion "": want bbr, cubic or newreno`},
		{"leg associations", ab + "leg a b key-file w associations 17", `f:8: leg a b associations "17": want a number from 1 to 16`},
		{"leg rate", ab + "leg a b key-file w rate 1", `f:8: leg a b rate "1": want bits per second from 80kbit to 1000gbit, such as 200mbit`},
		{"no way", ab, `f:5: no way from site a to site b over at most 5 legs: want a line leg a b key-file FILE, or legs to sites between them`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("f", []byte(tt.text))
			var e *Error
			if !errors.As(err, &e) || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// Limits that no case of TestMistakes reaches.
func TestFileLimits(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i)
		}
		return b.String()
	}
	for _, tt := range []struct{ name, good, bad, want string }{
		{"bytes", strings.Repeat("#", MaxFile-7) + "\nsite a", strings.Repeat("#", MaxFile-6) + "\nsite a", "more than 1048576 bytes"},
		{"sites", "", many(MaxSites+1, "site s%d"), "more than 256 sites"},
		{"gateways", "site a\n" + many(MaxGateways, "gateway g%d lan 1.2.3.4:1%[1]d wan 1.2.3.4:2%[1]d"),
			"site a\n" + many(MaxGateways+1, "gateway g%d lan 1.2.3.4:1%[1]d wan 1.2.3.4:2%[1]d"), "gateway g16: a site has at most 16 gateways"},
		{"addresses", "", "site a\ngateway g lan" + strings.ReplaceAll(many(MaxAddrs+1, " 1.2.3.4:1%d"), "\n", ""), "gateway g lan: more than 8 addresses"},
		{"legs", "", many(MaxLegs+1, "leg a b key-file k%d"), "more than 4096 legs"},
		{"classes", many(MaxClasses, "job-class c%d") + "site a", many(MaxClasses+1, "job-class c%d"), "job-class c15: more than 15 classes"},
		{"ranges", "site a\n" + many(MaxRanges, "ranks %d"), "site a\n" + many(MaxRanges+1, "ranks %d"), `ranks "4096": more than 4096 ranges`},
		{"names", "site " + strings.Repeat("a", MaxName), "site " + strings.Repeat("a", MaxName+1), "want a name of at most 64"},
		{"hosts", "", "site a\nhosts a[1-65534]\nsite b\nhosts b[1-65534]\nsite c\nhosts c[1-5]", "all sites 131072"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse("f", []byte(tt.good)); tt.good != "" && err != nil {
				t.Errorf("at the limit: %v", err)
			}
			if _, err := Parse("f", []byte(tt.bad)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("beyond the limit: %v, want %q", err, tt.want)
			}
		})
	}
}

// The file of docs/gateways.md is one.
func TestDocumentedFile(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "gateways.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "```sites\n")
	text, _, ok := strings.Cut(text, "```")
	if !ok {
		t.Fatal("no sites file in the document")
	}
	f := parse(t, text)
	if len(f.Sites) != 2 || len(f.Sites[0].Hosts) != 8 || len(f.Legs) != 1 {
		t.Errorf("%d sites, %d legs", len(f.Sites), len(f.Legs))
	}
}

func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sites")
	if _, err := Read(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	if err := os.WriteFile(name, []byte(two), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(name), "wan.key"); f.Legs[0].KeyFile != want {
		t.Errorf("key file %q, want %q", f.Legs[0].KeyFile, want)
	}
}

// Whatever the text is, it is parsed or refused, and what is parsed has a way between all sites.
func FuzzParse(f *testing.F) {
	f.Add(two)
	f.Add("site a\nranks 0-3 5\n")
	f.Add(mesh(5, "route s0 s2 via s1\n"))
	f.Fuzz(func(t *testing.T, text string) {
		x, err := Parse("f", []byte(text))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || strings.Contains(e.Msg, "\n") || e.Msg == "" {
				t.Fatalf("error %q", err)
			}
			return
		}
		for _, a := range x.Sites {
			for _, b := range x.Sites {
				there, back := x.Path(a, b), x.Path(b, a)
				slices.Reverse(back)
				if len(there) > MaxPath || !slices.Equal(there, back) {
					t.Fatalf("%s, and back %s", names(there), names(back))
				}
			}
			for i, h := range a.Hosts {
				if p, err := x.Place(h, 0); err != nil || p.Site != a || p.Node != uint16(i+1) {
					t.Fatalf("host %q: %+v, %v", h, p, err)
				}
			}
		}
	})
}
