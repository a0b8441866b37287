package sctp

import (
	"crypto/rand"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/internal/replylimit"
	"github.com/weftstack/weft/sctp/internal/slab"
	"github.com/weftstack/weft/sctp/internal/timerqueue"
	"github.com/weftstack/weft/sctp/internal/udpio"
)

// Transport owns the sockets of a process and carries any number of SCTP
// endpoints and associations on them. It is safe for concurrent use.
type Transport struct {
	cfg     TransportConfig
	conn    *connection // nil with sockets
	epoch   time.Time
	set     atomic.Pointer[socketSet]
	setMu   sync.Mutex // guards changes of set
	cookies *cookie.Jar
	slabs   slab.Pool
	demux   demux
	timers  timerqueue.Queue[Association]
	memory  memoryBudget
	replies replylimit.Limit
	readers sync.WaitGroup

	suppression suppression
	leader      leadership
	drain       func()        // readAll, called so that escape analysis sees no recursion
	senderPolls atomic.Bool   // a sender makes a pass over the sockets
	waits       poll.Chooser  // whether goroutines that wait spin before they park
	spinning    poll.Spinning // goroutines that spin until something comes for them
	loop        poll.Loop     // how they do
	server      poll.Server   // of those that read the sockets for others
	addrMonitor *addrMonitor  // nil without TransportConfig.AutoAddrs
	flushes     atomic.Int32  // goroutines that transmit
	opened      clock.Time    // when it was made
	lost        atomic.Pointer[lostError]
	closed      atomic.Bool   // Close was called
	over        chan struct{} // closed when everything has ended
	count       transportCounters
}

// transportCounters are what Stats is made of.
type transportCounters struct {
	datagramsIn, datagramsOut, bytesIn, bytesOut, reads, writes atomic.Uint64
	bad, ootb, suppressed, writeErrors                          atomic.Uint64
}

// received counts what one read brought.
func (c *transportCounters) received(datagrams, bytes int) {
	c.reads.Add(1)
	c.datagramsIn.Add(uint64(datagrams))
	c.bytesIn.Add(uint64(bytes))
}

// NewTransport opens the sockets of cfg and starts to receive. It does not block. On error it
// closes all sockets again, cfg.Conns included. It returns [ErrConfig] for a configuration that
// contradicts itself, otherwise errors of the system.
func NewTransport(cfg TransportConfig) (*Transport, error) { return newTransport(cfg, nil) }

func newTransport(cfg TransportConfig, conn *connection) (*Transport, error) {
	// The clock of the core begins a second ago: 0 means "no timer" there.
	t := &Transport{cfg: cfg, conn: conn, epoch: time.Now().Add(-time.Second), over: make(chan struct{})}
	t.opened = t.now()
	var secret [32]byte
	rand.Read(secret[:])
	t.cookies = cookie.NewJar(secret)
	t.demux.init()
	if t.cfg.MaxAssociations <= 0 {
		t.cfg.MaxAssociations = DefaultMaxAssociations
	}
	t.memory.init(t.cfg.RecvMemory)
	if t.cfg.BusyPoll == 0 {
		t.cfg.BusyPoll = DefaultBusyPoll
	}
	monitor, err := newAddrMonitor(t, &t.cfg)
	if len(cfg.IPAddrs) > 0 && len(cfg.LocalAddrs) > 0 {
		err = ErrConfig // see socketSet.uniform, to which it need not come
	}
	if err != nil {
		for _, pc := range cfg.Conns {
			pc.Close()
		}
		return nil, err
	}
	t.addrMonitor = monitor
	list, err := t.open()
	set := newSocketSet(list)
	if err == nil {
		err = set.uniform()
	}
	if err != nil {
		for _, s := range list {
			s.conn.Close()
		}
		return nil, err
	}
	t.set.Store(set)
	t.initPolling(t.cfg.BusyPoll)
	t.drain = t.readAll
	t.timers.Init(t.now, t.onTimers)
	t.leader.init(t)
	for _, s := range list {
		if conn != nil {
			t.startConnection(s)
			s.mu.Lock() // for overConn to unlock
		}
		t.readers.Add(1)
		go s.readLoop()
	}
	if monitor != nil {
		t.readers.Add(1)
		go monitor.run()
	}
	return t, nil
}

