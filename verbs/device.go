package verbs

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/ddp/ddpmpa"
	"github.com/weftstack/weft/ddp/ddprelay"
	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/relay"
)

// Config holds the parameters of a Device.
type Config struct {
	// Transport carries the device's SCTP associations. It is not closed
	// with the device. Without one the device has TCP connections only.
	Transport *sctp.Transport
	// Port is the SCTP port of the device, other than that of any plain SCTP
	// endpoint of the transport: an association carries DDP only (RFC 5043,
	// Section 5.1). 0 asks for a free one.
	Port uint16
	// Relay, if not nil, makes the device a service of the node, which is not closed with it: for connections through
	// gateways (ConnectRelay). Listen takes requests that come there, too. Peers are devices with the same Service;
	// each device of a node has one of its own, up to ddprelay.MaxService.
	Relay   *relay.Node
	Service uint16
	// Streams bounds the queue pairs between this device and one other
	// device (default ddpsctp.DefaultStreams).
	Streams uint16
	// Backlog bounds the connection requests that wait for a decision
	// (default ddpsctp.DefaultBacklog); beyond it, and without a listener,
	// peers are refused.
	Backlog int
	// Window bounds the segments of one queue pair that are sent and not
	// acknowledged (default ddp.DefaultWindow).
	Window int
	// CloseTimeout bounds how long a queue pair over SCTP that was closed, or ended
	// in an error, keeps completion queues and regions busy while the peer
	// acknowledges nothing, as on a dead network (default DefaultCloseTimeout;
	// negative: as long as SCTP tries). The association with that peer is aborted
	// then, unless other queue pairs use it: those decide how long they wait. Over
	// TCP it is ddpmpa.Linger.
	CloseTimeout time.Duration
	// SCTP, if not nil, holds parameters of the associations; streams,
	// adaptation indication and upcalls are set by the device.
	SCTP *sctp.Config
	// TCP holds the parameters of MPA connections (RFC 5044). Enhanced and
	// Private are set by the device.
	TCP ddpmpa.Params
	// TCPRevision1 makes ConnectTCP ask for an unenhanced connection: read
	// depths are then not exchanged, and the accepting side cannot send until
	// the connecting side has sent something.
	TCPRevision1 bool
	// TCPSource, if valid, is the local address of the TCP connections that
	// ConnectTCP makes.
	TCPSource netip.Addr
	// TCPFallback makes ConnectTCP ask for an unenhanced connection when the
	// other side closes the TCP connection instead of answering, as one does
	// that knows revision 1 only (RFC 6581, Section 10).
	TCPFallback bool
}

// Device is an RDMA device in software: a DDP endpoint on one SCTP port of a
// transport. All queue pairs between two devices share one association. Queue
// pairs connected by ConnectTCP and ListenTCP have a TCP connection each
// instead. It is safe for concurrent use.
type Device struct {
	cfg   Config
	table *ddp.Table
	ep    *ddpsctp.Endpoint  // nil without a transport
	relay *ddprelay.Endpoint // nil without a relay node

	mu       sync.Mutex
	users    int       // guarded by mu: protection domains, completion queues and channels
	closed   bool      // guarded by mu
	listener *Listener // guarded by mu
	tcp      tcpSide   // guarded by mu

	events events
	qpNum  atomic.Uint32 // of the last queue pair
}

// Open makes a device. It returns the errors of sctp.Transport.Listen and ddprelay.Listen.
func Open(cfg Config) (*Device, error) {
	d := newDevice(cfg)
	if cfg.Transport != nil {
		var err error
		d.ep, err = ddpsctp.Listen(cfg.Transport, cfg.Port, ddpsctp.Config{
			Streams: cfg.Streams, Backlog: cfg.Backlog, SCTP: cfg.SCTP,
			OnRequest: d.onRequest, OnNotify: d.onNotify})
		if err != nil {
			return nil, err
		}
	}
	if cfg.Relay != nil {
		if err := d.listenRelay(); err != nil {
			if d.ep != nil {
				_ = d.ep.Close()
			}
			return nil, err
		}
	}
	return d, nil
}

