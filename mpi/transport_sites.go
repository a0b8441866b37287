package mpi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/localsites"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport/gateway"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// sitesTransport reaches ranks of the own site directly, and those of other sites through gateways.
type sitesTransport struct {
	jobTransport
	w       *World
	station *gateway.Station
	own     *sctp.Transport // of the station alone; nil: it uses the sockets of the direct transport

	far map[int]relay.Address // ranks at other sites; constant from connect on

	mu  sync.Mutex
	key []byte // nil until connect
}

// newSitesTransport adds gateways to the transport that reaches ranks of the own site.
func newSitesTransport(w *World, direct jobTransport) (jobTransport, error) {
	o := w.opts
	t := &sitesTransport{jobTransport: direct, w: w}
	cfg := gateway.Config{
		Process: o.place, Host: t, SCTP: o.sctp.cfg, Streams: o.streams, MaxProcesses: w.Size() + MaxConnected,
		Timeout: o.failureTimeout, Log: w.log,
	}
	err := func() (err error) {
		if s, ok := direct.(*sctpTransport); ok {
			cfg.Transport = s.udp
		} else {
			addr := netip.AddrPortFrom(o.addr().Addr(), 0)
			t.own, err = sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{addr}, Log: w.log})
			if cfg.Transport = t.own; err != nil {
				return err
			}
		}
		t.station, err = gateway.New(context.Background(), cfg)
		return err
	}()
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// distant reports whether a process is at another site than this one, and where.
func (w *World) distant(addr string) (relay.Address, bool) {
	_, job, a := gateway.SplitAddress(addr)
	return a, w.opts.place != nil && job != 0 && a.Site != w.opts.place.Site
}

// directOf returns the part of the address of a process that the direct transport has made.
func directOf(addr string) string {
	s, _, _ := gateway.SplitAddress(addr)
	return s
}

// direct returns the transport that reaches the ranks of the own site.
func direct(t jobTransport) jobTransport {
	if s, ok := t.(*sitesTransport); ok {
		return s.jobTransport
	}
	return t
}

func (t *sitesTransport) addr() string {
	return gateway.JoinAddress(t.jobTransport.addr(), t.w.opts.place)
}

// connect implements jobTransport.
func (t *sitesTransport) connect(ctx context.Context, addrs []string, key []byte) error {
	t.mu.Lock()
	t.key = key
	t.mu.Unlock()
	near, far := make([]string, len(addrs)), make(map[int]relay.Address)
	for rank, s := range addrs {
		a, ok := t.w.distant(s)
		switch {
		case ok:
			far[rank] = a
			t.w.eng.Peers[rank].Distant = true
		case directOf(s) == s:
			return fmt.Errorf("%w: rank %d knows nothing of the gateways that rank %d uses", ErrOption, rank, t.w.Rank())
		default:
			near[rank] = directOf(s)
		}
	}
	t.far = far
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := t.jobTransport.connect(ctx, near, key); err != nil {
			cancel(err)
		}
	})
	if err := t.station.Connect(ctx, t.w.Rank(), far, (len(addrs)-len(far))*len(far)); err != nil {
		cancel(err)
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for rank := range far {
		t.w.eng.Peers[rank].Link = t.station.Link(rank)
		t.w.eng.Peers[rank].Coalesces = p2p.CanCoalesce()
	}
	return nil
}

// connectRemote implements jobTransport.
func (t *sitesTransport) connectRemote(ctx context.Context, m *linkSetup, number int) error {
	addr := m.peer(number).Remote.Addr
	a, far := t.w.distant(addr)
	if !far {
		return t.jobTransport.connectRemote(ctx, m, number)
	}
	if _, job, _ := gateway.SplitAddress(addr); job != t.w.opts.place.Job {
		return fmt.Errorf("%w: process %v at another site belongs to job %d, this one to job %d: gateways relay within a job", ErrPort, a, job, t.w.opts.place.Job)
	}
	h, hello := m.connector(number)
	return t.station.Dial(a, m.id, number, h, hello)
}

