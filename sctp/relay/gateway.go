package relay

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay/frame"
)

const roleGateway = frame.RoleGateway

const (
	// flowIdle is after how long without a frame a gateway forgets a flow.
	flowIdle = 10 * time.Second
	// flowlet is the pause of a flow, in periods of the timer, in which it may move to another leg.
	flowlet = 2
	// processShare is the part of the flows of a gateway that one process may have.
	processShare = 4
	// minShare is the smallest window that a gateway leaves a flow, in bytes.
	minShare = maxCredit
)

// Gateway relays frames between the processes of its site and other gateways. It is safe for concurrent use.
//
// It has no goroutine but those that connect and a timer: frames are forwarded on the goroutine that received them.
type Gateway struct {
	station
	cfg         GatewayConfig
	incarnation uint32
	eps         []*sctp.Endpoint
	memory      account
	classes     []classCounters   // as in cfg
	trunks      map[uint32]*trunk // of peers: site<<16 | number

	mu       sync.Mutex
	closed   bool
	jobs     map[uint32]*job
	peers    map[uint16][]*conn // legs that are up, by site
	conns    []*conn            // all legs that are up
	flows    map[flowKey]*flow
	spare    []*flow
	counters GatewayCounters
	now      time.Duration // since it was made, as of the last tick
	logged   [16]time.Duration

	legs []*conn // of the timer
}

// NewGateway makes a gateway and begins to connect to its peers. It does not wait for them. Errors: ErrConfig, and
// those of sctp.Transport.Listen.
func NewGateway(cfg GatewayConfig) (*Gateway, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	g := &Gateway{
		cfg: cfg, incarnation: newIncarnation(), jobs: make(map[uint32]*job),
		peers: make(map[uint16][]*conn), flows: make(map[flowKey]*flow),
	}
	g.memory.limit = int64(cfg.Memory)
	g.classes = make([]classCounters, len(cfg.Classes))
	g.trunks = make(map[uint32]*trunk)
	for _, p := range cfg.Peers {
		g.trunks[trunkID(p.Site, p.Gateway)] = newTrunk(&cfg, p.Rate, g.classes)
	}
	g.init(cfg.Log)
	for id, key := range cfg.Jobs {
		_ = g.AddJob(id, key, JobOptions{}) // was checked
	}
	var lan, wan *sctp.Endpoint
	var err error
	if cfg.LAN != nil {
		lan, err = g.listen(g, cfg.LAN, cfg.LANPort, cfg.LANSCTP, lanStreams)
	}
	if err == nil && cfg.WAN != nil {
		wan, err = g.listen(g, cfg.WAN, cfg.WANPort, cfg.WANSCTP, wanStreams)
	}
	for _, ep := range [...]*sctp.Endpoint{lan, wan} {
		if ep != nil {
			g.eps = append(g.eps, ep)
		}
	}
	if err != nil {
		_ = g.Close()
		return nil, err
	}
	for _, p := range cfg.Peers {
		for k := range uint16(p.Associations) {
			if !cfg.connects(p) {
				break
			}
			from := wan
			if k > 0 { // between two ports there is one association
				if from, err = g.listen(g, cfg.WAN, 0, cfg.WANSCTP, wanStreams); err != nil {
					_ = g.Close()
					return nil, err
				}
				g.eps = append(g.eps, from)
			}
			g.keepConnected(g, from, p.Addr, p.Key, frame.Greeting{
				Role: roleGateway, From: Address{Site: cfg.Site, Node: cfg.Number, Process: k},
				Incarnation: g.incarnation, Site: p.Site, Node: p.Gateway,
			})
		}
	}
	g.tasks.Go(g.timer)
	return g, nil
}

// identity implements host.
func (g *Gateway) identity() (site, gateway uint16, incarnation uint32) {
	return g.cfg.Site, g.cfg.Number, g.incarnation
}

// keyOf implements host.
func (g *Gateway) keyOf(p *frame.Greeting) (key []byte, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case p.Site != g.cfg.Site:
		err = fmt.Errorf("relay: this is site %d, not %d", g.cfg.Site, p.Site)
	case p.Node != 0 && p.Node != g.cfg.Number || p.Process != 0:
		err = fmt.Errorf("relay: this is gateway %d of site %d, not %v", g.cfg.Number, g.cfg.Site, p.To())
	case p.Role == frame.RoleNode:
		if p.From.Site != g.cfg.Site || !valid(p.From) {
			err = fmt.Errorf("relay: process %v is not of site %d", p.From, g.cfg.Site)
		} else if key = g.jobKey(p.Job); key == nil {
			err = fmt.Errorf("relay: unknown job %d", p.Job)
		}
	case p.Role == roleGateway:
		for i := range g.cfg.Peers {
			q := &g.cfg.Peers[i]
			if q.Site != p.From.Site || q.Gateway != p.From.Node || g.cfg.connects(*q) {
				continue
			}
			if int(p.From.Process) < q.Associations {
				return q.Key, nil
			}
			err = fmt.Errorf("relay: association %d of gateway %d of site %d, want at most %d", p.From.Process+1,
				p.From.Node, p.From.Site, q.Associations)
		}
		if err == nil {
			err = fmt.Errorf("relay: unknown gateway %d of site %d", p.From.Node, p.From.Site)
		}
	default:
		err = fmt.Errorf("relay: unknown role %d", p.Role)
	}
	if err != nil {
		g.counters.PeersRefused++
		g.warn(0, "peer refused", slog.Any("error", err))
	}
	return key, err
}