// open returns the sockets of the configuration, those opened so far on error.
func (t *Transport) open() (list []*socket, failed error) {
	if t.conn != nil {
		return []*socket{newSocket(t, t.conn)}, nil
	}
	if t.addrMonitor != nil {
		return t.addrMonitor.open()
	}
	o := t.socketOptions()
	for _, pc := range t.cfg.Conns {
		c, err := udpio.FromPacketConn(pc, o)
		if err != nil {
			pc.Close()
			failed = errors.Join(failed, err)
			continue
		}
		list = append(list, newSocket(t, c))
	}
	addrs := t.cfg.LocalAddrs
	if len(addrs) == 0 && len(t.cfg.Conns) == 0 && len(t.cfg.IPAddrs) == 0 {
		addrs = []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Unspecified(), DefaultUDPPort)}
	}
	if failed != nil {
		return list, failed
	}
	bound, err := t.bind(addrs, o)
	list = append(list, bound...)
	for _, a := range t.cfg.IPAddrs {
		if err != nil {
			break
		}
		var c udpio.Conn
		if c, err = udpio.ListenIP(a, o); err == nil {
			list = append(list, newSocket(t, c))
		}
	}
	return list, err
}

// bindTries is how often a free UDP port common to all addresses is looked for.
const bindTries = 20

// bind opens the sockets of cfg.LocalAddrs. Those that ask for a free port get
// the same one: a peer that knows the port of one address takes it for that of
// the others, too (RFC 6951, Section 5.1).
func (t *Transport) bind(addrs []netip.AddrPort, o udpio.Options) (list []*socket, err error) {
	for range bindTries {
		err = nil
		port := uint16(0)
		for _, a := range addrs {
			want := a
			if a.Port() == 0 {
				want = netip.AddrPortFrom(a.Addr(), port)
			}
			var c udpio.Conn
			if c, err = udpio.Listen(want, o); err != nil {
				if a.Port() != 0 || port == 0 {
					return list, err // another port is no help
				}
				break
			}
			if a.Port() == 0 {
				port = c.LocalAddr().Port()
			}
			list = append(list, newSocket(t, c))
		}
		if err == nil {
			return list, nil
		}
		for _, s := range list {
			s.conn.Close()
		}
		list = nil
	}
	return list, err
}

// now reads the clock of the core.
func (t *Transport) now() clock.Time { return clock.Time(time.Since(t.epoch)) }

// Listen makes a one-to-many endpoint on an SCTP port; port 0 asks for a free one. cfg is
// copied and may be nil. It does not block. It returns [ErrPortInUse], [ErrLimit], [ErrConfig]
// or [ErrClosed].
func (t *Transport) Listen(port uint16, cfg *Config) (*Endpoint, error) {
	if cfg != nil {
		if err := cfg.check(); err != nil {
			return nil, err
		}
	}
	e := newEndpoint(t, cfg)
	if err := t.demux.addEndpoint(e, port); err != nil {
		return nil, err
	}
	return e, nil
}

// LocalAddrs returns the bound UDP addresses, or with port 0 those of
// TransportConfig.IPAddrs; none over a connection (see [Client]).
func (t *Transport) LocalAddrs() []netip.AddrPort { return slices.Clone(t.shownLocals()) }

// Stats returns a snapshot of the counters.
func (t *Transport) Stats() TransportStats {
	c := &t.count
	st := TransportStats{
		DatagramsReceived: c.datagramsIn.Load(), DatagramsSent: c.datagramsOut.Load(),
		BytesReceived: c.bytesIn.Load(), BytesSent: c.bytesOut.Load(),
		Reads: c.reads.Load(), Writes: c.writes.Load(),
		BadPackets: c.bad.Load(), OutOfTheBlue: c.ootb.Load(), Suppressed: c.suppressed.Load(),
		WriteErrors: c.writeErrors.Load(), Associations: t.demux.len(), RecvMemory: int(t.memory.used.Load()),
	}
	for _, s := range t.sockets().list {
		in := s.conn.Info()
		st.SocketDrops += in.Drops
		st.Offload = st.Offload || in.GSO || in.GRO
	}
	return st
}

// closeWait bounds how long Close waits for goroutines that are sending packets. It yields to
// them closeYields times, and then checks every closeTick.
const (
	closeWait   = time.Second
	closeYields = 1000
	closeTick   = 100 * time.Microsecond
)

// Close aborts all associations, closes the sockets and blocks until the goroutines of the
// transport have ended, for about a second at most if none is in an upcall. It must not be called
// from an upcall. It returns [ErrClosed] if it was called before.
func (t *Transport) Close() error {
	if t.closed.Swap(true) {
		return ErrClosed
	}
	return t.end()
}

