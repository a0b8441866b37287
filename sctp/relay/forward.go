package relay

import (
	"log/slog"
	"time"

	"github.com/weftstack/weft/sctp/relay/frame"
)

// flowKey names one direction of a flow in a gateway. Acks are of the other direction.
type flowKey struct {
	job      uint32
	from, to Address
	stream   uint16
}

// flow is what a gateway knows of a flow that has been active lately. Nothing depends on it but fairness
// and limits: a gateway that has just started forwards as well.
type flow struct {
	hash          uint32
	memory        account
	job           *job
	process       *conn // that has it among its flows; nil: another gateway
	leg           *conn
	q             queue // guarded by the mutex of leg
	used          time.Duration
	frames, bytes uint64
}

// nextSite returns through which site another one is reached, 0 if there is no way. mu is held.
func (g *Gateway) nextSite(site uint16) uint16 {
	if _, ok := g.peers[site]; ok || g.isPeer(site) {
		return site
	}
	return g.cfg.Routes[site]
}

func (g *Gateway) isPeer(site uint16) bool {
	for i := range g.cfg.Peers {
		if g.cfg.Peers[i].Site == site {
			return true
		}
	}
	return false
}

// mayMake reports whether c may send frame f, by what it has proven. mu is held.
func (g *Gateway) mayMake(c *conn, f *frame.Frame) bool {
	switch {
	case c.role == frame.RoleNode:
		return f.From == c.peer && f.Job == c.job && (int32(f.Incarnation-c.incarnation) >= 0 || f.Type == frame.Refuse)
	case c.peer.Site == g.cfg.Site:
		return f.To.Site == g.cfg.Site
	default:
		return f.From.Site != g.cfg.Site && g.nextSite(f.From.Site) == c.peer.Site
	}
}

// route returns the leg for a frame that came from c, or why there is none. mu is held.
func (g *Gateway) route(c *conn, f *frame.Frame, hash uint32) (to *conn, why frame.Reason) {
	if !g.knows(f.Job) {
		return nil, frame.UnknownJob
	}
	if f.Hops == 0 {
		return nil, frame.Loop
	}
	sibling := c.role == roleGateway && c.peer.Site == g.cfg.Site
	if f.To.Site == g.cfg.Site {
		if j := g.jobs[f.Job]; j != nil {
			to = j.local[localID(f.To)]
		}
		if to == nil && !sibling {
			to = choose(g.peers[g.cfg.Site], hash)
		}
	} else {
		next := g.nextSite(f.To.Site)
		switch {
		case next == 0:
			return nil, frame.UnknownSite
		case c.role == roleGateway && next == c.peer.Site:
			return nil, frame.Loop
		}
		to = choose(g.peers[next], hash)
	}
	if to == nil {
		return nil, frame.Unreachable
	}
	return to, 0
}

