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
	// DefaultGatewayMemory bounds the memory in bytes of the frames in a gateway.
	DefaultGatewayMemory = 64 << 20
	// DefaultGatewayLAN and DefaultGatewayWAN are the default SCTP ports of gateways.
	DefaultGatewayLAN, DefaultGatewayWAN = 5747, 5748

	// flowIdle is after how long without a frame a gateway forgets a flow.
	flowIdle = 10 * time.Second
	// processShare is the part of the flows of a gateway that one process may have.
	processShare = 4
	// minShare is the smallest window that a gateway leaves a flow, in bytes.
	minShare = maxCredit
)

// Peer is another gateway: of another site, or of the own one.
type Peer struct {
	Site, Gateway uint16
	// Addr is where it listens for gateways. It may be empty if that side connects: the
	// gateway with the lower (site, number) does.
	Addr sctp.Addr
	// Key is the key of the pair of sites, of at least MinKey random bytes.
	Key []byte
}

// GatewayConfig holds the parameters of a Gateway. Site, Number, and LAN or WAN must be set.
type GatewayConfig struct {
	// Site is the number of the site, Number that of the gateway in it, each from 1.
	Site, Number uint16

	// LAN carries the legs to processes, on the SCTP port LANPort, WAN those to gateways, on
	// WANPort. They may be one transport. They belong to the caller, and must be closed after
	// the gateway. A port is DefaultGatewayLAN or DefaultGatewayWAN if it is 0.
	LAN, WAN         *sctp.Transport
	LANPort, WANPort uint16
	// LANSCTP and WANSCTP are the parameters of the associations. This package sets their
	// streams and upcalls.
	LANSCTP, WANSCTP sctp.Config

	// Jobs has the keys of the jobs that the gateway relays for; see Gateway.AddJob, too.
	Jobs map[uint32][]byte
	// Peers are the gateways that it has legs to, Routes the sites through which other sites
	// are reached: by destination, the next site, which has peers.
	Peers  []Peer
	Routes map[uint16]uint16

	// Memory bounds the memory of frames (default DefaultGatewayMemory), JobMemory that of one
	// job (default half of Memory), FlowMemory that of a flow (default twice
	// DefaultFlowWindow), MaxFlows the flows (default DefaultMaxFlows), of which a process may
	// have a quarter.
	Memory, JobMemory, FlowMemory, MaxFlows int

	// LegTimeout is after how long without a frame the other end of a leg is dead.
	LegTimeout time.Duration

	// Log, if not nil, gets a line for each leg that comes or goes, for peers that are refused,
	// and at most once a second for each reason for which frames are refused.
	Log *slog.Logger
}

func (c *GatewayConfig) check() error {
	switch {
	case c.Site == 0 || c.Number == 0:
		return fmt.Errorf("%w: gateway %d of site %d: numbers begin with 1", ErrConfig, c.Number, c.Site)
	case c.LAN == nil && c.WAN == nil:
		return fmt.Errorf("%w: neither LAN nor WAN transport", ErrConfig)
	case c.WAN == nil && len(c.Peers) > 0:
		return fmt.Errorf("%w: peers without a WAN transport", ErrConfig)
	}
	for job, key := range c.Jobs {
		if err := checkJob(job, key); err != nil {
			return err
		}
	}
	sites := make(map[uint16]bool)
	seen := make(map[uint32]bool)
	for _, p := range c.Peers {
		id := uint32(p.Site)<<16 | uint32(p.Gateway)
		switch {
		case p.Site == 0 || p.Gateway == 0:
			return fmt.Errorf("%w: peer %d of site %d: numbers begin with 1", ErrConfig, p.Gateway, p.Site)
		case p.Site == c.Site && p.Gateway == c.Number:
			return fmt.Errorf("%w: gateway %d of site %d is its own peer", ErrConfig, c.Number, c.Site)
		case seen[id]:
			return fmt.Errorf("%w: gateway %d of site %d is listed twice", ErrConfig, p.Gateway, p.Site)
		case len(p.Key) < MinKey:
			return fmt.Errorf("%w: key for site %d of %d bytes, want at least %d", ErrConfig, p.Site, len(p.Key), MinKey)
		case c.connects(p) && len(p.Addr.Addrs) == 0:
			return fmt.Errorf("%w: gateway %d of site %d has no address to connect to", ErrConfig, p.Gateway, p.Site)
		}
		seen[id], sites[p.Site] = true, true
	}
	for to, via := range c.Routes {
		switch {
		case to == c.Site || via == c.Site:
			return fmt.Errorf("%w: route to site %d through %d leads through the own site", ErrConfig, to, via)
		case !sites[via]:
			return fmt.Errorf("%w: route to site %d through %d, which has no peers", ErrConfig, to, via)
		case sites[to]:
			return fmt.Errorf("%w: route to site %d through %d, but it has peers", ErrConfig, to, via)
		}
	}
	def(&c.Memory, DefaultGatewayMemory)
	def(&c.JobMemory, c.Memory/2)
	def(&c.FlowMemory, 2*DefaultFlowWindow)
	def(&c.MaxFlows, DefaultMaxFlows)
	def(&c.LegTimeout, DefaultLegTimeout)
	def(&c.LANPort, DefaultGatewayLAN)
	def(&c.WANPort, DefaultGatewayWAN)
	switch {
	case c.Memory < 0 || c.JobMemory < 0 || c.FlowMemory < 0 || c.MaxFlows < 0:
		return fmt.Errorf("%w: negative limit", ErrConfig)
	case c.LegTimeout < MinLegTimeout:
		return fmt.Errorf("%w: LegTimeout %v, want at least %v", ErrConfig, c.LegTimeout, MinLegTimeout)
	}
	return nil
}