// end does what Close does, or waits until another call of end has done it: a transport also
// ends with its last connection.
func (t *Transport) end() error {
	endpoints, ok := t.demux.close()
	if !ok {
		<-t.over
		return nil
	}
	defer close(t.over)
	if t.addrMonitor != nil {
		close(t.addrMonitor.stop)
	}
	for _, e := range endpoints {
		e.Close()
	}
	t.waitFlushes()
	t.suppression.stop(t)
	t.leader.stopAll()
	t.setMu.Lock()
	list := t.sockets().list
	t.setMu.Unlock()
	var first error
	for _, s := range list {
		if err := s.conn.Close(); err != nil && first == nil {
			first = err
		}
	}
	t.readers.Wait()
	return first
}

// waitFlushes waits for goroutines that had begun to transmit before Close: they may have the
// last packets of associations, an ABORT for example.
func (t *Transport) waitFlushes() {
	for range closeYields {
		if t.flushes.Load() == 0 {
			return
		}
		runtime.Gosched()
	}
	for end := t.now() + clock.Time(closeWait); t.flushes.Load() > 0 && t.now() < end; {
		time.Sleep(closeTick)
	}
}

// send writes the packets out, which b.tx describes.
func (t *Transport) send(out []byte, b *batchBuf) {
	tx := &b.tx
	s := t.sockets().choose(&tx.Tuple)
	b.meta = udpio.Meta{Local: tx.Local.Addr(), Remote: tx.Remote, ECN: tx.ECN, DSCP: tx.DSCP, SegSize: tx.SegSize, Fragment: tx.Fragment}
	if t.cfg.Tap != nil {
		slab.Fill(out, b.iovecs)
		t.tap(true, s.conn.LocalAddr(), &b.meta, out)
	}
	n := uint64(max(tx.Segs, 1))
	t.count.writes.Add(1)
	t.count.datagramsOut.Add(n)
	t.count.bytesOut.Add(uint64(len(out)))
	if err := s.conn.WriteGather(out, b.iovecs, &b.meta); err != nil && !errors.Is(err, net.ErrClosed) {
		t.count.writeErrors.Add(n)
	}
}

// tap shows the datagrams of a batch to the capture hook.
func (t *Transport) tap(sent bool, local netip.AddrPort, m *udpio.Meta, b []byte) {
	if m.Local.IsValid() {
		local = netip.AddrPortFrom(m.Local, local.Port())
	}
	for len(b) > 0 {
		n := len(b)
		if m.SegSize > 0 {
			n = min(n, m.SegSize)
		}
		t.cfg.Tap(TapEvent{Sent: sent, Local: t.shown(local), Remote: t.shown(m.Remote), ECN: m.ECN, Data: b[:n]})
		b = b[n:]
	}
}

// pathMTU returns the size of the largest SCTP packet to start with on the path
// to a peer, the largest that its route takes, and whether to look for what is
// between.
func (t *Transport) pathMTU(cfg *Config, peer netip.AddrPort) (start, limit int, discover bool) {
	if c := t.conn; c != nil {
		return c.mtu, c.limit, c.mtu < c.limit
	}
	over := overhead(peer)
	if cfg.MTU > 0 {
		n := min(cfg.MTU-over, core.MaxPacket)
		return n, n, false
	}
	mtu := 0
	if !t.virtual() {
		mtu = udpio.RouteMTU(peer)
	}
	if mtu == 0 {
		mtu = defaultMTU
	}
	limit = min(mtu-over, core.MaxPacket)
	if cfg.NoPathMTUDiscovery {
		return limit, limit, false
	}
	// RFC 8899, Section 5.1.2: the first size is one that works almost everywhere; a probe
	// shows in one round trip whether more does. That includes the loopback interface: the
	// peer, or a relay on the way, may take less than the interface.
	return min(limit, pmtu.BaseMTU), limit, true
}

// virtual reports whether no socket is the kernel's: it does not know the routes then.
func (t *Transport) virtual() bool {
	if m := t.addrMonitor; m != nil {
		return m.Listen != nil && !t.sockets().canPoll
	}
	return len(t.cfg.Conns) > 0 && !t.sockets().canPoll && len(t.cfg.LocalAddrs) == 0
}

// defaultMTU is assumed for routes of unknown MTU.
const defaultMTU = 1500

// overhead returns the size of the IP and, if there is one, the UDP header.
func overhead(peer netip.AddrPort) int {
	n := 40
	if a := peer.Addr(); a.Is4() || a.Is4In6() {
		n = 20
	}
	if peer.Port() != 0 {
		n += 8
	}
	return n
}
