package sctp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

const (
	// DefaultConnPort is the default of ConnConfig.LocalPort and PeerPort: the port of WebRTC (RFC
	// 8841, Section 5.2, has others announced by a=sctp-port).
	DefaultConnPort = 5000
	// DefaultConnMTU is the default of ConnConfig.MTU: what DTLS leaves of an IP packet of 1,280
	// bytes, which RFC 8831, Section 5, recommends for IPv6, with room for a relay (TURN).
	DefaultConnMTU = 1180
	// MinConnMTU is the least ConnConfig.MTU.
	MinConnMTU = pmtu.MinMTU
)

// ConnConfig holds the parameters of an association over a connection, see [Client]. The zero value,
// or a nil *ConnConfig, is usable.
type ConnConfig struct {
	// Config is the configuration of the association; nil is the zero Config. Its Backlog is
	// ignored, and what is about addresses (MTU, Multipath, ChangeAddrs, ZeroChecksumLocal) must not
	// be set: ErrConfig is returned. Over DTLS, set ZeroChecksum: a peer that agrees is sent no
	// checksums (RFC 9653), as DTLS protects what it carries.
	Config *Config
	// LocalPort and PeerPort are the SCTP ports (default DefaultConnPort).
	LocalPort, PeerPort uint16
	// MTU is the size in bytes of the largest SCTP packet, which is a message of the connection, at
	// first (default DefaultConnMTU, at least MinConnMTU). If MaxMTU is larger, it is discovered up to
	// there (RFC 8899); the connection must not fragment its messages then. pion/sctp ignores the
	// packets of the discovery.
	MTU, MaxMTU int
	// Tap and Log are those of TransportConfig. There are no addresses in what they get.
	Tap func(TapEvent)
	Log *slog.Logger
}

// Client opens an association over conn, a connection that keeps the boundaries of messages and may
// lose and reorder them: DTLS (RFC 8261), a connected UDP socket or any other net.Conn of which each
// Write is one Read of the peer. Both sides may call Client at once, as WebRTC does, or one calls
// Server. It blocks until the association is established, the attempt fails or ctx is done.
//
// The association owns conn from the call on, and closes it when it has ended or could not be
// established. If conn ends (net.ErrClosed, io.EOF, io.ErrClosedPipe, or other errors 100 times in a row), the
// association ends, with an error that wraps the cause; errors of system calls, such as ECONNREFUSED of a
// connected UDP socket, and timeouts count as temporary. Package sctptest has connections for tests.
//
// Writes of conn are made by a goroutine of their own, so that one that blocks holds up no
// receive; what waits for it is bounded to 320 KiB, the rest waits in the send buffer. If conn has
//
//	ReadBatch(buffers [][]byte, sizes []int) (n int, err error) // at least one message
//	WriteBatch(messages [][]byte) error
//
// these are called instead of Read and Write, with up to 8 buffers of 64 KiB and any number of
// messages. Nobody may keep the slices after they return. On Linux a connected *net.UDPConn, given
// as it is, is read and written in batches by UDP GRO and GSO, without that goroutine.
//
// SCTP has no addresses then: those of the association are empty, it has one path, and calls that
// change addresses return ErrNotSupported. Errors of Client are those of [Endpoint.Connect], and
// ErrConfig.
func Client(ctx context.Context, conn net.Conn, cfg *ConnConfig) (*Association, error) {
	return overConn(ctx, conn, cfg, true)
}

// Server is like [Client], but waits for the peer to open the association.
func Server(ctx context.Context, conn net.Conn, cfg *ConnConfig) (*Association, error) {
	return overConn(ctx, conn, cfg, false)
}