// connects reports whether this side connects to p.
func (c *GatewayConfig) connects(p Peer) bool {
	return c.Site < p.Site || c.Site == p.Site && c.Number < p.Gateway
}

func checkJob(job uint32, key []byte) error {
	switch {
	case job == 0 || job > frame.MaxJob:
		return fmt.Errorf("%w: job %d, want 1 to %d", ErrConfig, job, frame.MaxJob)
	case len(key) < MinKey:
		return fmt.Errorf("%w: key of job %d of %d bytes, want at least %d", ErrConfig, job, len(key), MinKey)
	}
	return nil
}

// Gateway relays frames between the processes of its site and other gateways. It is safe for concurrent use.
//
// It has no goroutine but those that connect and a timer: frames are forwarded on the goroutine that received them.
type Gateway struct {
	station
	cfg         GatewayConfig
	incarnation uint32
	eps         []*sctp.Endpoint
	memory      account

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

// job is a job that the gateway relays for.
type job struct {
	key    []byte
	memory account
	local  map[uint32]*conn // processes of this site: node<<16 | process
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
	g.init(cfg.Log)
	for id, key := range cfg.Jobs {
		_ = g.AddJob(id, key) // was checked
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
		if cfg.connects(p) {
			g.keepConnected(g, wan, p.Addr, p.Key, frame.Greeting{
				Role: roleGateway, From: Address{Site: cfg.Site, Node: cfg.Number},
				Incarnation: g.incarnation, Site: p.Site,
			})
		}
	}
	g.tasks.Go(g.timer)
	return g, nil
}

// AddJob lets the gateway relay for a job whose processes prove that they know key. It replaces the key of a job that
// it knows. Errors: ErrConfig.
func (g *Gateway) AddJob(id uint32, key []byte) error {
	if err := checkJob(id, key); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if j := g.jobs[id]; j != nil {
		j.key = slices.Clone(key)
		return nil
	}
	j := &job{key: slices.Clone(key), local: make(map[uint32]*conn)}
	j.memory.limit, j.memory.above = int64(g.cfg.JobMemory), &g.memory
	g.jobs[id] = j
	return nil
}

// RemoveJob ends the legs of the processes of a job, and forgets it.
func (g *Gateway) RemoveJob(id uint32) {
	g.mu.Lock()
	var legs []*conn
	if j := g.jobs[id]; j != nil {
		for _, c := range j.local {
			legs = append(legs, c)
		}
		delete(g.jobs, id)
	}
	g.mu.Unlock()
	for _, c := range legs {
		c.a.Abort(fmt.Sprintf("relay: job %d was removed", id))
	}
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
	case p.Role == frame.RoleNode:
		j := g.jobs[p.Job]
		switch {
		case p.From.Site != g.cfg.Site || !valid(p.From):
			err = fmt.Errorf("relay: process %v is not of site %d", p.From, g.cfg.Site)
		case j == nil:
			err = fmt.Errorf("relay: unknown job %d", p.Job)
		default:
			key = j.key
		}
	case p.Role == roleGateway:
		for i := range g.cfg.Peers {
			if q := &g.cfg.Peers[i]; q.Site == p.From.Site && q.Gateway == p.From.Node && !g.cfg.connects(*q) {
				return q.Key, nil
			}
		}
		err = fmt.Errorf("relay: unknown gateway %d of site %d", p.From.Node, p.From.Site)
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
	return err
}

// add makes c the leg of its peer, and returns the former one. mu is held.
func (g *Gateway) add(c *conn) (former *conn, err error) {
	if g.closed {
		return nil, ErrClosed
	}
	if c.role == frame.RoleNode {
		j := g.jobs[c.job]
		if j == nil {
			return nil, fmt.Errorf("relay: unknown job %d", c.job)
		}
		former = j.local[localID(c.peer)]
	} else {
		for _, o := range g.peers[c.peer.Site] {
			if o.peer == c.peer {
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
	}
	c.attached = true
	g.conns = append(g.conns, c)
	if c.role == frame.RoleNode {
		g.jobs[c.job].local[localID(c.peer)] = c
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
	return []slog.Attr{slog.String("peer", kind+" "+c.peer.String()), slog.Int("job", int(c.job)),
		slog.String("addr", c.a.RemoteAddr().String())}
}

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
		}
	} else {
		g.peers[c.peer.Site] = slices.DeleteFunc(g.peers[c.peer.Site], same)
	}
	g.counters.LegsLost++
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
	if !g.closed {
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
			a.Abort("relay: gateway closed")
		}
		if e := ep.Close(); e != nil && err == nil {
			err = e
		}
	}
	g.tasks.Wait()
	g.write()
	return err
}

// Stats returns a snapshot.
func (g *Gateway) Stats() GatewayStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := GatewayStats{GatewayCounters: g.counters, Held: g.memory.held.Load()}
	for _, c := range g.conns {
		s.Legs = append(s.Legs, c.stats())
	}
	for k, f := range g.flows {
		s.Flows = append(s.Flows, FlowStats{
			Job: k.job, From: k.from, To: k.to, Stream: k.stream, Frames: f.frames, Bytes: f.bytes,
			Held: f.memory.held.Load(), Idle: g.now - f.used,
		})
	}
	return s
}
