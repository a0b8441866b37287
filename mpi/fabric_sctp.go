package mpi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weftstack/weft/sctp"
)

// sctpOptions are the options of the SCTP transports.
type sctpOptions struct {
	cfg   sctp.Config
	conns func(rank int) ([]sctp.PacketConn, error) // instead of sockets
}

// WithSCTP sets the parameters of the associations. Their streams, scheduler
// and callbacks are set by this package, and so is that ranks on one host leave
// checksums out.
func WithSCTP(cfg sctp.Config) Option {
	return func(o *options) error {
		o.sctp.cfg = cfg
		return nil
	}
}

// WithPacketConns makes the SCTP transports use what conns returns for a rank
// instead of opening UDP sockets: for tests over simulated networks. The
// transport owns and closes them.
func WithPacketConns(conns func(rank int) ([]sctp.PacketConn, error)) Option {
	return func(o *options) error {
		o.sctp.conns = conns
		return nil
	}
}

// sctpFabric makes one association per pair of ranks, all on the same UDP
// sockets: the higher rank connects to the lower.
type sctpFabric struct {
	w   *World
	t   *sctp.Transport
	ep  *sctp.Endpoint
	cap *capture // nil: none

	noticed time.Duration // how long a peer is silent when its last path is down

	addrs []sctp.Addr // of all ranks, once connected

	mu      sync.Mutex
	key     []byte      // nil until connect
	early   []*sctpLink // greeted before that
	links   []*sctpLink // by rank
	missing int         // links that are not up
	err     error       // why one will not be
	wake    chan struct{}
}

const (
	// strangers bounds the associations beyond those of the job, and of those that
	// it is connected to.
	strangers = 256
)

func newSCTPFabric(w *World) (fabric, error) {
	o := w.opts
	f := &sctpFabric{w: w, links: make([]*sctpLink, w.Size()), wake: make(chan struct{}, 1)}
	// Ranks that wait poll by themselves, see progress.
	tc := sctp.TransportConfig{LocalAddrs: o.addrs, MaxAssociations: 2*(w.Size()+MaxConnected) + strangers, BusyPoll: -1}
	if o.sctp.conns != nil {
		conns, err := o.sctp.conns(w.Rank())
		if err != nil {
			return nil, err
		}
		tc.Conns, tc.LocalAddrs = conns, nil
	} else if len(o.addrs) == 0 {
		tc.LocalAddrs = []netip.AddrPort{o.addr()}
	}
	if o.capture != "" {
		var err error
		if f.cap, err = openCapture(o.capture); err != nil {
			return nil, err
		}
		tc.Tap = f.cap.tap
	}
	var err error
	if f.t, err = sctp.NewTransport(tc); err != nil {
		return nil, errors.Join(err, f.cap.close())
	}
	cfg := o.sctp.cfg
	cfg.OutStreams = uint16(1 + 2*o.streams)
	cfg.InStreams = cfg.OutStreams
	cfg.Scheduler = sctp.RoundRobinPacket
	cfg.ZeroChecksumLocal = o.zeroChecksum()
	// Strangers get little, and not for long, before they have proved that they know the
	// key of the job.
	cfg.Probation = &sctp.Probation{Timeout: helloTimeout, Max: w.Size() + MaxConnected + strangers}
	o.timeouts(&cfg, w.Size())
	f.noticed = firstSilence(&cfg)
	cfg.OnPiece = f.onPiece
	cfg.OnNotify = f.onNotify
	if f.ep, err = f.t.Listen(0, &cfg); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *sctpFabric) card() string {
	return sctp.Addr{Addrs: f.t.LocalAddrs(), Port: f.ep.Port()}.String()
}

// polling implements fabric.
func (f *sctpFabric) polling(spins bool) (func() bool, func() parker) {
	if spins {
		f.t.SetBusyRead(sctp.DefaultBusyPoll)
	}
	return f.t.Poll, func() parker { return f.t.NewWaiter() }
}

// close implements fabric.
func (f *sctpFabric) close() error { return errors.Join(f.t.Close(), f.cap.close()) }

// onPiece is the upcall for data. The connecting side attaches its link before
// it sends anything; on the other side the first piece does.
func (f *sctpFabric) onPiece(a *sctp.Association, p *sctp.Piece) {
	l, _ := a.Value().(*sctpLink)
	if l == nil {
		l = &sctpLink{f: f, a: a}
		a.SetValue(l)
	}
	l.piece(p)
}

