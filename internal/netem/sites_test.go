package netem

import (
	"strings"
	"testing"
	"time"
)

var twoSites = Sites{Sites: 2, Hosts: 3, Gateways: 2, WANs: 2}

func TestSitesNetworks(t *testing.T) {
	s := twoSites
	f := s.Fabric(Params{Rate: 1e9, Delay: 25 * time.Microsecond}, Params{Rate: 1e8, Delay: 9 * time.Millisecond}, 1)
	if got, want := f.Nets(), 2+4+2; got != want {
		t.Fatalf("%d networks, want %d", got, want)
	}
	for net := range f.Nets() {
		part, site, wan := s.Part(net)
		back, ports := s.LAN(site), s.LANPorts()
		switch part {
		case PartAccess:
			back, ports = s.Access(site, wan), s.AccessPorts()
		case PartWAN:
			back, ports = s.WAN(wan), s.Sites
		}
		if back != net || f.Hosts(net) != ports {
			t.Errorf("network %d is part %d of site %d and WAN %d, which is network %d; %d ports, want %d", net, part, site, wan, back, f.Hosts(net), ports)
		}
	}
	if got := f.Params(s.LAN(1), s.Router()); got.Rate != 0 || got.Delay != 25*time.Microsecond {
		t.Errorf("the router's way into a LAN has %+v, want the delay and no rate", got)
	}
	if got := f.Params(s.WAN(1), 1); got.Rate != 1e8 || got.Delay != 9*time.Millisecond {
		t.Errorf("the link of a site has %+v", got)
	}
}

// The hosts of a site share its link: packets of all of them leave it one after the other.
func TestSitesShareALink(t *testing.T) {
	s := Sites{Sites: 2, Hosts: 2, Gateways: 1, WANs: 1}
	f := s.Fabric(Params{}, Params{Rate: 1e6, Delay: time.Millisecond}, 1)
	for host := range s.Hosts {
		f.Inject(0, s.LAN(0), host, s.Router(), make([]byte, 1250)) // 10 ms on the link each, out and in
	}
	f.Inject(0, s.Access(0, 0), 0, s.AccessRouter(), make([]byte, 1250))
	var arrived []Time
	f.Advance(Time(time.Second), func(at Time, net, _, to int, pkt []byte) {
		switch part, site, _ := s.Part(net); part {
		case PartLAN, PartAccess:
			f.Inject(at, s.WAN(0), site, 1, pkt)
		case PartWAN:
			arrived = append(arrived, at)
		}
	})
	want := []Time{21e6, 31e6, 41e6}
	if len(arrived) != len(want) {
		t.Fatalf("%d packets arrive, want %d", len(arrived), len(want))
	}
	for i := range want {
		if arrived[i] != want[i] {
			t.Errorf("packet %d arrives at %d ns, want %d", i, arrived[i], want[i])
		}
	}
}

func TestSitesChanges(t *testing.T) {
	s := twoSites
	type port struct{ net, port int }
	lan2, wan1, wan2 := s.LAN(1), s.WAN(0), s.WAN(1)
	for _, tt := range []struct {
		command string
		cut     []port
		intact  []port
	}{
		{"cut wan", []port{{wan1, 0}, {wan1, 1}, {wan2, 0}, {wan2, 1}}, []port{{lan2, 0}}},
		{"cut wan 2", []port{{wan2, 0}, {wan2, 1}}, []port{{wan1, 0}, {wan1, 1}}},
		{"cut wan site 2", []port{{wan1, 1}, {wan2, 1}}, []port{{wan1, 0}, {lan2, 0}}},
		{"cut site 2 host 3", []port{{lan2, 2}}, []port{{lan2, 0}, {lan2, s.Router()}, {wan1, 1}}},
		{"cut gateway 2 site 2", []port{{lan2, s.LANGateway(1)}, {s.Access(1, 0), 1}, {s.Access(1, 1), 1}}, []port{{lan2, s.LANGateway(0)}, {s.Access(1, 0), 0}, {s.Access(0, 0), 1}, {wan1, 1}}},
		{"cut wan 1 site 2 gateway 1", []port{{s.Access(1, 0), 0}}, []port{{s.Access(1, 1), 0}, {lan2, s.LANGateway(0)}}},
		{"cut lan site 2", []port{{lan2, 0}, {lan2, s.LANGateway(0)}, {lan2, s.Router()}}, []port{{s.LAN(0), 0}, {wan1, 1}}},
		{"cut site 2", []port{{lan2, 0}, {wan1, 1}, {wan2, 1}}, []port{{s.LAN(0), 0}, {wan1, 0}}},
		{"kill gateway 1", nil, []port{{lan2, s.LANGateway(0)}}},
	} {
		f := s.Fabric(Params{}, Params{}, 1)
		c, err := ParseChange(tt.command)
		if err == nil {
			err = c.ApplySites(s, f)
		}
		if err != nil {
			t.Errorf("%q: %v", tt.command, err)
			continue
		}
		for _, p := range tt.cut {
			if !f.IsCut(p.net, p.port) {
				t.Errorf("%q leaves port %d of network %d", tt.command, p.port, p.net)
			}
		}
		for _, p := range tt.intact {
			if f.IsCut(p.net, p.port) {
				t.Errorf("%q cuts port %d of network %d", tt.command, p.port, p.net)
			}
		}
		for _, back := range []string{"restore"} {
			c, _ := ParseChange(back)
			if err := c.ApplySites(s, f); err != nil {
				t.Fatal(err)
			}
			for net := range f.Nets() {
				for p := range f.Hosts(net) {
					if f.IsCut(net, p) {
						t.Errorf("port %d of network %d is cut after %q and %q", p, net, tt.command, back)
					}
				}
			}
		}
	}
}

