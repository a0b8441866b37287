package job

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/tapfile"
	"github.com/weftstack/weft/mpi/internal/transport"
	"github.com/weftstack/weft/sctp"
)

// sctpTransport makes one association per pair of ranks, all on the same UDP
// sockets: the higher rank connects to the lower.
type sctpTransport struct {
	job *Job
	udp *sctp.Transport
	ep  *sctp.Endpoint
	cap *tapfile.File // nil: none

	noticed time.Duration // how long a peer has not answered when its last path goes down

	addrs []sctp.Addr // of all ranks, once connected

	mu      sync.Mutex
	key     []byte      // nil until connect
	early   []*sctpLink // accepted links that got a hello before the key was known
	links   []*sctpLink // by rank
	missing int         // number of links that are not up
	err     error       // why a link has failed
	wake    chan struct{}
}

const (
	// maxUnprovenAssociations bounds the associations that are not authenticated yet, in addition
	// to those of the ranks of the job and the connected processes.
	maxUnprovenAssociations = 256
)

func newSCTPTransport(j *Job) (Transport, error) {
	o := j.Options
	t := &sctpTransport{job: j, links: make([]*sctpLink, j.Size()), wake: make(chan struct{}, 1)}
	// Ranks that wait poll by themselves, see progress.
	tc := sctp.TransportConfig{LocalAddrs: o.Addrs, MaxAssociations: 2*(j.Size()+p2p.MaxRemotes) + maxUnprovenAssociations, BusyPoll: -1, Log: j.Log}
	if o.PacketConns != nil {
		conns, err := o.PacketConns(j.Rank())
		if err != nil {
			return nil, err
		}
		tc.Conns, tc.LocalAddrs = conns, nil
	} else if len(o.Addrs) == 0 {
		tc.LocalAddrs = []netip.AddrPort{o.Addr()}
	}
	if o.Capture != "" {
		var err error
		if t.cap, err = tapfile.Open(o.Capture); err != nil {
			return nil, err
		}
		tc.Tap = t.cap.Tap
	}
	var err error
	if t.udp, err = sctp.NewTransport(tc); err != nil {
		return nil, errors.Join(err, t.cap.Close())
	}
	cfg := o.SCTP
	cfg.OutStreams = uint16(1 + 2*o.Streams)
	cfg.InStreams = cfg.OutStreams
	cfg.Scheduler = sctp.RoundRobinPacket
	cfg.ZeroChecksumLocal = o.zeroChecksum()
	// An association that is not authenticated gets little memory, and little time for the
	// handshake.
	cfg.Probation = &sctp.Probation{Timeout: handshake.Timeout, Max: j.Size() + p2p.MaxRemotes + maxUnprovenAssociations}
	o.timeouts(&cfg, j.Size())
	t.noticed = pathDownDelay(&cfg)
	cfg.OnPiece = t.onFragment
	cfg.OnNotify = t.onNotify
	if t.ep, err = t.udp.Listen(0, &cfg); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *sctpTransport) Addr() string {
	return sctp.Addr{Addrs: t.udp.LocalAddrs(), Port: t.ep.Port()}.String()
}

// Polling implements Transport.
func (t *sctpTransport) Polling(spins bool, lease time.Duration) (func() bool, func() transport.Parker) {
	if spins {
		t.udp.SetBusyRead(sctp.DefaultBusyPoll)
	}
	t.udp.SetPollLease(lease)
	return t.udp.Poll, func() transport.Parker { return t.udp.NewWaiter() }
}

// Close implements Transport.
func (t *sctpTransport) Close() error { return errors.Join(t.udp.Close(), t.cap.Close()) }

// onFragment is the upcall for data. The connecting side attaches its link before
// it sends anything; on the other side the first piece does.
func (t *sctpTransport) onFragment(a *sctp.Association, p *sctp.Piece) {
	l, _ := a.Value().(*sctpLink)
	if l == nil {
		l = &sctpLink{t: t, a: a}
		a.SetValue(l)
	}
	l.onFragment(p)
}

func (t *sctpTransport) onNotify(a *sctp.Association, n sctp.Notification) {
	l, _ := a.Value().(*sctpLink)
	switch {
	case n.Kind == sctp.NotifyRestart:
		a.Abort("restarted")
	case n.Kind == sctp.NotifyDown && l != nil:
		l.down(n.Err)
	case (n.Kind == sctp.NotifyPathDown || n.Kind == sctp.NotifyPathUp) && l != nil && l.peer != nil:
		reachable := slices.ContainsFunc(a.Stats().Paths, func(p sctp.PathStats) bool { return p.Active })
		t.job.noteLiveness(l.peer, reachable, t.noticed)
	}
}

