package gateway

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/sites"
)

// checked is what check prints as JSON.
type checked struct {
	File    string          `json:"file"`
	Mode    sites.Mode      `json:"mode"`
	JobsKey string          `json:"jobs_key_file,omitempty"`
	Sites   []checkedSite   `json:"sites"`
	Legs    []checkedLeg    `json:"legs"`
	Routes  []checkedRoute  `json:"routes"`
	Classes []checkedClass  `json:"classes"`
	Keys    []checkedKeyBad `json:"unreadable_keys"`
}

type checkedSite struct {
	Name     string           `json:"name"`
	Number   uint16           `json:"number"`
	Hosts    []string         `json:"hosts,omitempty"`
	Ranks    string           `json:"ranks,omitempty"`
	Gateways []checkedGateway `json:"gateways"`
	TCP      []netip.Prefix   `json:"tcp,omitempty"`
}

type checkedGateway struct {
	Name   string           `json:"name"`
	Number uint16           `json:"number"`
	LAN    []netip.AddrPort `json:"lan"`
	WAN    []netip.AddrPort `json:"wan"`
	Status string           `json:"status,omitempty"`
}

type checkedLeg struct {
	Sites        [2]string `json:"sites"`
	KeyFile      string    `json:"key_file"`
	Associations int       `json:"associations"`
	Rate         int64     `json:"rate_bits_per_s,omitempty"`
	Congestion   string    `json:"congestion"`
}

type checkedRoute struct {
	Path []string `json:"path"`
}

type checkedClass struct {
	Name     string `json:"name"`
	Weight   int    `json:"weight"`
	Rate     int64  `json:"rate_bits_per_s,omitempty"`
	FirstJob uint32 `json:"first_job"`
	LastJob  uint32 `json:"last_job"`
}

type checkedKeyBad struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

