package launch

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/weftstack/weft/internal/sites"
)

// dryRun is what `weft run -dry-run` prints as JSON.
type dryRun struct {
	Mode  sites.Mode `json:"mode,omitempty"`
	Ranks []dryRank  `json:"ranks"`
	Ways  []dryWay   `json:"ways"`
}

// dryRank is where a rank runs.
type dryRank struct {
	Rank    int      `json:"rank"`
	Host    string   `json:"host"`
	Program []string `json:"program"`
	Site    string   `json:"site,omitempty"`
	Address string   `json:"address,omitempty"` // site/node/process
}

// dryWay is how the ranks of two sites, or of one, talk to each other.
type dryWay struct {
	From  string   `json:"from,omitempty"`
	To    string   `json:"to,omitempty"`
	Ranks [2]int   `json:"ranks"` // how many each has
	Pairs int      `json:"pairs"`
	Legs  []dryLeg `json:"legs"` // none: directly
}

// dryLeg is a leg on the way.
type dryLeg struct {
	From         string           `json:"from"`
	To           string           `json:"to"`
	Gateways     []string         `json:"gateways"` // of the site that it leads to, or of the own one on the first leg
	Addrs        []netip.AddrPort `json:"addrs"`
	Associations int              `json:"associations"`
	Rate         int64            `json:"rate_bits_per_s,omitempty"`
}

// plan places the ranks as the job would, without starting anything.
func (o *runOptions) plan(s *siteJob) (*dryRun, error) {
	d := &dryRun{Ranks: []dryRank{}, Ways: []dryWay{}}
	g := &group{n: o.n, spread: o.spread}
	counts := make(map[string]int)
	rank := 0
	for _, x := range o.sections {
		for range x.n {
			r := dryRank{Rank: rank, Host: g.hostName(rank), Program: x.argv}
			if s != nil {
				p, err := s.place(r.Host, rank, false)
				if err != nil {
					return nil, err
				}
				r.Site, r.Address = p.Names[p.Site], fmt.Sprintf("%d/%d/%d", p.Site, p.Node, p.Process)
			}
			if r.Host == "" {
				r.Host = "localhost"
			}
			counts[r.Site]++
			d.Ranks = append(d.Ranks, r)
			rank++
		}
	}
	if s == nil {
		d.Ways = append(d.Ways, dryWay{Ranks: [2]int{o.n, o.n}, Pairs: o.n * (o.n - 1) / 2, Legs: []dryLeg{}})
		return d, nil
	}
	d.Mode = s.file.Mode
	for i, a := range s.file.Sites {
		for _, b := range s.file.Sites[i:] {
			na, nb := counts[a.Name], counts[b.Name]
			pairs := na * nb
			if a == b {
				pairs = na * (na - 1) / 2
			}
			if pairs > 0 {
				d.Ways = append(d.Ways, dryWay{
					From: a.Name, To: b.Name, Ranks: [2]int{na, nb}, Pairs: pairs, Legs: legsOf(s.file, a, b),
				})
			}
		}
	}
	return d, nil
}

// legsOf returns the legs between processes of two sites.
func legsOf(f *sites.File, a, b *sites.Site) []dryLeg {
	legs := []dryLeg{}
	if a == b {
		return legs
	}
	end := func(from, to string, s *sites.Site) dryLeg {
		l := dryLeg{From: from, To: to, Associations: 1}
		for _, g := range s.Gateways {
			l.Gateways, l.Addrs = append(l.Gateways, g.Name), append(l.Addrs, g.LAN...)
		}
		return l
	}
	path := f.Path(a, b)
	legs = append(legs, end("process", a.Name, a))
	for i := range len(path) - 1 {
		leg := f.Leg(path[i], path[i+1])
		l := dryLeg{From: path[i].Name, To: path[i+1].Name, Associations: leg.Associations, Rate: leg.Rate}
		for _, g := range path[i+1].Gateways {
			l.Gateways, l.Addrs = append(l.Gateways, g.Name), append(l.Addrs, g.WAN...)
		}
		legs = append(legs, l)
	}
	return append(legs, end(b.Name, "process", b))
}

// goesWith reports whether two ranks are in one line.
func (r *dryRank) goesWith(o *dryRank) bool {
	return r.Host == o.Host && r.Site == o.Site && &r.Program[0] == &o.Program[0]
}

// print prints the plan for people, ranks that follow each other on a host in one line.
func (d *dryRun) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ranks\thost\tsite\taddresses\tprogram")
	for i := 0; i < len(d.Ranks); {
		a, j := &d.Ranks[i], i+1
		for j < len(d.Ranks) && a.goesWith(&d.Ranks[j]) {
			j++
		}
		b := &d.Ranks[j-1]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", span(strconv.Itoa(a.Rank), strconv.Itoa(b.Rank)), a.Host, dash(a.Site),
			dash(span(a.Address, b.Address)), strings.Join(a.Program, " "))
		i = j
	}
	fmt.Fprintln(w, "\nbetween\tpairs of ranks\tway")
	for _, x := range d.Ways {
		who := x.From + " and " + x.To
		switch {
		case x.From == "":
			who = "all ranks"
		case x.From == x.To:
			who = "ranks of " + x.From
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", who, x.Pairs, x.way())
	}
	if d.Mode != "" {
		fmt.Fprintf(w, "\nmode %s\n", d.Mode)
	}
	return w.Flush()
}

// way returns the way for people: "gateways lyon/a,b = tokyo/a (2 associations)".
func (x *dryWay) way() string {
	if len(x.Legs) == 0 {
		return "direct"
	}
	text := "gateways of " + x.Legs[0].To + " (" + strings.Join(x.Legs[0].Gateways, ", ") + ")"
	for _, l := range x.Legs[1 : len(x.Legs)-1] {
		text += fmt.Sprintf(" – %s (%s", l.To, strings.Join(l.Gateways, ", "))
		if l.Associations > 1 {
			text += fmt.Sprintf("; %d associations each", l.Associations)
		}
		if l.Rate > 0 {
			text += fmt.Sprintf("; at most %g Mb/s each", float64(l.Rate)/1e6)
		}
		text += ")"
	}
	return text
}

// span is a range for people.
func span(a, b string) string {
	if a == b {
		return a
	}
	return a + " to " + b
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// writeJSON prints the plan as JSON.
func (d *dryRun) writeJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(d)
}
