package sites

import (
	"slices"
	"strings"
)

// finish checks the file as a whole.
func (p *parser) finish() error {
	f := p.f
	if len(f.Sites) == 0 {
		return p.errorf(0, "no sites: want lines site NAME")
	}
	for _, s := range f.Sites {
		switch {
		case s.ranks && len(s.Hosts) > 0:
			return p.errorf(s.Line, "site %s has hosts and ranks: want one of them", s.Name)
		case s.ranks && len(f.hosts) > 0:
			return p.errorf(s.Line, "site %s has ranks, but other sites have hosts: want the same in all sites", s.Name)
		case len(f.Sites) > 1 && len(s.Gateways) == 0:
			return p.errorf(s.Line, "site %s has no gateway: want a line gateway NAME lan ADDRESS:PORT wan ADDRESS:PORT", s.Name)
		}
	}
	if len(f.Sites) > 1 && f.JobsKeyFile == "" {
		return p.errorf(0, "no key for jobs: want a line jobs key-file FILE")
	}
	for _, l := range p.legs {
		p.line, p.words = l.line, l.words
		if err := p.leg(); err != nil {
			return err
		}
	}
	var routes []route
	for _, r := range p.routes {
		p.line, p.words = r.line, r.words
		path, err := p.route()
		if err != nil {
			return err
		}
		routes = append(routes, route{path, r.line})
	}
	return p.findRoutes(routes)
}

// siteName reads the name of a site.
func (p *parser) siteName(what string) (*Site, error) {
	word := p.next()
	if word == "" {
		return nil, p.bad("%s: want a name of a site after it", what)
	}
	s := p.f.byName[word]
	if s == nil {
		return nil, p.bad("%s %q: there is no site of that name", what, word)
	}
	return s, nil
}

func (p *parser) leg() error {
	a, err := p.siteName("leg")
	if err != nil {
		return err
	}
	b, err := p.siteName("leg " + a.Name)
	if err != nil {
		return err
	}
	what := "leg " + a.Name + " " + b.Name
	if a == b {
		return p.bad("%s: want two sites", what)
	}
	if o := p.f.Leg(a, b); o != nil {
		return p.bad("%s: already in line %d; more gateways, or associations N, make it several", what, o.Line)
	}
	l := &Leg{A: a, B: b, Associations: 1, Congestion: DefaultCongestion, Line: p.line}
	var given []string
	for len(p.words) > 0 {
		word, err := p.option(what, &given, "key-file", "associations", "rate", "congestion")
		if err != nil {
			return err
		}
		switch word {
		case "key-file":
			if l.KeyFile = p.next(); l.KeyFile == "" {
				return p.bad("%s key-file: want the name of a file", what)
			}
			l.KeyFile = p.f.path(l.KeyFile)
		case "associations":
			l.Associations, err = p.number(what+" associations", MaxAssociations)
		case "rate":
			l.Rate, err = p.rate(what)
		case "congestion":
			l.Congestion = Congestion(p.next())
			if !slices.Contains([]Congestion{BBR, Cubic, NewReno}, l.Congestion) {
				return p.bad("%s congestion %q: want bbr, cubic or newreno", what, l.Congestion)
			}
		}
		if err != nil {
			return err
		}
	}
	if l.KeyFile == "" {
		return p.bad("%s: want key-file FILE", what)
	}
	p.f.Legs = append(p.f.Legs, l)
	return nil
}

// route reads the path of "route A B via C …".
func (p *parser) route() ([]*Site, error) {
	a, err := p.siteName("route")
	if err != nil {
		return nil, err
	}
	b, err := p.siteName("route " + a.Name)
	if err != nil {
		return nil, err
	}
	what := "route " + a.Name + " " + b.Name
	if w := p.next(); w != "via" {
		return nil, p.bad("%s %q: want via, and the sites between them in order", what, w)
	}
	path := []*Site{a}
	for more := true; more; more = len(p.words) > 0 {
		s, err := p.siteName(what + " via")
		if err != nil {
			return nil, err
		}
		path = append(path, s)
	}
	path = append(path, b)
	if len(path) > MaxPath {
		return nil, p.bad("%s: %d sites, want at most %d", what, len(path), MaxPath)
	}
	seen := make(map[*Site]bool)
	for _, s := range path {
		if seen[s] {
			return nil, p.bad("%s: a loop: site %s twice in %s", what, s.Name, strings.ReplaceAll(names(path), "-", " "))
		}
		seen[s] = true
	}
	return path, nil
}