func (f *sctpFabric) onNotify(a *sctp.Association, n sctp.Notification) {
	l, _ := a.Value().(*sctpLink)
	switch {
	case n.Kind == sctp.NotifyRestart:
		a.Abort("restarted")
	case n.Kind == sctp.NotifyDown && l != nil:
		l.down(n.Err)
	case (n.Kind == sctp.NotifyPathDown || n.Kind == sctp.NotifyPathUp) && l != nil && l.peer != nil:
		reachable := slices.ContainsFunc(a.Stats().Paths, func(p sctp.PathStats) bool { return p.Active })
		f.w.hears(l.peer, reachable, f.noticed)
	}
}

// jobKey returns the key, or keeps the greeting for when it is known.
func (f *sctpFabric) jobKey(l *sctpLink, msg []byte) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.key == nil && l.waiting == nil {
		l.waiting = append([]byte{}, msg...)
		f.early = append(f.early, l)
	}
	return f.key, f.key != nil
}

// claim makes l the link to a rank; only the first may.
func (f *sctpFabric) claim(rank int, l *sctpLink) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.links[rank] != nil {
		return false
	}
	f.links[rank] = l
	return true
}

// addrsOf returns the addresses of a process.
func (f *sctpFabric) addrsOf(p *peer) []netip.AddrPort {
	if p.far == nil {
		return f.addrs[p.rank].Addrs
	}
	a, err := sctp.ParseAddr(p.far.addr)
	if err != nil {
		return nil
	}
	return a.Addrs
}

// linked notes that a link is up, or never will be.
func (f *sctpFabric) linked(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.missing--
	} else if f.err == nil {
		f.err = err
	}
	if f.missing == 0 || f.err != nil {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

// connect implements fabric.
func (f *sctpFabric) connect(ctx context.Context, cards []string, key []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.addrs = make([]sctp.Addr, len(cards))
	for i, c := range cards {
		var err error
		if f.addrs[i], err = sctp.ParseAddr(c); err != nil {
			return fmt.Errorf("mpi: address of rank %d: %w", i, err)
		}
	}
	f.mu.Lock()
	f.key = key
	early := f.early
	f.early = nil
	f.missing += len(cards) - 1 // those that were quick have been counted
	done := f.missing == 0
	f.mu.Unlock()
	for _, l := range early {
		l.resume(key)
	}
	var wg sync.WaitGroup
	gate := make(chan struct{}, dialsAtOnce)
	for peer := range f.w.Rank() {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			if err := f.dial(ctx, peer, key); err != nil {
				f.linked(fmt.Errorf("mpi: connecting to rank %d at %v: %w", peer, f.addrs[peer], err))
			}
		})
	}
	var err error
	if !done {
		select {
		case <-f.wake:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	cancel()
	wg.Wait()
	f.mu.Lock()
	if f.err != nil {
		err = f.err
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	for rank, p := range f.w.eng.peers {
		if rank != f.w.Rank() {
			p.link = f.links[rank]
			p.bursts = canBurst()
		}
	}
	return nil
}

func (f *sctpFabric) dial(ctx context.Context, peer int, key []byte) error {
	h, msg := newConnector(key, f.w.Rank(), peer, f.w.Size())
	return f.greet(ctx, f.addrs[peer], h, msg)
}

// call implements fabric.
func (f *sctpFabric) call(ctx context.Context, m *meeting, number int) error {
	addr, err := sctp.ParseAddr(m.peer(number).far.addr)
	if err != nil {
		return err
	}
	h, msg := m.connector(number)
	return f.greet(ctx, addr, h, msg)
}

// listen implements fabric: the endpoint always listens.
func (f *sctpFabric) listen() error { return nil }

// greet makes an association and begins the exchange of greetings.
func (f *sctpFabric) greet(ctx context.Context, addr sctp.Addr, h *hello, msg []byte) error {
	a, err := f.ep.Connect(ctx, addr)
	if err != nil {
		return err
	}
	need := uint16(1 + 2*f.w.opts.streams)
	if out, in := a.Streams(); out < need || in < need {
		a.Abort("too few streams")
		return fmt.Errorf("%w: %d streams out and %d in, want %d", ErrOption, out, in, need)
	}
	// The peer says nothing before it is greeted, so no piece can come before
	// the link is attached.
	a.SetValue(&sctpLink{f: f, a: a, hello: h})
	return a.TrySend(helloFrame(msg), sctp.SendOptions{PPID: ppid, Force: true})
}