func newDevice(cfg Config) *Device {
	return &Device{cfg: cfg, table: ddp.NewTable(), events: events{wake: newDoorbell()}}
}

// Addr returns the address peers connect to over SCTP, if there is a
// transport.
func (d *Device) Addr() sctp.Addr {
	if d.ep == nil {
		return sctp.Addr{}
	}
	return d.ep.Addr()
}

// Poll makes one pass over the transport: see sctp.Transport.Poll.
func (d *Device) Poll() bool {
	return d.cfg.Transport != nil && d.cfg.Transport.Poll()
}

// streams returns Config.Streams or its default, backlog Config.Backlog.
func (d *Device) streams() int {
	if d.cfg.Streams == 0 {
		return ddpsctp.DefaultStreams
	}
	return int(d.cfg.Streams)
}

func (d *Device) backlog() int {
	if d.cfg.Backlog <= 0 {
		return ddpsctp.DefaultBacklog
	}
	return d.cfg.Backlog
}

// Stats are counters of a device.
type Stats struct {
	ddpsctp.Stats
	// Regions is the number of memory regions and windows, and of queue pairs,
	// each of which has an STag, too.
	Regions int
	// EventsLost counts asynchronous events dropped because they were not taken.
	EventsLost uint64
}

// Stats returns a snapshot of the counters.
func (d *Device) Stats() Stats {
	st := Stats{Regions: d.table.Len()}
	d.events.mu.Lock()
	st.EventsLost = d.events.lost
	d.events.mu.Unlock()
	if d.ep != nil {
		st.Stats = d.ep.Stats()
	}
	if d.relay != nil {
		add(&st.Stats, d.relay.Stats().Stats)
	}
	return st
}

// use counts an object of the device.
func (d *Device) use() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.users++
	return nil
}

func (d *Device) unuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users--
}

// Close closes the device, its listener and its associations. It returns
// ErrBusy while it has protection domains, completion queues or channels.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return ErrClosed
	}
	if n := d.users; n > 0 {
		d.mu.Unlock()
		return explain(ErrBusy, "device in use by %d protection domains, completion queues and channels", n)
	}
	d.closed = true
	l := d.listener
	d.mu.Unlock()
	if l != nil {
		l.Close()
	}
	d.closeTCP()
	defer d.events.close()
	var err error
	if d.relay != nil {
		err = d.relay.Close()
	}
	if d.ep != nil {
		if e := d.ep.Close(); err == nil {
			err = e
		}
	}
	return err
}

// Connect connects qp to a queue pair of the device at addr (rdma_connect). It blocks until
// the program there accepts or rejects the request, ConnParams.Timeout has passed, or ctx is
// done. Errors to test for: *[RejectError], [ErrRefused] if no program listens there, and
// those of package sctp. qp must be in StateIdle, with the receives posted that it needs at
// once; after an error it is in StateError. A device cannot connect to itself.
//
// If the peer has restarted, its association may turn out to be gone when the request is
// sent: the request is then sent once more, on a new one.
func (d *Device) Connect(ctx context.Context, addr sctp.Addr, qp *QP, p ConnParams) (ConnInfo, error) {
	if err := d.checkConnect(qp, &p); err != nil {
		return ConnInfo{}, err
	}
	if d.ep == nil {
		return ConnInfo{}, ErrNoTransport
	}
	return qp.initiate(ctx, target{sctp: addr}, nil, p)
}

// checkConnect checks the arguments of Connect and ConnectTCP.
func (d *Device) checkConnect(qp *QP, p *ConnParams) error {
	if err := checkPrivate(p.PrivateData); err != nil {
		return err
	}
	if qp.pd.dev != d {
		return explain(ErrQPState, "QP %d is of another device", qp.num)
	}
	if qp.State() != StateIdle {
		return qp.stateError()
	}
	return nil
}

// Associations returns the SCTP associations with other devices, for their statistics. The
// caller must not send on them. Aborting one ends all queue pairs connected over it at once
// and releases the memory that they send from.
func (d *Device) Associations() []*sctp.Association {
	if d.ep == nil {
		return nil
	}
	return d.ep.Associations()
}
