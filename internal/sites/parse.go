package sites

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weftstack/weft/internal/units"
)

// Error is a mistake in a sites file.
type Error struct {
	File string
	Line int // from 1; 0: of the file as a whole
	Msg  string
}

// Error returns file:line and what is wrong.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Read reads and checks a sites file. Errors: those of the system, and *Error.
func Read(name string) (*File, error) {
	r, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("sites file: %w", err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("sites file: %w", err)
	}
	return Parse(name, text)
}

// Parse checks the text of a sites file. Paths in it are relative to the directory of name. Its errors are *Error,
// for the first mistake.
func Parse(name string, text []byte) (*File, error) {
	p := &parser{f: &File{
		Name: name, Mode: Piecewise,
		byName: make(map[string]*Site), hosts: make(map[string]Place), short: make(map[string][]string),
	}}
	if len(text) > MaxFile {
		return nil, p.errorf(0, "more than %d bytes", MaxFile)
	}
	p.addrs = make(map[string]int)
	for line := range bytes.Lines(text) {
		p.line++
		before, _, _ := strings.Cut(string(line), "#")
		p.words = strings.Fields(before)
		if len(p.words) == 0 {
			continue
		}
		if err := p.directive(p.next()); err != nil {
			return nil, err
		}
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return p.f, nil
}

// parser reads a sites file line by line.
type parser struct {
	f     *File
	line  int
	words []string // what is left of the line
	site  *Site    // that further lines describe

	legs     []pending
	routes   []pending
	modeLine int
	jobsLine int
	ranges   int            // ranges of ranks and prefixes so far
	addrs    map[string]int // lines of addresses of gateways
	tcp      []prefix
}

// pending is a line that names sites which may follow it.
type pending struct {
	words []string
	line  int
}

type prefix struct {
	netip.Prefix
	site *Site
	line int
}

func (p *parser) errorf(line int, format string, args ...any) error {
	return &Error{File: p.f.Name, Line: line, Msg: fmt.Sprintf(format, args...)}
}

// bad is a mistake in the present line.
func (p *parser) bad(format string, args ...any) error { return p.errorf(p.line, format, args...) }

// next returns the next word of the line, or "" at its end.
func (p *parser) next() string {
	if len(p.words) == 0 {
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

// end returns an error if the line goes on.
func (p *parser) end(after string) error {
	if len(p.words) > 0 {
		return p.bad("%q: want nothing after %s", p.words[0], after)
	}
	return nil
}

func (p *parser) directive(word string) error {
	switch word {
	case "jobs":
		return p.jobs()
	case "mode":
		return p.mode()
	case "site":
		return p.newSite()
	case "leg":
		p.site = nil
		p.legs = append(p.legs, pending{p.words, p.line})
		if len(p.legs) > MaxLegs {
			return p.bad("more than %d legs", MaxLegs)
		}
		return nil
	case "route":
		p.site = nil
		p.routes = append(p.routes, pending{p.words, p.line})
		return nil
	case "job-class":
		return p.class()
	case "hosts", "ranks", "gateway", "tcp":
		if p.site == nil {
			return p.bad("%s: want it below a line site NAME", word)
		}
	default:
		return p.bad("%q: want jobs, mode, site, hosts, ranks, gateway, tcp, leg, route or job-class", word)
	}
	switch word {
	case "hosts":
		return p.hosts()
	case "ranks":
		return p.ranks()
	case "gateway":
		return p.gateway()
	}
	return p.prefixes()
}

func (p *parser) jobs() error {
	p.site = nil
	if w := p.next(); w != "key-file" {
		return p.bad("jobs %q: want jobs key-file FILE", w)
	}
	file := p.next()
	if file == "" {
		return p.bad("jobs key-file: want the name of a file")
	}
	if p.jobsLine != 0 {
		return p.bad("jobs key-file: already in line %d", p.jobsLine)
	}
	p.jobsLine, p.f.JobsKeyFile = p.line, p.f.path(file)
	return p.end("the key file")
}

func (p *parser) mode() error {
	p.site = nil
	w := p.next()
	if !Mode(w).valid() {
		return p.bad("mode %q: want piecewise, chained or lossy", w)
	}
	if p.modeLine != 0 {
		return p.bad("mode: already in line %d", p.modeLine)
	}
	p.modeLine, p.f.Mode = p.line, Mode(w)
	return p.end("the mode")
}

func (p *parser) newSite() error {
	s := &Site{Name: p.next(), Number: 1, Line: p.line, index: len(p.f.Sites)}
	if !goodName(s.Name) {
		return p.bad("site %q: want a name of at most %d letters, digits, - _ or . that begins with a letter", s.Name, MaxName)
	}
	if o := p.f.byName[s.Name]; o != nil {
		return p.bad("site %s: already in line %d", s.Name, o.Line)
	}
	number := p.next()
	if last := len(p.f.Sites) - 1; last >= 0 {
		if number == "" && p.f.Sites[last].Number == 1<<16-1 {
			return p.bad("site %s: want a number, as the site before has the largest one", s.Name)
		}
		s.Number = p.f.Sites[last].Number + 1
	}
	if number != "" {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n == 0 {
			return p.bad("site %s %q: want a number from 1 to 65535", s.Name, number)
		}
		s.Number = uint16(n)
	}
	if o := p.f.SiteNumber(s.Number); o != nil {
		return p.bad("site %s: site %s of line %d has the number %d already", s.Name, o.Name, o.Line, s.Number)
	}
	if len(p.f.Sites) == MaxSites {
		return p.bad("more than %d sites", MaxSites)
	}
	p.f.Sites, p.f.byName[s.Name], p.site = append(p.f.Sites, s), s, s
	return p.end("the number of the site")
}

func (p *parser) hosts() error {
	if len(p.words) == 0 {
		return p.bad("hosts: want names of hosts, such as n1 n[2-8]")
	}
	for len(p.words) > 0 {
		list, err := expand(p.next(), min(MaxHosts-len(p.site.Hosts), MaxAllHosts-len(p.f.hosts)))
		if err != nil {
			return p.bad("%v", err)
		}
		for _, name := range list {
			if o, ok := p.f.hosts[name]; ok {
				return p.bad("host %s: already in site %s", name, o.Site.Name)
			}
			if len(p.site.Hosts) == MaxHosts || len(p.f.hosts) == MaxAllHosts {
				return p.bad("host %s: too many: a site has at most %d hosts, all sites %d", name, MaxHosts, MaxAllHosts)
			}
			p.site.Hosts = append(p.site.Hosts, name)
			p.f.hosts[name] = Place{Site: p.site, Node: uint16(len(p.site.Hosts))}
			if !isAddress(name) {
				short, _, _ := strings.Cut(name, ".")
				p.f.short[short] = append(p.f.short[short], name)
			}
		}
	}
	return nil
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

func (p *parser) ranks() error {
	if len(p.words) == 0 {
		return p.bad("ranks: want numbers of ranks, such as 0-3 8")
	}
	for len(p.words) > 0 {
		word := p.next()
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.ParseUint(first, 10, 16)
		hi, err2 := strconv.ParseUint(last, 10, 16)
		if err != nil || err2 != nil || hi > MaxRank {
			return p.bad("ranks %q: want a number or a range from 0 to %d, such as 0-3", word, MaxRank)
		}
		if hi < lo {
			return p.bad("ranks %q: the range ends before it begins", word)
		}
		if p.ranges++; p.ranges > MaxRanges {
			return p.bad("ranks %q: more than %d ranges", word, MaxRanges)
		}
		r := rankRange{int(lo), int(hi), p.site, p.line}
		i, _ := slices.BinarySearchFunc(p.f.ranks, r.lo, func(r rankRange, lo int) int { return r.lo - lo })
		for _, j := range []int{i - 1, i} {
			if j >= 0 && j < len(p.f.ranks) {
				if o := p.f.ranks[j]; r.lo <= o.hi && o.lo <= r.hi {
					return p.bad("ranks %q: rank %d is already in site %s by line %d", word, max(r.lo, o.lo), o.site.Name, o.line)
				}
			}
		}
		p.f.ranks = slices.Insert(p.f.ranks, i, r)
		p.site.ranks = true
	}
	return nil
}

func (p *parser) gateway() error {
	g := &Gateway{Name: p.next(), Number: uint16(len(p.site.Gateways) + 1), Line: p.line}
	if !goodName(g.Name) {
		return p.bad("gateway %q: want a name of at most %d letters, digits, - _ or . that begins with a letter", g.Name, MaxName)
	}
	if o := p.site.Gateway(g.Name); o != nil {
		return p.bad("gateway %s: already in line %d", g.Name, o.Line)
	}
	if len(p.site.Gateways) == MaxGateways {
		return p.bad("gateway %s: a site has at most %d gateways", g.Name, MaxGateways)
	}
	for len(p.words) > 0 {
		var err error
		switch word := p.next(); word {
		case "lan":
			err = p.addresses("lan", g, &g.LAN)
		case "wan":
			err = p.addresses("wan", g, &g.WAN)
		case "status":
			var list []netip.AddrPort
			if err = p.addresses("status", g, &list); err == nil {
				if g.Status.IsValid() || len(list) > 1 {
					return p.bad("gateway %s status: want one address", g.Name)
				}
				g.Status = list[0]
			}
		default:
			err = p.bad("gateway %s %q: want lan, wan or status, and addresses such as 192.0.2.1:5748", g.Name, word)
		}
		if err != nil {
			return err
		}
	}
	if len(g.LAN) == 0 || len(g.WAN) == 0 {
		return p.bad("gateway %s: want lan ADDRESS:PORT wan ADDRESS:PORT", g.Name)
	}
	p.site.Gateways = append(p.site.Gateways, g)
	return nil
}

// addresses reads the addresses that follow a word, up to the next word.
func (p *parser) addresses(what string, g *Gateway, list *[]netip.AddrPort) error {
	n := 0
	for ; len(p.words) > 0 && !slices.Contains([]string{"lan", "wan", "status"}, p.words[0]); n++ {
		word := p.next()
		a, err := netip.ParseAddrPort(word)
		if err != nil || a.Port() == 0 || a.Addr().Zone() != "" && what == "wan" {
			return p.bad("gateway %s %s %q: want ADDRESS:PORT, such as 192.0.2.1:5748 or [2001:db8::1]:5748", g.Name, what, word)
		}
		a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
		if what != "status" && (a.Addr().IsUnspecified() || a.Addr().IsMulticast()) {
			return p.bad("gateway %s %s %s: want an address that others reach it at", g.Name, what, word)
		}
		key := a.String()
		switch what {
		case "lan": // sites may use the same private addresses
			key = p.site.Name + " " + key
		case "status": // gateways are on different hosts, perhaps at the loopback address of each
			key = p.site.Name + " " + g.Name + " " + what + " " + key
		}
		if line := p.addrs[key]; line != 0 {
			return p.bad("gateway %s %s %s: already in line %d", g.Name, what, word, line)
		}
		p.addrs[key] = p.line
		*list = append(*list, a)
		if len(*list) > MaxAddrs {
			return p.bad("gateway %s %s: more than %d addresses", g.Name, what, MaxAddrs)
		}
	}
	if n == 0 {
		return p.bad("gateway %s %s: want ADDRESS:PORT after it", g.Name, what)
	}
	return nil
}

func (p *parser) prefixes() error {
	if len(p.words) == 0 {
		return p.bad("tcp: want ranges of addresses, such as 10.1.0.0/16")
	}
	for len(p.words) > 0 {
		word := p.next()
		x, err := netip.ParsePrefix(word)
		if err != nil {
			return p.bad("tcp %q: want a range of addresses, such as 10.1.0.0/16", word)
		}
		if x != x.Masked() {
			return p.bad("tcp %s: want %s, without bits beyond the length", word, x.Masked())
		}
		if p.ranges++; p.ranges > MaxRanges {
			return p.bad("tcp %s: more than %d ranges", word, MaxRanges)
		}
		for _, o := range p.tcp {
			if o.Overlaps(x) {
				return p.bad("tcp %s: overlaps %s of site %s in line %d", word, o.Prefix, o.site.Name, o.line)
			}
		}
		p.tcp = append(p.tcp, prefix{x, p.site, p.line})
		p.site.TCP = append(p.site.TCP, x)
	}
	return nil
}

func (p *parser) class() error {
	p.site = nil
	c := &Class{Name: p.next(), Number: len(p.f.Classes) + 1, Weight: 1, Line: p.line}
	if !goodName(c.Name) {
		return p.bad("job-class %q: want a name of at most %d letters, digits, - _ or . that begins with a letter", c.Name, MaxName)
	}
	if c.Name == "default" {
		return p.bad("job-class default: want another name, as jobs without a class are called so")
	}
	if o := p.f.Class(c.Name); o != nil {
		return p.bad("job-class %s: already in line %d", c.Name, o.Line)
	}
	if len(p.f.Classes) == MaxClasses {
		return p.bad("job-class %s: more than %d classes", c.Name, MaxClasses)
	}
	what := "job-class " + c.Name
	var given []string
	for len(p.words) > 0 {
		word, err := p.option(what, &given, "weight", "rate")
		if err != nil {
			return err
		}
		switch word {
		case "weight":
			c.Weight, err = p.number(what+" weight", MaxWeight)
		case "rate":
			c.Rate, err = p.rate(what)
		}
		if err != nil {
			return err
		}
	}
	p.f.Classes = append(p.f.Classes, c)
	return nil
}

// option returns the next word, which must be one of allowed, and not be given yet.
func (p *parser) option(what string, given *[]string, allowed ...string) (string, error) {
	word := p.next()
	if !slices.Contains(allowed, word) {
		return "", p.bad("%s %q: want %s", what, word, strings.Join(allowed, ", "))
	}
	if slices.Contains(*given, word) {
		return "", p.bad("%s: %s twice", what, word)
	}
	*given = append(*given, word)
	return word, nil
}

func (p *parser) number(what string, most int) (int, error) {
	word := p.next()
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > most {
		return 0, p.bad("%s %q: want a number from 1 to %d", what, word, most)
	}
	return n, nil
}

func (p *parser) rate(what string) (int64, error) {
	word := p.next()
	v, err := units.ParseRate(word)
	if err != nil || v < MinRate || v > MaxRate {
		return 0, p.bad("%s rate %q: want bits per second from 80kbit to 1000gbit, such as 200mbit", what, word)
	}
	return int64(v), nil
}