// attach implements host.
func (g *Gateway) attach(c *conn) error {
	g.mu.Lock()
	former, err := g.add(c)
	g.mu.Unlock()
	if former != nil {
		former.a.Abort("relay: replaced by another association of the same peer")
	}
	if err == nil && c.role == roleGateway {
		for _, p := range g.cfg.Peers {
			if p.Site == c.peer.Site && p.Gateway == c.peer.Node && p.Congestion != 0 {
				c.a.SetCongestion(p.Congestion)
			}
		}
	}
	return err
}

// add makes c the leg of its peer, and returns the former one. mu is held.
func (g *Gateway) add(c *conn) (former *conn, err error) {
	if g.closed {
		return nil, ErrClosed
	}
	if c.role == frame.RoleNode {
		if !g.knows(c.job) {
			return nil, fmt.Errorf("relay: unknown job %d", c.job)
		}
		if j := g.jobs[c.job]; j != nil {
			former = j.local[localID(c.peer)]
		}
	} else {
		t := g.trunks[trunkID(c.peer.Site, c.peer.Node)]
		if t == nil { // another one listens at the address of a peer
			g.counters.PeersRefused++
			return nil, fmt.Errorf("relay: unknown gateway %d of site %d", c.peer.Node, c.peer.Site)
		}
		c.divide(g.cfg.Classes, t, c.wake)
		for _, o := range g.peers[c.peer.Site] {
			if o.peer == c.peer && o.index == c.index {
				former = o
			}
		}
	}
	if former != nil {
		if int32(c.incarnation-former.incarnation) < 0 {
			g.counters.PeersRefused++
			return nil, fmt.Errorf("relay: a later incarnation of %v is connected", c.peer)
		}
		g.remove(former)
		g.counters.LegsLost++
	}
	c.attached = true
	g.conns = append(g.conns, c)
	if c.role == frame.RoleNode {
		g.needJob(c.job).local[localID(c.peer)] = c
	} else {
		g.peers[c.peer.Site] = append(g.peers[c.peer.Site], c)
	}
	g.note(slog.LevelInfo, "leg up", c.attrs()...)
	return former, nil
}

func (c *conn) attrs() []slog.Attr {
	kind := "process"
	if c.role == roleGateway {
		kind = "gateway"
	}
	return []slog.Attr{slog.String("peer", kind+" "+c.peer.String()), slog.Int("association", int(c.index)+1), slog.Int("job", int(c.job)),
		slog.String("addr", c.a.RemoteAddr().String())}
}

func trunkID(site, gateway uint16) uint32 { return uint32(site)<<16 | uint32(gateway) }

func localID(a Address) uint32 { return uint32(a.Node)<<16 | uint32(a.Process) }

// remove forgets a leg. mu is held.
func (g *Gateway) remove(c *conn) {
	if !c.attached {
		return
	}
	c.attached = false
	same := func(o *conn) bool { return o == c }
	g.conns = slices.DeleteFunc(g.conns, same)
	if c.role == frame.RoleNode {
		if j := g.jobs[c.job]; j != nil && j.local[localID(c.peer)] == c {
			delete(j.local, localID(c.peer))
			g.leaveJob(j)
		}
	} else {
		g.peers[c.peer.Site] = slices.DeleteFunc(g.peers[c.peer.Site], same)
	}
}

// detach implements host.
func (g *Gateway) detach(c *conn, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !c.attached {
		if c.expects == frame.Prove {
			g.counters.PeersRefused++
			g.warn(0, "peer not authenticated", append(c.attrs(), slog.Any("error", err))...)
		}
		return
	}
	g.remove(c)
	switch {
	case g.closed:
	case closed(err):
		g.note(slog.LevelInfo, "leg closed", c.attrs()...)
	default:
		g.counters.LegsLost++
		g.note(slog.LevelWarn, "leg down", append(c.attrs(), slog.Any("error", err))...)
	}
}

// warn logs at most once a second for each kind. mu is held.
func (g *Gateway) warn(kind int, msg string, attrs ...slog.Attr) {
	if g.logged[kind] != 0 && g.now-g.logged[kind] < time.Second {
		return
	}
	g.logged[kind] = g.now + 1
	g.note(slog.LevelWarn, msg, attrs...)
}

// flush implements host.
func (g *Gateway) flush(c *conn) {
	for i, l := range c.touched {
		l.pump()
		c.touched[i] = nil
	}
	c.touched = c.touched[:0]
}

// timer runs until Close.
func (g *Gateway) timer() {
	t := time.NewTicker(g.cfg.LegTimeout / checks)
	defer t.Stop()
	began := time.Now()
	for {
		select {
		case <-g.ctx.Done():
			return
		case now := <-t.C:
			g.onTimer(now.Sub(began))
		}
	}
}

func (g *Gateway) onTimer(now time.Duration) {
	g.mu.Lock()
	g.now = now
	g.forget()
	g.legs = append(g.legs[:0], g.conns...)
	g.mu.Unlock()
	checkLegs(g.legs)
	g.write()
}

// Close ends all legs. What the gateway holds is lost; the origins have it. It must not be called from an upcall.
func (g *Gateway) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return ErrClosed
	}
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	var err error
	for _, ep := range g.eps {
		for _, a := range ep.Associations() {
			a.Abort(closing)
		}
		if e := ep.Close(); e != nil && err == nil {
			err = e
		}
	}
	g.tasks.Wait()
	g.write()
	return err
}