func overConn(ctx context.Context, conn net.Conn, cfg *ConnConfig, client bool) (*Association, error) {
	var c ConnConfig
	if cfg != nil {
		c = *cfg
	}
	config, err := c.fill()
	if err != nil {
		conn.Close()
		return nil, err
	}
	t, err := newTransport(TransportConfig{BusyPoll: -1, Tap: c.Tap, Log: c.Log, MaxAssociations: 1}, &connection{Connection: udpio.NewConnection(conn), mtu: c.MTU, limit: c.MaxMTU})
	if err != nil {
		return nil, err
	}
	e, err := t.Listen(c.LocalPort, config)
	var a *Association
	if err == nil {
		e.many.Store(false) // accept returns the association also in upcall mode
		if client {
			a, err = e.begin(Addr{Addrs: []netip.AddrPort{udpio.ConnRemote}, Port: c.PeerPort})
		}
	}
	// Only now is something received. An INIT that came before ours was sent would be answered with
	// another tag than ours has, and pion/sctp then goes on with that.
	t.sockets().list[0].mu.Unlock()
	if err == nil && client {
		err = a.waitUp(ctx)
	} else if err == nil {
		a, err = e.accept(ctx.Done(), ctx)
	}
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("sctp: over a connection: %w", err)
	}
	t.conn.association.Store(a)
	e.stopAccepting()
	e.closeWhenIdle()
	return a, nil
}

// fill sets the defaults of c, and returns the configuration of its endpoint.
func (c *ConnConfig) fill() (*Config, error) {
	var config Config
	if c.Config != nil {
		config = *c.Config
	}
	for name, set := range map[string]bool{"MTU": config.MTU != 0, "Multipath": config.Multipath, "ChangeAddrs": config.ChangeAddrs,
		"ZeroChecksumLocal": config.ZeroChecksumLocal} {
		if set {
			return nil, fmt.Errorf("%w: %s is set for an association over a connection", ErrConfig, name)
		}
	}
	config.Backlog = 1
	if c.LocalPort == 0 {
		c.LocalPort = DefaultConnPort
	}
	if c.PeerPort == 0 {
		c.PeerPort = DefaultConnPort
	}
	if c.MTU == 0 {
		c.MTU = DefaultConnMTU
	}
	if c.MaxMTU == 0 {
		c.MaxMTU = c.MTU
	}
	if c.MTU < MinConnMTU || c.MaxMTU < c.MTU || c.MaxMTU > core.MaxPacket {
		return nil, fmt.Errorf("%w: MTU %d, MaxMTU %d, want %d <= MTU <= MaxMTU <= %d", ErrConfig, c.MTU, c.MaxMTU, MinConnMTU, core.MaxPacket)
	}
	return &config, nil
}

// connection is what a transport has instead of sockets, see [Client].
type connection struct {
	udpio.Connection
	mtu, limit int // of SCTP packets

	association atomic.Pointer[Association] // once it is established
}

// connLinger is how long a connection stays open after its association has ended, 1 s, to answer a peer
// that did not receive the SHUTDOWN COMPLETE (RFC 9260, Section 8.4, rule 5).
const connLinger = time.Second

// fullRetry is how soon the timers of an association run again that cannot send because its
// connection is full, 50 ms.
const fullRetry = clock.Time(50 * time.Millisecond)

// full reports whether the transport is one of a connection that takes no more packets now.
// Its associations are flushed when it does.
func (t *Transport) full() bool { return t.conn != nil && t.conn.Full() }

// deferFlush reports whether the writer of the connection will flush a: then one SACK answers all that has
// come meanwhile.
func (c *connection) deferFlush(a *Association) bool {
	return c.association.Load() == a && c.DeferFlush()
}

// startConnection has the association flushed when the connection has room, and after deferFlush; before it
// is established, its timers do that.
func (t *Transport) startConnection(s *socket) {
	failures := 0 // of Write, in a row
	t.conn.Start(func() {
		if a := t.conn.association.Load(); a != nil {
			a.goCallbacks(a.flush())
		}
	}, func(err error) {
		if err == nil {
			failures = 0
			return
		}
		t.count.writeErrors.Add(1)
		if udpio.IsEnd(err, &failures) && !t.demux.isClosed() {
			t.lose(s, err)
		}
	})
}

// shownLocals is shown for the addresses of the sockets.
func (t *Transport) shownLocals() []netip.AddrPort {
	if t.conn != nil {
		return nil
	}
	return t.sockets().locals
}

// shown is what is told to users of an address: nothing if it stands for an end of a
// connection.
func (t *Transport) shown(a netip.AddrPort) netip.AddrPort {
	if t.conn != nil {
		return netip.AddrPort{}
	}
	return a
}

// unshown is the inverse of shown, for the address of a path.
func (t *Transport) unshown(a netip.AddrPort) netip.AddrPort {
	if t.conn != nil && a == (netip.AddrPort{}) {
		return udpio.ConnRemote
	}
	return a
}