func TestSitesSet(t *testing.T) {
	s := twoSites
	f := s.Fabric(Params{Rate: 1e9}, Params{Rate: 1e9}, 1)
	for _, command := range []string{"set lan rate 100mbit delay 1ms", "set lan site 1 host 2 to 3 loss 5%", "set wan 1 site 1 delay 20ms", "set wan 2 site 2 to 1 loss 1%"} {
		c, err := ParseChange(command)
		if err == nil {
			err = c.ApplySites(s, f)
		}
		if err != nil {
			t.Fatalf("%q: %v", command, err)
		}
	}
	if got := f.Params(s.LAN(1), s.LANGateway(1)); got.Rate != 1e8 || got.Delay != time.Millisecond {
		t.Errorf("a gateway's way into its LAN has %+v", got)
	}
	if got := f.Params(s.LAN(1), s.Router()); got.Rate != 0 || got.Delay != time.Millisecond {
		t.Errorf("the router's way into a LAN has %+v, want no rate", got)
	}
	if got := f.FlowParams(s.LAN(0), 1, 2).Loss; got != 0.05 {
		t.Errorf("host 2 loses %v of what it sends to host 3, want 0.05", got)
	}
	if a, b := f.Params(s.WAN(0), 0).Delay, f.Params(s.WAN(0), 1).Delay; a != 20*time.Millisecond || b != 0 {
		t.Errorf("delays of the sites' links %v and %v, want 20ms and none", a, b)
	}
	if got := f.FlowParams(s.WAN(1), 1, 0).Loss; got != 0.01 {
		t.Errorf("site 2 loses %v of what it sends to site 1, want 0.01", got)
	}
}

func TestSitesChangesAreChecked(t *testing.T) {
	for _, tt := range []struct{ command, want string }{
		{"cut site 3", "there are 2 sites"}, {"cut site 1 host 4", "each with 3 hosts"}, {"cut gateway 3", "2 gateways"}, {"cut wan 3", "2 WANs"},
		{"cut site 0", "counted from 1"}, {"cut host 0", "counted from 1"}, {"cut lan wan", "not both"}, {"cut host 1 gateway 1", "not both"},
		{"cut wan host 1", "not in a WAN"}, {"set delay 1ms", "want lan or wan"}, {"set wan gateway 1 delay 1ms", "share its link"},
		{"kill host 1", "for gateways"}, {"start wan", "for gateways"}, {"cut net 0", "no nets"}, {"set wan to 3 delay 1ms", "there are 2 sites"},
		{"set lan to 4 delay 1ms", "each with 3 hosts"}, {"cut gateway a", "not a number"}, {"kill gateway 1 now", "unexpected"},
		{"set wan to 2 rate 1gbit", "the same for all"}, {"cut site", "unexpected"}, {"cut wan 0", "counted from 1"},
	} {
		c, err := ParseChange(tt.command)
		if err == nil {
			err = c.CheckSites(twoSites)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.command) {
			t.Errorf("%q: %v, want an error with %q", tt.command, err, tt.want)
		}
	}
	for _, command := range []string{"cut wan", "cut site 1", "kill gateway 1", "start", "set lan delay 1ms", "cut gateway 1"} {
		c, err := ParseChange(command)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(1, 2); err == nil || !strings.Contains(err.Error(), "no sites") {
			t.Errorf("%q without sites: %v", command, err)
		}
	}
}

func TestSitesGateways(t *testing.T) {
	for _, tt := range []struct{ command, want string }{
		{"kill", "00- 01- 10- 11- "}, {"kill site 2", "10- 11- "}, {"start gateway 2", "01+ 11+ "}, {"kill gateway 1 site 2", "10- "}, {"cut site 1", ""},
	} {
		c, err := ParseChange(tt.command)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		c.Gateways(twoSites, func(site, gateway int, start bool) {
			b.WriteString(string(rune('0'+site)) + string(rune('0'+gateway)) + map[bool]string{true: "+ ", false: "- "}[start])
		})
		if b.String() != tt.want {
			t.Errorf("%q is for %q, want %q", tt.command, b.String(), tt.want)
		}
	}
}

func TestParseLink(t *testing.T) {
	p := Params{MTU: 1500}
	if err := p.ParseLink("1gbit 9ms loss 1% queue 1MiB"); err != nil {
		t.Fatal(err)
	}
	if want := (Params{MTU: 1500, Rate: 1e9, Delay: 9 * time.Millisecond, Loss: 0.01, Queue: 1 << 20}); p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	for _, tt := range []struct{ link, want string }{
		{"", "want a link"}, {"fast", `"fast" is no rate`}, {"1gbit loss", `"loss" is no rate`}, {"9ms loss 200%", "probability"}, {"xbit", "rate"},
		{"-1ms", "delay"}, {"1gbit colour red", "unknown parameter"},
	} {
		if err := p.ParseLink(tt.link); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want an error with %q", tt.link, err, tt.want)
		}
	}
}