// openPort opens a port that processes of other sites reach through gateways, and others by TCP, but not if the network is
// a simulated one.
func (t *sitesTransport) openPort() (string, error) {
	ln, number, err := t.station.Listen()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrPort, err)
	}
	lns, addr := []net.Listener{ln}, ""
	if t.w.opts.sctp.conns == nil {
		if ln, addr, err = dynamic.ListenTCP(t.w.opts.addr().Addr()); err != nil {
			_ = lns[0].Close()
			return "", err
		}
		lns = append(lns, ln)
	}
	return t.w.ports.Open(gateway.JoinAddress(addr, t.w.opts.place)+portMark+strconv.Itoa(int(number)), lns...)
}

// portMark is what the number of a listener of the station follows in the address of a port.
const portMark = "#"

// dialPort connects to the address of a port.
func (t *sitesTransport) dialPort(ctx context.Context, addr string) (net.Conn, error) {
	at, s, _ := strings.Cut(addr, portMark)
	direct, job, a := gateway.SplitAddress(at)
	number, err := strconv.ParseUint(s, 10, 16)
	if own := t.w.opts.place; err != nil || job != own.Job || a.Site == own.Site && direct != "" {
		return dynamic.DialTCP(ctx, direct)
	}
	return t.station.Open(ctx, a, uint16(number))
}

// close implements jobTransport.
func (t *sitesTransport) close() error {
	var errs []error
	if t.station != nil {
		errs = append(errs, t.station.Close())
	}
	errs = append(errs, t.jobTransport.close())
	if t.own != nil {
		errs = append(errs, t.own.Close())
	}
	return errors.Join(errs...)
}

// Params implements gateway.Host.
func (t *sitesTransport) Params() (handshake.Params, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return handshake.Params{Key: t.key, Self: t.w.Rank(), Size: t.w.Size()}, t.key != nil
}

// SetupParams implements gateway.Host.
func (t *sitesTransport) SetupParams(id uint64) (handshake.Params, bool) { return t.w.setupParams(id) }

// Claim implements gateway.Host.
func (t *sitesTransport) Claim(setup uint64, number int, l *gateway.Link) *p2p.Peer {
	if setup == 0 {
		return t.w.eng.Peers[number]
	}
	if m := t.w.linkSetup(setup); m != nil {
		return m.claim(number, l)
	}
	return nil
}

// Linked implements gateway.Host.
func (t *sitesTransport) Linked(setup uint64, number int, err error) {
	if m := t.w.linkSetup(setup); m != nil {
		m.linked(number, err)
	}
}

// NoteLiveness implements gateway.Host.
func (t *sitesTransport) NoteLiveness(p *p2p.Peer, answers bool, since time.Duration) {
	t.w.noteLiveness(p, answers, since)
}

// readPlace learns from the environment where this process is: from a launcher that knows sites, or from a sites file. job
// names the job. Processes are numbered by rank, also those of one host.
func (o *options) readPlace(rank int, job string, spawned bool) (err error) {
	var p *sites.Process
	if s := os.Getenv(sites.EnvProcess); s != "" {
		_ = os.Unsetenv(sites.EnvProcess) // it has a key, and names this process
		p, err = sites.DecodeProcess(s)
	} else if job != "" {
		if os.Getenv(sites.EnvFile) != "" {
			// The job of spawned processes has another name, so another number and key, than that of their parents.
			o.spawnsNone = fmt.Errorf("%s is for the processes that a job begins with: only weft run -sites spawns others", sites.EnvFile)
		}
		if spawned && o.spawnsNone != nil {
			err = o.spawnsNone
		} else {
			p, err = sites.ProcessFromEnv(os.Getenv, job, hostID(), rank, rank)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOption, err)
	}
	if p == nil {
		return nil
	}
	if o.siteOf == nil {
		o.siteOf = func(int) string { return p.Names[p.Site] }
	}
	if len(p.Gateways) > 0 {
		o.place = p
	}
	return nil
}

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
// gateways, as processes of `weft run -sites` do. RunLocal runs the gateways in this process, on loopback, and ends them. Ranks
// that are spawned must be at one of the sites of the first ranks. Init gives ErrOption.
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
	if o.gateways == nil || o.siteOf == nil {
		return nil, nil
	}
	var names []string
	seen := make(map[string]bool)
	for rank := range n {
		if s := o.siteOf(rank); !seen[s] {
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
	cfg.Gateways, cfg.Line, cfg.Log, cfg.Mode = o.gateways.PerSite, o.gateways.Line, o.log, sites.Piecewise
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