// Associations returns the associations of the endpoint, for tests.
func (t *sctpTransport) Associations() []*sctp.Association { return t.ep.Associations() }

// keyOrQueue returns the key of the job, or queues l with its hello msg until the key is known.
func (t *sctpTransport) keyOrQueue(l *sctpLink, msg []byte) ([]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.key == nil && l.waiting == nil {
		l.waiting = append([]byte{}, msg...)
		t.early = append(t.early, l)
	}
	return t.key, t.key != nil
}

// claim makes l the link to a rank. It reports false if the rank has a link.
func (t *sctpTransport) claim(rank int, l *sctpLink) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.links[rank] != nil {
		return false
	}
	t.links[rank] = l
	return true
}

// addrsOf returns the addresses of a process.
func (t *sctpTransport) addrsOf(p *p2p.Peer) []netip.AddrPort {
	if p.Remote == nil {
		return t.addrs[p.Rank].Addrs
	}
	a, err := sctp.ParseAddr(directOf(p.Remote.Addr))
	if err != nil {
		return nil
	}
	return a.Addrs
}

// linked records that a link is up, or has failed with err.
func (t *sctpTransport) linked(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.missing--
	} else if t.err == nil {
		t.err = err
	}
	if t.missing == 0 || t.err != nil {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// Connect implements Transport.
func (t *sctpTransport) Connect(ctx context.Context, addrs []string, key []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.addrs = make([]sctp.Addr, len(addrs))
	links := -1 // not to this rank
	for i, c := range addrs {
		if c == "" { // of a rank that is reached otherwise
			continue
		}
		links++
		var err error
		if t.addrs[i], err = sctp.ParseAddr(c); err != nil {
			return fmt.Errorf("mpi: address of rank %d: %w", i, err)
		}
	}
	t.mu.Lock()
	t.key = key
	early := t.early
	t.early = nil
	t.missing += links // links that came up before are counted already
	done := t.missing == 0
	t.mu.Unlock()
	for _, l := range early {
		l.resumeHandshake(key)
	}
	var wg sync.WaitGroup
	gate := make(chan struct{}, dialsAtOnce)
	for peer := range t.job.Rank() {
		if addrs[peer] == "" {
			continue
		}
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			if err := t.dial(ctx, peer, key); err != nil {
				t.linked(fmt.Errorf("mpi: connecting to rank %d at %v: %w", peer, t.addrs[peer], err))
			}
		})
	}
	var err error
	if !done {
		select {
		case <-t.wake:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	cancel()
	wg.Wait()
	t.mu.Lock()
	if t.err != nil {
		err = t.err
	}
	t.mu.Unlock()
	if err != nil {
		return err
	}
	for rank, p := range t.job.Engine.Peers {
		if rank != t.job.Rank() && addrs[rank] != "" {
			p.Link = t.links[rank]
			p.Coalesces = t.job.Engine.CanCoalesce()
		}
	}
	return nil
}

func (t *sctpTransport) dial(ctx context.Context, peer int, key []byte) error {
	h, msg := handshake.Connect(handshake.Params{Key: key, Self: t.job.Rank(), Size: t.job.Size()}, peer)
	return t.startHandshake(ctx, t.addrs[peer], nil, h, msg)
}

// connectRemote implements Transport.
func (t *sctpTransport) connectRemote(ctx context.Context, m *linkSetup, number int) error {
	addr, err := sctp.ParseAddr(directOf(m.peer(number).Remote.Addr))
	if err != nil {
		return err
	}
	h, msg := m.connector(number)
	return t.startHandshake(ctx, addr, m, h, msg)
}

// Listen implements Transport: the endpoint always listens.
func (t *sctpTransport) Listen() error { return nil }

// startHandshake makes an association and sends hello. m is nil between ranks of the job.
func (t *sctpTransport) startHandshake(ctx context.Context, addr sctp.Addr, m *linkSetup, h *handshake.Exchange, msg []byte) error {
	a, err := t.ep.Connect(ctx, addr)
	if err != nil {
		return err
	}
	need := uint16(1 + 2*t.job.Options.Streams)
	if out, in := a.Streams(); out < need || in < need {
		a.Abort("too few streams")
		return fmt.Errorf("%w: %d streams out and %d in, want %d", mpierr.ErrOption, out, in, need)
	}
	// The peer sends nothing before hello, so no fragment can come before the link is
	// attached.
	a.SetValue(&sctpLink{t: t, a: a, handshake: h, setup: m})
	return a.TrySend(handshake.Frame(msg), sctp.SendOptions{PPID: ppid, Force: true})
}
