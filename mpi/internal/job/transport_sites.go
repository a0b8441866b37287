package job

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport/gateway"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// sitesTransport reaches ranks of the own site directly, and those of other sites through gateways.
type sitesTransport struct {
	Transport
	job     *Job
	station *gateway.Station
	own     *sctp.Transport // of the station alone; nil: it uses the sockets of the direct transport

	far map[int]relay.Address // ranks at other sites; constant from connect on

	mu  sync.Mutex
	key []byte // nil until connect
}

// newSitesTransport adds gateways to the transport that reaches ranks of the own site.
func newSitesTransport(j *Job, direct Transport) (Transport, error) {
	o := j.Options
	t := &sitesTransport{Transport: direct, job: j}
	cfg := gateway.Config{
		Process: o.Place, Host: t, SCTP: o.SCTP, Streams: o.Streams, MaxProcesses: j.Size() + p2p.MaxRemotes,
		Timeout: o.FailureTimeout, Log: j.Log,
	}
	err := func() (err error) {
		if s, ok := direct.(*sctpTransport); ok {
			cfg.Transport = s.udp
		} else {
			addr := netip.AddrPortFrom(o.Addr().Addr(), 0)
			t.own, err = sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{addr}, Log: j.Log})
			if cfg.Transport = t.own; err != nil {
				return err
			}
		}
		t.station, err = gateway.New(context.Background(), cfg)
		return err
	}()
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// distant reports whether a process is at another site than this one, and where.
func (j *Job) distant(addr string) (relay.Address, bool) {
	_, job, a := gateway.SplitAddress(addr)
	return a, j.Options.Place != nil && job != 0 && a.Site != j.Options.Place.Site
}

// directOf returns the part of the address of a process that the direct transport has made.
func directOf(addr string) string {
	s, _, _ := gateway.SplitAddress(addr)
	return s
}

// direct returns the transport that reaches the ranks of the own site.
func direct(t Transport) Transport {
	if s, ok := t.(*sitesTransport); ok {
		return s.Transport
	}
	return t
}

func (t *sitesTransport) Addr() string {
	return gateway.JoinAddress(t.Transport.Addr(), t.job.Options.Place)
}

// Connect implements Transport.
func (t *sitesTransport) Connect(ctx context.Context, addrs []string, key []byte) error {
	t.mu.Lock()
	t.key = key
	t.mu.Unlock()
	near, far := make([]string, len(addrs)), make(map[int]relay.Address)
	for rank, s := range addrs {
		a, ok := t.job.distant(s)
		switch {
		case ok:
			far[rank] = a
			t.job.Engine.Peers[rank].Distant = true
		case directOf(s) == s:
			return fmt.Errorf("%w: rank %d knows nothing of the gateways that rank %d uses", mpierr.ErrOption, rank, t.job.Rank())
		default:
			near[rank] = directOf(s)
		}
	}
	t.far = far
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := t.Transport.Connect(ctx, near, key); err != nil {
			cancel(err)
		}
	})
	if err := t.station.Connect(ctx, t.job.Rank(), far, (len(addrs)-len(far))*len(far)); err != nil {
		cancel(err)
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for rank := range far {
		t.job.Engine.Peers[rank].Link = t.station.Link(rank)
		t.job.Engine.Peers[rank].Coalesces = t.job.Engine.CanCoalesce()
	}
	return nil
}

// connectRemote implements Transport.
func (t *sitesTransport) connectRemote(ctx context.Context, m *linkSetup, number int) error {
	addr := m.peer(number).Remote.Addr
	a, far := t.job.distant(addr)
	if !far {
		return t.Transport.connectRemote(ctx, m, number)
	}
	if _, job, _ := gateway.SplitAddress(addr); job != t.job.Options.Place.Job {
		return fmt.Errorf("%w: process %v at another site belongs to job %d, this one to job %d: gateways relay within a job", mpierr.ErrPort, a, job, t.job.Options.Place.Job)
	}
	h, hello := m.connector(number)
	return t.station.Dial(a, m.id, number, h, hello)
}

// openPort opens a port that processes of other sites reach through gateways, and others by TCP, but not if the network is
// a simulated one.
func (t *sitesTransport) openPort() (string, error) {
	ln, number, err := t.station.Listen()
	if err != nil {
		return "", fmt.Errorf("%w: %w", mpierr.ErrPort, err)
	}
	lns, addr := []net.Listener{ln}, ""
	if t.job.Options.PacketConns == nil {
		if ln, addr, err = dynamic.ListenTCP(t.job.Options.Addr().Addr()); err != nil {
			_ = lns[0].Close()
			return "", err
		}
		lns = append(lns, ln)
	}
	return t.job.Ports.Open(gateway.JoinAddress(addr, t.job.Options.Place)+portMark+strconv.Itoa(int(number)), lns...)
}

// portMark is what the number of a listener of the station follows in the address of a port.
const portMark = "#"

// dialPort connects to the address of a port.
func (t *sitesTransport) dialPort(ctx context.Context, addr string) (net.Conn, error) {
	at, s, _ := strings.Cut(addr, portMark)
	direct, job, a := gateway.SplitAddress(at)
	number, err := strconv.ParseUint(s, 10, 16)
	if own := t.job.Options.Place; err != nil || job != own.Job || a.Site == own.Site && direct != "" {
		return dynamic.DialTCP(ctx, direct)
	}
	return t.station.Open(ctx, a, uint16(number))
}

// Close implements Transport.
func (t *sitesTransport) Close() error {
	var errs []error
	if t.station != nil {
		errs = append(errs, t.station.Close())
	}
	errs = append(errs, t.Transport.Close())
	if t.own != nil {
		errs = append(errs, t.own.Close())
	}
	return errors.Join(errs...)
}

// Params implements gateway.Host.
func (t *sitesTransport) Params() (handshake.Params, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return handshake.Params{Key: t.key, Self: t.job.Rank(), Size: t.job.Size()}, t.key != nil
}

// SetupParams implements gateway.Host.
func (t *sitesTransport) SetupParams(id uint64) (handshake.Params, bool) {
	return t.job.setupParams(id)
}

// Claim implements gateway.Host.
func (t *sitesTransport) Claim(setup uint64, number int, l *gateway.Link) *p2p.Peer {
	if setup == 0 {
		return t.job.Engine.Peers[number]
	}
	if m := t.job.linkSetup(setup); m != nil {
		return m.claim(number, l)
	}
	return nil
}

// Linked implements gateway.Host.
func (t *sitesTransport) Linked(setup uint64, number int, err error) {
	if m := t.job.linkSetup(setup); m != nil {
		m.linked(number, err)
	}
}

// NoteLiveness implements gateway.Host.
func (t *sitesTransport) NoteLiveness(p *p2p.Peer, answers bool, since time.Duration) {
	t.job.noteLiveness(p, answers, since)
}
