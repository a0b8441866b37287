package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/gateway/tcp"
	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// daemon is a gateway that runs.
type daemon struct {
	file    *sites.File
	site    *sites.Site
	gateway *sites.Gateway
	cfg     relay.GatewayConfig
	relay   *relay.Gateway
	tcp     *tcp.Service // nil: no TCP connections are carried
	began   time.Time
	log     *slog.Logger
}

// run runs a gateway until ctx is done.
func run(ctx context.Context, o *options) error {
	f, err := sites.Read(o.file)
	if err != nil {
		return err
	}
	d := &daemon{file: f, began: time.Now(), log: o.newLog()}
	if d.site, d.gateway, err = o.find(f); err != nil {
		return err
	}
	if d.cfg, err = relayConfig(f, d.site, d.gateway); err != nil {
		return err
	}
	if o.tcp.Rules {
		return d.printRules(o.tcp, os.Stdout)
	}
	d.cfg.Memory, d.cfg.MaxFlows, d.cfg.Log = int(o.memory), o.maxFlows, d.log
	http, err := d.listen(o)
	if err != nil {
		return err
	}
	if http != nil {
		defer http.Close()
	}
	if d.cfg.LAN, err = open("LAN", d.gateway.LAN, o.bindLAN); err != nil {
		return err
	}
	defer d.cfg.LAN.Close()
	if d.cfg.WAN, err = open("WAN", d.gateway.WAN, o.bindWAN); err != nil {
		return err
	}
	defer d.cfg.WAN.Close()
	if d.relay, err = relay.NewGateway(d.cfg); err != nil {
		return err
	}
	defer d.relay.Close()
	if err := d.startTCP(ctx, o.tcp); err != nil {
		return err
	}
	if d.tcp != nil {
		defer d.tcp.Close()
	}
	status := "off"
	if http != nil {
		status = http.Addr().String()
		go d.serve(http)
	}
	d.log.Info("gateway has started", slog.String("site", d.site.Name), slog.String("gateway", d.gateway.Name),
		slog.Any("lan", d.gateway.LAN), slog.Any("wan", d.gateway.WAN), slog.String("status", status))
	d.waitForLegs(ctx)
	<-ctx.Done()
	d.log.Info("gateway ends", slog.Any("reason", context.Cause(ctx)))
	return nil
}

// open opens the sockets of one side.
func open(side string, published, bind []netip.AddrPort) (*sctp.Transport, error) {
	if len(bind) == 0 {
		bind = published
	}
	t, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: bind})
	if err != nil {
		return nil, fmt.Errorf("%s side: %w", side, err)
	}
	return t, nil
}

// minReadyPoll and maxReadyPoll are how often a gateway looks whether all legs are up, at first and later, until they
// are: another gateway may be away for days.
const minReadyPoll, maxReadyPoll = 50 * time.Millisecond, 5 * time.Second

// waitForLegs logs when all legs to other gateways are up, or returns when ctx is done.
func (d *daemon) waitForLegs(ctx context.Context) {
	for poll := minReadyPoll; !d.ready(); poll = min(poll*5/4, maxReadyPoll) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(poll):
		}
	}
	d.log.Info("all legs are up")
}

// ready reports whether all legs to other gateways are up.
func (d *daemon) ready() bool {
	_, down := d.legs(d.relay.Stats().Legs)
	return down == 0
}

// relayConfig returns what a sites file says about a gateway. It reads the keys.
func relayConfig(f *sites.File, s *sites.Site, g *sites.Gateway) (relay.GatewayConfig, error) {
	cfg := relay.GatewayConfig{
		Site: s.Number, Number: g.Number, LANPort: g.LANAddr().Port, WANPort: g.WANAddr().Port,
		Routes: make(map[uint16]uint16),
	}
	if len(f.Sites) == 1 {
		return cfg, fmt.Errorf("%s: there is one site only: nothing to relay", f.Name)
	}
	jobs, err := f.JobsKey()
	if err != nil {
		return cfg, err
	}
	cfg.JobKey = func(job uint32) []byte { return sites.JobKey(jobs, job) }
	for _, c := range f.Classes {
		first, last := f.JobRange(c)
		cfg.Classes = append(cfg.Classes, relay.Class{
			Name: c.Name, Jobs: []relay.JobRange{{First: first, Last: last}}, Weight: c.Weight, Rate: c.Rate / 8,
		})
	}
	for _, o := range f.Sites {
		if o == s {
			for _, h := range s.Gateways {
				if h != g {
					cfg.Peers = append(cfg.Peers, relay.Peer{
						Site: s.Number, Gateway: h.Number, Addr: h.WANAddr(), Key: sites.SiteKey(jobs, s.Number),
					})
				}
			}
			continue
		}
		l := f.Leg(s, o)
		if l == nil {
			cfg.Routes[o.Number] = f.Next(s, o).Number
			continue
		}
		key, err := l.Key()
		if err != nil {
			return cfg, fmt.Errorf("%s:%d: leg %s %s: %w", f.Name, l.Line, l.A.Name, l.B.Name, err)
		}
		for _, h := range o.Gateways {
			cfg.Peers = append(cfg.Peers, relay.Peer{
				Site: o.Number, Gateway: h.Number, Addr: h.WANAddr(), Key: key, Associations: l.Associations, Rate: l.Rate / 8,
				Congestion: l.Congestion.Algorithm(),
			})
		}
	}
	return cfg, nil
}
