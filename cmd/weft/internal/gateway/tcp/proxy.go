package tcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/gateway/intercept"
	"github.com/weftstack/weft/sctp/relay"
	"github.com/weftstack/weft/sctp/relay/stream"
)

const (
	// MaxConns bounds the connections that a gateway carries, of both directions.
	MaxConns = stream.DefaultMaxConns
	// connectTime is how long the far side tries to connect to a destination.
	connectTime = 10 * time.Second
	// openTime is how long a gateway of the destination's site may take to answer, the connect included, before
	// another one is asked.
	openTime = connectTime + 2*time.Second
	// avoidTime is for how long a gateway that did not answer is asked last.
	avoidTime = 10 * time.Second
	// GatewayNode is the node number of gateways' own processes; the process has the number of the gateway.
	GatewayNode = 65535
)

// Site is a site with its gateways and the ranges of its hosts' addresses.
type Site struct {
	Number   uint16
	Gateways []uint16
	Ranges   []netip.Prefix
}

// proxy carries connections between TCP and an endpoint.
type proxy struct {
	ep     *stream.Endpoint
	own    Site
	others []Site
	source bool // connect from the original source
	log    *slog.Logger
	seed   maphash.Seed
	slots  chan struct{} // one for each connection of programs of this site
	tasks  sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	counters Counters
	avoid    map[relay.Address]time.Time // gateways that did not answer, until when they are asked last
	logged   map[string]time.Time        // by reason, when it was logged last
}

// Counters count connections.
type Counters struct {
	// Accepted counts connections of programs of this site that were taken in, by rules or SOCKS5, Connected
	// those that the far side has connected, Failed those that it has not. Outside counts destinations that are in no
	// range of another site, TooMany connections beyond MaxConns, BadClients clients that do not speak SOCKS5.
	Accepted, Connected, Failed, Outside, TooMany, BadClients uint64
	// Requests counts connections that other sites asked for, Dialed those that were connected, DialFailed those
	// whose destination refused or did not answer, and Forbidden those to destinations outside of this site's ranges.
	Requests, Dialed, DialFailed, Forbidden uint64
	// Resets counts connections that ended by a reset of either side.
	Resets uint64
}

func newProxy(ep *stream.Endpoint, own Site, others []Site, source bool, log *slog.Logger) *proxy {
	p := &proxy{
		ep: ep, own: own, others: others, source: source, log: log, seed: maphash.MakeSeed(),
		slots: make(chan struct{}, MaxConns), avoid: make(map[relay.Address]time.Time), logged: make(map[string]time.Time),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.tasks.Go(p.acceptStreams)
	return p
}

// close ends all connections.
func (p *proxy) close() {
	p.cancel()
	_ = p.ep.Close()
	p.tasks.Wait()
}

func (p *proxy) count(add func(*Counters)) {
	p.mu.Lock()
	add(&p.counters)
	p.mu.Unlock()
}

// warn logs, at most once a second for each reason.
func (p *proxy) warn(reason string, attrs ...slog.Attr) {
	now := time.Now()
	p.mu.Lock()
	again := now.Sub(p.logged[reason]) < time.Second
	if !again {
		p.logged[reason] = now
	}
	p.mu.Unlock()
	if p.log != nil && !again {
		p.log.LogAttrs(context.Background(), slog.LevelWarn, reason, attrs...)
	}
}

func contains(ranges []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a) })
}

// siteOf returns the other site that an address is of: the one with the longest range, unless this site has a longer
// one.
func (p *proxy) siteOf(a netip.Addr) *Site {
	longest := -1
	longer := func(ranges []netip.Prefix) (yes bool) {
		for _, r := range ranges {
			if r.Contains(a) && r.Bits() > longest {
				longest, yes = r.Bits(), true
			}
		}
		return yes
	}
	longer(p.own.Ranges)
	var best *Site
	for i := range p.others {
		if longer(p.others[i].Ranges) {
			best = &p.others[i]
		}
	}
	return best
}

var errOutside = errors.New("destination is in no range of another site")

// serve takes connections from l, and has each handled on a goroutine of its own.
func (p *proxy) serve(l net.Listener, handle func(*net.TCPConn)) {
	stop := context.AfterFunc(p.ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if err != nil {
			if p.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			p.warn("accept", slog.Any("error", err))
			select {
			case <-time.After(10 * time.Millisecond): // out of file descriptors, most likely
			case <-p.ctx.Done():
			}
			continue
		}
		select {
		case p.slots <- struct{}{}:
		default:
			p.count(func(c *Counters) { c.TooMany++ })
			p.warn("too many connections", slog.Int("limit", MaxConns))
			abort(c.(*net.TCPConn))
			continue
		}
		p.tasks.Go(func() {
			defer func() { <-p.slots }()
			stop := context.AfterFunc(p.ctx, func() { c.Close() })
			defer stop()
			handle(c.(*net.TCPConn))
		})
	}
}

// abort resets a TCP connection.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// takeIn carries a connection that rules have led here.
func (p *proxy) takeIn(mode intercept.Mode) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		dst, err := intercept.OriginalDst(mode, c)
		var s *stream.Conn
		if err == nil {
			s, err = p.open(c, dst)
		} else {
			p.count(func(c *Counters) { c.Outside++ })
			p.warn("connection that no rule has led here", slog.String("from", c.RemoteAddr().String()), slog.Any("error", err))
		}
		if err != nil {
			abort(c) // the kernel has accepted it: refusing is no longer possible
			return
		}
		p.join(c, s)
	}
}