// onFrame implements host: it forwards the frame.
func (g *Gateway) onFrame(c *conn, f *frame.Frame, b []byte, p *packet) {
	if p == nil {
		p = newPacket(len(b))
		copy(p.bytes(), b) // the only copy
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	e, why := g.admit(c, f)
	if e == nil {
		if why != 0 {
			g.refuse(c, f, why)
		}
		p.release()
		return
	}
	if full := e.memory.take(p.cost()); full != nil {
		switch full {
		case &e.memory:
			g.counters.OverFlow++
		case &g.memory:
			g.counters.OverGateway++
		default:
			g.counters.OverJob++
		}
		p.release()
		return
	}
	p.pays = &e.memory
	p.hash, p.single = e.hash, f.Type == frame.Single
	frame.SetHops(p.bytes(), f.Hops-1)
	if share := uint32(g.share()); f.Type == frame.Ack && f.Window > share {
		frame.SetWindow(p.bytes(), share)
	}
	e.leg.enqueue(&e.q, p)
	c.touch(&e.leg.leg)
}

// share is the largest window that the gateway lets a flow have. mu is held.
func (g *Gateway) share() int { return max(minShare, g.cfg.Memory/2/max(1, len(g.flows))) }

// admit finds the flow of a frame, with the leg that it takes; nil if it is refused, or, without a reason, dropped.
// mu is held.
func (g *Gateway) admit(c *conn, f *frame.Frame) (*flow, frame.Reason) {
	if g.closed || !c.attached {
		return nil, 0
	}
	if !g.mayMake(c, f) {
		g.counters.Forged++
		g.warn(1, "forged frame", append(c.attrs(), slog.String("from", f.From.String()), slog.Int("of job", int(f.Job)))...)
		return nil, 0
	}
	k := flowKey{f.Job, f.From, f.To, f.Stream}
	e := g.flows[k]
	hash := flowHash(f.Job, f.From, f.To, f.Stream)
	to, why := g.route(c, f, hash)
	if why != 0 {
		return nil, why
	}
	if e == nil {
		if len(g.flows) >= g.cfg.MaxFlows || c.role == frame.RoleNode && c.flows >= max(1, g.cfg.MaxFlows/processShare) {
			return nil, frame.TooManyFlows
		}
		e = g.newFlow()
		j := g.needJob(f.Job)
		j.flows++
		e.job = j
		e.hash, e.leg, e.q.class = hash, to, j.class
		e.memory.limit, e.memory.above = int64(g.cfg.FlowMemory), &j.memory
		if c.role == frame.RoleNode {
			e.process = c
			c.flows++
		}
		g.flows[k] = e
	}
	if e.leg != to {
		e.move(g, to)
	}
	e.used = g.now
	e.frames++
	e.bytes += uint64(len(f.Payload))
	return e, 0
}

// move has e take another leg. Between gateways of one site it does so only when its own leg is gone, or after a pause,
// in which what it has sent has arrived: so a path that returns reorders nothing (flowlet switching, Sinha, Kandula and
// Katabi, HotNets 2004). mu is held.
func (e *flow) move(g *Gateway, to *conn) {
	same := e.leg.attached && e.leg.role == roleGateway && to.role == roleGateway && e.leg.peer.Site == to.peer.Site
	if same && (g.now-e.used < flowlet*g.cfg.LegTimeout/checks || e.memory.held.Load() > 0) {
		return
	}
	e.leg.handOver(&e.q, &to.leg)
	e.leg = to
	g.counters.Moves++
}

func (g *Gateway) newFlow() *flow {
	if n := len(g.spare); n > 0 {
		e := g.spare[n-1]
		g.spare[n-1] = nil
		g.spare = g.spare[:n-1]
		return e
	}
	return new(flow)
}

// maxSpare is how many flows a gateway keeps for others.
const maxSpare = 256

// forget forgets flows that have been idle. mu is held.
func (g *Gateway) forget() {
	for k, e := range g.flows {
		if g.now-e.used < flowIdle || e.memory.held.Load() > 0 {
			continue
		}
		delete(g.flows, k)
		if e.process != nil {
			e.process.flows--
		}
		e.job.flows--
		g.leaveJob(e.job)
		e.job, e.process, e.leg, e.memory.above, e.frames, e.bytes = nil, nil, nil, nil, 0, 0
		if len(g.spare) < maxSpare {
			g.spare = append(g.spare, e)
		}
	}
}

// refuse counts a frame that cannot be forwarded, and tells its origin. mu is held.
func (g *Gateway) refuse(c *conn, f *frame.Frame, why frame.Reason) {
	switch why {
	case frame.Unreachable:
		g.counters.Unreachable++
	case frame.UnknownSite:
		g.counters.UnknownSite++
	case frame.UnknownJob:
		g.counters.UnknownJob++
	case frame.Loop:
		g.counters.Loops++
	case frame.TooManyFlows:
		g.counters.TooManyFlows++
	}
	g.warn(1+int(why), "frame refused", slog.String("reason", why.String()), slog.String("from", f.From.String()),
		slog.String("to", f.To.String()), slog.Int("job", int(f.Job)))
	if f.Type == frame.Ack || f.Type == frame.Refuse {
		return
	}
	var buf [64]byte
	b := frame.Append(buf[:0], &frame.Frame{Header: frame.Header{
		Type: frame.Refuse, Hops: frame.MaxHops, Stream: f.Stream, Job: f.Job,
		From: f.To, To: f.From, Incarnation: f.Incarnation,
	}, Reason: why})
	p := newPacket(len(b))
	copy(p.bytes(), b)
	p.hash = flowHash(f.Job, f.To, f.From, f.Stream)
	if full := g.memory.take(p.cost()); full != nil {
		p.release()
		return
	}
	p.pays = &g.memory
	c.enqueue(&c.control, p)
	c.touch(&c.leg)
}
