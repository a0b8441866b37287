package emulator

import (
	"fmt"
	"io"

	"github.com/weftstack/weft/internal/netem"
)

// portStats are the counters of one host in one network, as the control socket
// gives them.
type portStats struct {
	Net  int    `json:"net"`
	Host int    `json:"host"`
	Name string `json:"name,omitempty"` // with sites
	netem.Stats
}

// stats returns the counters of every host and network.
func (p *plan) stats(f *netem.Fabric) (all []portStats) {
	for n := range f.Nets() {
		for h := range f.Hosts(n) {
			all = append(all, portStats{n, h, p.portName(n, h), f.Stats(n, h)})
		}
	}
	return all
}

// portName returns what is at a port of a network with sites, in the words of commands.
func (p *plan) portName(net, port int) string {
	if p.sites == nil {
		return ""
	}
	part, site, wan := p.sites.Part(net)
	if part == netem.PartWAN {
		return fmt.Sprintf("wan %d site %d", wan+1, port+1)
	}
	where := fmt.Sprintf("lan site %d", site+1)
	router := p.sites.Router()
	if part == netem.PartAccess {
		where, router = fmt.Sprintf("wan %d site %d", wan+1, site+1), p.sites.AccessRouter()
	}
	switch i := p.tapAt(net, port); {
	case port == router:
		return where + " router"
	case i < 0:
		return where + " cross-traffic"
	default:
		n := &p.nodes[p.taps[i].node]
		return where + [...]string{kindHost: " host ", kindGateway: " gateway ", kindCross: " cross-traffic "}[n.kind] + fmt.Sprint(n.number+1)
	}
}

// printStats prints the counters of every host and network; with sites, of those that sent
// something.
func (p *plan) printStats(w io.Writer, f *netem.Fabric) {
	if p.sites != nil {
		fmt.Fprintf(w, "%-30s", "from")
	} else {
		fmt.Fprintf(w, "%4s %4s", "net", "host")
	}
	fmt.Fprintf(w, " %10s %12s %10s %8s %8s %8s %8s %8s %8s %8s %10s\n",
		"sent", "bytes", "delivered", "lost", "overflow", "too_long", "cut", "dup", "reorder", "corrupt", "peak_queue")
	for _, s := range p.stats(f) {
		switch {
		case p.sites == nil:
			fmt.Fprintf(w, "%4d %4d", s.Net, s.Host)
		case s.Sent == 0:
			continue
		default:
			fmt.Fprintf(w, "%-30s", s.Name)
		}
		fmt.Fprintf(w, " %10d %12d %10d %8d %8d %8d %8d %8d %8d %8d %10d\n",
			s.Sent, s.SentBytes, s.Delivered, s.Lost, s.Overflowed, s.TooLong, s.Cut, s.Duplicated, s.Reordered, s.Corrupted,
			s.PeakBacklogBytes)
	}
}