// checkMain is `weft gateway check`.
func checkMain(args []string) int {
	var asJSON bool
	fs := flag.NewFlagSet("weft gateway check", flag.ContinueOnError)
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: weft gateway check [-json] FILE

Check reads a sites file and prints what it says: sites, gateways, legs, and the way
between each two sites. It fails if the file has a mistake, and says in which line. Keys
that cannot be read on this host are listed: not each host needs all of them.

`)
		fs.PrintDefaults()
	}
	if status, ok := cli.Start(fs, args); !ok {
		return status
	}
	if fs.NArg() != 1 {
		return cli.Refuse(fs.Name(), errors.New("want the name of one sites file"))
	}
	f, err := sites.Read(fs.Arg(0))
	if err == nil {
		c := understood(f)
		if asJSON {
			e := json.NewEncoder(os.Stdout)
			e.SetIndent("", "  ")
			err = e.Encode(c)
		} else {
			err = c.print(os.Stdout)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "weft gateway check:", err)
		return cli.ExitFail
	}
	return cli.ExitOK
}

// understood returns what f says.
func understood(f *sites.File) *checked {
	c := &checked{
		File: f.Name, Mode: f.Mode, JobsKey: f.JobsKeyFile,
		Legs: []checkedLeg{}, Routes: []checkedRoute{}, Classes: []checkedClass{}, Keys: []checkedKeyBad{},
	}
	keys := map[string]bool{}
	tryKey := func(name string) {
		if keys[name] {
			return
		}
		keys[name] = true
		if _, err := sites.ReadKey(name); err != nil {
			c.Keys = append(c.Keys, checkedKeyBad{name, err.Error()})
		}
	}
	if f.JobsKeyFile != "" {
		tryKey(f.JobsKeyFile)
	}
	for i, s := range f.Sites {
		x := checkedSite{Name: s.Name, Number: s.Number, Hosts: s.Hosts, Ranks: f.RanksOf(s), TCP: s.TCP}
		x.Gateways = []checkedGateway{}
		for _, g := range s.Gateways {
			y := checkedGateway{Name: g.Name, Number: g.Number, LAN: g.LAN, WAN: g.WAN}
			if g.Status.IsValid() {
				y.Status = g.Status.String()
			}
			x.Gateways = append(x.Gateways, y)
		}
		c.Sites = append(c.Sites, x)
		for _, o := range f.Sites[i+1:] {
			var r checkedRoute
			for _, at := range f.Path(s, o) {
				r.Path = append(r.Path, at.Name)
			}
			c.Routes = append(c.Routes, r)
		}
	}
	for _, l := range f.Legs {
		c.Legs = append(c.Legs, checkedLeg{
			[2]string{l.A.Name, l.B.Name}, l.KeyFile, l.Associations, l.Rate, string(l.Congestion),
		})
		tryKey(l.KeyFile)
	}
	for _, k := range f.Classes {
		first, last := f.JobRange(k)
		c.Classes = append(c.Classes, checkedClass{k.Name, k.Weight, k.Rate, first, last})
	}
	return c
}

// maxShownHosts is how many hosts of a site are printed for people.
const maxShownHosts = 8

func (c *checked) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s: mode %s", c.File, c.Mode)
	if c.JobsKey != "" {
		fmt.Fprintf(w, ", key for jobs in %s", c.JobsKey)
	}
	fmt.Fprintln(w, "\n\nsite\tnumber\tprocesses on\tgateway\tlan\twan\tstatus")
	for _, s := range c.Sites {
		on := s.Ranks
		if n := len(s.Hosts); n > maxShownHosts {
			on = fmt.Sprintf("%s … (%d hosts)", strings.Join(s.Hosts[:maxShownHosts], " "), n)
		} else if n > 0 {
			on = strings.Join(s.Hosts, " ")
		}
		name, number := s.Name, fmt.Sprint(s.Number)
		for _, g := range s.Gateways {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, number, on, g.Name, join(g.LAN), join(g.WAN), g.Status)
			name, number, on = "", "", ""
		}
		if len(s.Gateways) == 0 {
			fmt.Fprintf(w, "%s\t%s\t%s\n", name, number, on)
		}
	}
	if len(c.Legs) > 0 {
		fmt.Fprintln(w, "\nleg\tassociations\trate\tcongestion\tkey")
	}
	for _, l := range c.Legs {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", strings.Join(l.Sites[:], "-"), l.Associations, rateText(l.Rate), l.Congestion, l.KeyFile)
	}
	if len(c.Routes) > 0 {
		fmt.Fprintln(w, "\nfrom\tto\tover")
	}
	for _, r := range c.Routes {
		n := len(r.Path)
		over := "the leg"
		if n > 2 {
			over = strings.Join(r.Path[1:n-1], ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Path[0], r.Path[n-1], over)
	}
	if len(c.Classes) > 0 {
		fmt.Fprintln(w, "\nclass of jobs\tweight\trate\tjob numbers")
	}
	for _, k := range c.Classes {
		fmt.Fprintf(w, "%s\t%d\t%s\t%d to %d\n", k.Name, k.Weight, rateText(k.Rate), k.FirstJob, k.LastJob)
	}
	if len(c.Keys) > 0 {
		fmt.Fprintln(w, "\nnot readable here")
	}
	for _, k := range c.Keys {
		fmt.Fprintln(w, k.Error)
	}
	return w.Flush()
}

func join(list []netip.AddrPort) string {
	var b strings.Builder
	for i, a := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.String())
	}
	return b.String()
}

// rateText returns bits per second for people.
func rateText(r int64) string {
	switch {
	case r == 0:
		return "no limit"
	case r >= 1e9:
		return fmt.Sprintf("%gGb/s", float64(r)/1e9)
	case r >= 1e6:
		return fmt.Sprintf("%gMb/s", float64(r)/1e6)
	}
	return fmt.Sprintf("%gkb/s", float64(r)/1e3)
}