// open opens the connection to a gateway of the destination's site.
func (p *proxy) open(c *net.TCPConn, dst netip.AddrPort) (*stream.Conn, error) {
	p.count(func(c *Counters) { c.Accepted++ })
	site := p.siteOf(dst.Addr())
	if site == nil {
		p.count(func(c *Counters) { c.Outside++ })
		p.warn("destination outside", slog.String("from", c.RemoteAddr().String()), slog.String("to", dst.String()))
		return nil, fmt.Errorf("%v: %w", dst, errOutside)
	}
	src := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	r := request{dst, netip.AddrPortFrom(src.Addr().Unmap(), src.Port())}
	var err error
	for _, g := range p.order(site, dst) {
		var conn *stream.Conn
		if conn, err = p.dial(g, r); err == nil {
			p.count(func(c *Counters) { c.Connected++ })
			return conn, nil
		}
		var refused *stream.RefusedError
		if errors.As(err, &refused) && refused.Code >= stream.CodeUser || p.ctx.Err() != nil {
			break // the destination has refused
		}
		p.mu.Lock()
		p.avoid[g] = time.Now().Add(avoidTime)
		p.mu.Unlock()
	}
	p.count(func(c *Counters) { c.Failed++ })
	p.warn("no connection", slog.String("from", r.src.String()), slog.String("to", dst.String()), slog.Any("error", err))
	return nil, err
}

func (p *proxy) dial(g relay.Address, r request) (*stream.Conn, error) {
	ctx, cancel := context.WithTimeout(p.ctx, openTime)
	defer cancel()
	return p.ep.Dial(ctx, g, r.append(nil))
}

// order returns the gateways of a site in the order in which they are asked: a destination has its favourite, so they
// share the connections; those that did not answer lately come last.
func (p *proxy) order(site *Site, dst netip.AddrPort) []relay.Address {
	type choice struct {
		a      relay.Address
		late   int
		weight uint64
	}
	var all []choice
	now := time.Now()
	p.mu.Lock()
	for _, g := range site.Gateways {
		c := choice{a: relay.Address{Site: site.Number, Node: GatewayNode, Process: g}}
		c.weight = maphash.Comparable(p.seed, [2]any{c.a, dst})
		if p.avoid[c.a].After(now) {
			c.late = 1
		}
		all = append(all, c)
	}
	p.mu.Unlock()
	slices.SortFunc(all, func(a, b choice) int { return cmp.Or(a.late-b.late, cmp.Compare(a.weight, b.weight)) })
	var list []relay.Address
	for _, c := range all {
		list = append(list, c.a)
	}
	return list
}

// acceptStreams takes the connections that gateways of other sites ask for.
func (p *proxy) acceptStreams() {
	for {
		r, err := p.ep.Accept(p.ctx)
		if err != nil {
			return
		}
		p.tasks.Go(func() { p.connect(r) })
	}
}

// connect connects to the destination of a request, and carries the connection.
func (p *proxy) connect(r *stream.Request) {
	p.count(func(c *Counters) { c.Requests++ })
	q, err := parseRequest(r.Bytes())
	refuse := func(code stream.Code, err error, attrs ...slog.Attr) {
		attrs = append(attrs, slog.String("gateway", r.Origin().String()), slog.String("from", q.src.String()),
			slog.String("to", q.dst.String()), slog.Any("error", err))
		p.warn("request refused", attrs...)
		ctx, cancel := context.WithTimeout(p.ctx, openTime)
		defer cancel()
		_ = r.Refuse(ctx, code, err.Error())
	}
	if err != nil {
		p.count(func(c *Counters) { c.Forbidden++ })
		refuse(codeFailed, err)
		return
	}
	if !contains(p.own.Ranges, q.dst.Addr()) {
		p.count(func(c *Counters) { c.Forbidden++ })
		refuse(codeOutside, fmt.Errorf("%v is in no range of site %d", q.dst, p.own.Number))
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, connectTime)
	defer cancel()
	var d net.Dialer
	if p.source && q.src.Port() != 0 {
		d = intercept.From(q.src)
	}
	c, err := d.DialContext(ctx, "tcp", q.dst.String())
	if err != nil {
		p.count(func(c *Counters) { c.DialFailed++ })
		refuse(codeOf(err), err)
		return
	}
	stop := context.AfterFunc(p.ctx, func() { c.Close() })
	defer stop()
	s, err := r.Accept(ctx)
	if err != nil { // the other side has given up
		abort(c.(*net.TCPConn))
		return
	}
	p.count(func(c *Counters) { c.Dialed++ })
	p.join(c.(*net.TCPConn), s)
}

// join copies both ways until both have ended. A reset of one side becomes one of the other.
func (p *proxy) join(c *net.TCPConn, s *stream.Conn) {
	var wg sync.WaitGroup
	var once sync.Once
	reset := func() {
		once.Do(func() {
			p.count(func(c *Counters) { c.Resets++ })
			s.Reset()
			abort(c)
		})
	}
	wg.Go(func() {
		_, err := s.ReadFrom(c)
		if err == nil {
			err = s.CloseWrite()
		}
		if err != nil {
			reset()
		}
	})
	_, err := s.WriteTo(c)
	if err == nil {
		err = c.CloseWrite()
	}
	if err != nil {
		reset()
	}
	wg.Wait()
	_ = c.Close()
	_ = s.Close()
}
