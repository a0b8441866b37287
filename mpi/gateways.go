package mpi

import (
	"fmt"

	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/mpi/internal/localsites"
)

// GatewayOptions say how the ranks of different sites reach each other in RunLocal: see WithGateways.
type GatewayOptions struct {
	// Chained has a send complete when the other process has the message, in place of when this one has copied it.
	Chained bool
	// PerSite is the number of gateways of each site, 1 if it is 0. They share the flows, and stand in for each other.
	PerSite int
	// Line connects each site with the next one only, in the order of their first ranks, in place of all with all:
	// messages between others pass the sites between them.
	Line bool

	conns *localsites.Config            // of tests: on what the gateways run
	began func(gates *localsites.Sites) // of tests: is called with the gateways
}

// WithGateways has ranks of RunLocal that are at different sites, as [WithSite] says, exchange all messages through
// gateways, as processes of `weft run -sites` do. RunLocal runs the gateways in this process, on loopback, and ends
// them. Ranks that are spawned must be at one of the sites of the first ranks. Init gives ErrOption.
func WithGateways(g GatewayOptions) Option {
	return func(o *options) error {
		if g.PerSite < 0 || g.PerSite > sites.MaxGateways {
			return fmt.Errorf("%w: %d gateways of a site", ErrOption, g.PerSite)
		}
		o.gateways = &g
		return nil
	}
}

// startGateways starts the gateways for n ranks, if there are to be some.
func (o *options) startGateways(n int) (*localsites.Sites, error) {
	if o.gateways == nil || o.SiteOf == nil {
		return nil, nil
	}
	var names []string
	seen := make(map[string]bool)
	for rank := range n {
		if s := o.SiteOf(rank); !seen[s] {
			seen[s] = true
			names = append(names, s)
		}
	}
	if len(names) < 2 {
		return nil, nil
	}
	var cfg localsites.Config
	if o.gateways.conns != nil {
		cfg = *o.gateways.conns
	}
	cfg.Gateways, cfg.Line, cfg.Log, cfg.Mode = o.gateways.PerSite, o.gateways.Line, o.Log, sites.Piecewise
	if o.gateways.Chained {
		cfg.Mode = sites.Chained
	}
	s, err := localsites.Start(cfg, names)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOption, err)
	}
	if o.gateways.began != nil {
		o.gateways.began(s)
	}
	return s, nil
}
