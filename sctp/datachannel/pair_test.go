package datachannel_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel"
	"github.com/weftstack/weft/sctp/sctptest"
)

const (
	addrA, addrB = "10.0.0.1", "10.0.0.2"
	port         = 5000
)

// pair is two sessions: a of the DTLS client, b of the server.
type pair struct {
	net        *sctptest.Network
	hosts      [2]*sctptest.Host
	a, b       *datachannel.Session
	transports [2]*sctp.Transport
}

// end is one side of a test.
type end struct {
	dc   datachannel.Config
	sctp sctp.Config
}

func transport(t testing.TB, h *sctptest.Host) *sctp.Transport {
	t.Helper()
	pc, err := h.ListenPacket(netip.AddrPortFrom(h.Addrs()[0], sctp.DefaultUDPPort).String())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// endpoint listens for associations of sessions with the configuration of e, and tells of them
// on sessions.
func (e *end) endpoint(t testing.TB, tr *sctp.Transport, sessions chan<- *datachannel.Session) *sctp.Endpoint {
	t.Helper()
	base := e.sctp
	onAssociation := base.OnAssociation
	base.OnAssociation = func(a *sctp.Association) {
		if onAssociation != nil {
			onAssociation(a)
		}
		sessions <- datachannel.From(a)
	}
	cfg, err := e.dc.SCTP(&base)
	if err != nil {
		t.Fatal(err)
	}
	ep, err := tr.Listen(port, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return ep
}

// newPair connects two sessions over a network, in a bubble.
func newPair(t testing.TB, link sctptest.Link, a, b end) *pair {
	t.Helper()
	p := &pair{net: sctptest.NewNetwork(1)}
	t.Cleanup(func() { p.net.Close() })
	p.net.SetDefault(link)
	p.hosts = [2]*sctptest.Host{p.net.NewHost(addrA), p.net.NewHost(addrB)}
	a.dc.Role, b.dc.Role = datachannel.Client, datachannel.Server
	opened, accepted := make(chan *datachannel.Session, 1), make(chan *datachannel.Session, 1)
	p.transports = [2]*sctp.Transport{transport(t, p.hosts[0]), transport(t, p.hosts[1])}
	client := a.endpoint(t, p.transports[0], opened)
	server := b.endpoint(t, p.transports[1], accepted)
	if _, err := client.Connect(t.Context(), server.Addr()); err != nil {
		t.Fatal(err)
	}
	p.a, p.b = <-opened, <-accepted
	return p
}

// open opens a channel from a to b and accepts it.
func (p *pair) open(t testing.TB, o datachannel.Options) (a, b *datachannel.Channel) {
	t.Helper()
	a, err := p.a.Open(t.Context(), "test", o)
	if err != nil {
		t.Fatal(err)
	}
	if o.Negotiated {
		if b, err = p.b.Open(t.Context(), "test", o); err != nil {
			t.Fatal(err)
		}
		return a, b
	}
	if b, err = p.b.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func send(t testing.TB, c *datachannel.Channel, text string) {
	t.Helper()
	if err := c.SendText(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

func wantText(t testing.TB, c *datachannel.Channel, want string) {
	t.Helper()
	m, err := c.Recv(t.Context(), nil)
	if err != nil || m.Kind != datachannel.Text || string(m.Data) != want {
		t.Fatalf("received %q, kind %d, %v; want %q", m.Data, m.Kind, err, want)
	}
}

func wantErr(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func wantEOF(t testing.TB, c *datachannel.Channel) {
	t.Helper()
	if m, err := c.Recv(t.Context(), nil); err != io.EOF {
		t.Errorf("received %q, %v; want EOF", m.Data, err)
	}
}

// wantClosed waits until c is closed, because of want.
func wantClosed(t testing.TB, c *datachannel.Channel, want error) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatalf("%v is not closed: %s", c, c.Debug())
	}
	if err := c.Err(); !errors.Is(err, want) || (err != nil) != (want != nil) {
		t.Errorf("%v ended by %v, want %v", c, err, want)
	}
	if c.State() != datachannel.Closed {
		t.Errorf("%v: want closed", c)
	}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// contextUntil returns a context that is done when stop is closed.
func contextUntil(stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
