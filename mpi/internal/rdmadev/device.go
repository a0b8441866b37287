package rdmadev

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/weftstack/weft/mpi/internal/envelope"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// Device is a rank's RDMA device. All windows share it, and it uses the sockets that carry the messages
// of the rank. An origin connects a queue pair to a target when it first accesses that; the target's end
// of the queue pair only serves.
type Device struct {
	Registrations RegistrationCache

	host   Host
	rank   uint32
	name   []byte
	dev    *verbs.Device
	pd     *verbs.PD
	l      *verbs.Listener
	idle   *verbs.CQ // of the serving queue pairs, which have no completions
	token  [envelope.TokenLen]byte
	life   context.Context // done when the device is closed
	stop   context.CancelFunc
	served chan struct{} // closed when accept has ended

	mu      sync.Mutex // guards what follows
	conns   map[int32]*Conn
	dead    []*Conn // failed connections that still hold resources
	serving []*verbs.QP
	regions map[*verbs.MR]bool // memory that peers may access until it is revoked; nil once the device is closed
	bulk    *Bulk              // nil until it is opened
}

// servingSlack bounds the serving queue pairs beyond three per rank.
const servingSlack = 16

// Open opens a device.
func Open(cfg Config) (*Device, error) {
	d := &Device{host: cfg.Host, rank: cfg.Rank, name: cfg.Name, conns: make(map[int32]*Conn),
		regions: make(map[*verbs.MR]bool), served: make(chan struct{})}
	streams := 3*cfg.Processes + servingSlack
	var err error
	d.dev, err = verbs.Open(verbs.Config{
		Transport: cfg.Transport, Relay: cfg.Relay, Streams: uint16(min(streams, 1<<15)), SCTP: &cfg.SCTP,
	})
	if err != nil {
		return nil, fmt.Errorf("mpi: opening the RDMA device: %w", err)
	}
	d.pd = d.dev.AllocPD()
	if d.idle, err = d.dev.NewCQ(1); err == nil {
		d.l, err = d.dev.Listen()
	}
	if err != nil {
		return nil, errors.Join(err, d.dev.Close())
	}
	rand.Read(d.token[:]) // never fails
	d.life, d.stop = context.WithCancel(context.Background())
	go d.accept()
	return d, nil
}

// Verbs returns the device below, and PD the protection domain of all memory.
func (d *Device) Verbs() *verbs.Device { return d.dev }
func (d *Device) PD() *verbs.PD        { return d.pd }

// ServingQPs returns the queue pairs that peers have connected.
func (d *Device) ServingQPs() []*verbs.QP {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.serving)
}

// Expose registers memory for access by peers, and returns the key that they need.
func (d *Device) Expose(mem []byte, access verbs.Access) (*verbs.MR, envelope.Key, error) {
	mr, err := d.pd.Register(mem, access)
	if err != nil {
		return nil, envelope.Key{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.regions == nil {
		return nil, envelope.Key{}, errors.Join(mpierr.ErrFinalized, mr.Close())
	}
	d.regions[mr] = true
	return mr, d.key(mr), nil
}

// Revoke ends all access of peers to memory that Expose has registered. It waits until the transport does not read
// the memory any more: what peers have read is sent again from there until they acknowledge it, or have failed.
func (d *Device) Revoke(mr *verbs.MR) error {
	d.mu.Lock()
	mine := d.regions[mr]
	delete(d.regions, mr)
	d.mu.Unlock()
	if !mine {
		return nil // the device was closed
	}
	drained := make(chan struct{})
	mr.AfterDrain(func() { close(drained) })
	err := mr.Close()
	select {
	case <-drained:
	case <-d.life.Done():
	}
	return err
}

// key returns what a peer needs to access a region.
func (d *Device) key(mr *verbs.MR) envelope.Key {
	return envelope.Key{STag: mr.STag(), Port: d.dev.Addr().Port, Token: d.token}
}

// accept serves the connection requests of origins until the device is closed.
func (d *Device) accept() {
	defer close(d.served)
	for {
		req, err := d.l.Accept(d.life)
		if err != nil {
			return
		}
		if err := d.serve(req); err != nil {
			_ = req.Reject(nil) // the association may be gone
		}
	}
}

// serve connects a serving queue pair to an origin that knows the token.
func (d *Device) serve(req *verbs.ConnRequest) error {
	if n := len(req.PrivateData); n != envelope.TokenLen+4 && n != envelope.TokenLen+NameLen ||
		subtle.ConstantTimeCompare(req.PrivateData[:envelope.TokenLen], d.token[:]) != 1 {
		return mpierr.ErrAuth
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	live := d.serving[:0]
	for _, qp := range d.serving {
		if qp.State() == verbs.StateError {
			_ = qp.Close() // it is at its end
		} else {
			live = append(live, qp)
		}
	}
	if d.serving = live; len(live) >= 3*d.host.Processes()+servingSlack {
		return verbs.ErrLimit
	}
	qp, err := d.newServing(req.PrivateData[envelope.TokenLen:])
	if err != nil {
		return err
	}
	if err := req.Accept(qp, verbs.ConnParams{}); err != nil {
		return errors.Join(err, qp.Close())
	}
	d.serving = append(d.serving, qp)
	return nil
}

// newServing makes the queue pair for an origin. An origin that moves rendezvous bodies sends its
// name. d.mu is held.
func (d *Device) newServing(private []byte) (*verbs.QP, error) {
	if len(private) != NameLen {
		return d.pd.NewQP(verbs.QPConfig{SendCQ: d.idle, RecvCQ: d.idle, IRD: connReads, ORD: -1})
	}
	if d.bulk == nil {
		return nil, mpierr.ErrAuth // it holds no key: no rendezvous has exposed memory
	}
	return d.bulk.serve(private)
}

// Conn returns the connection to the process with a handle, connecting it first if there is none, with the
// key of memory of the process. If ctx ends first, the attempt goes on for other goroutines.
func (d *Device) Conn(ctx context.Context, handle int32, key *envelope.Key) (*Conn, error) {
	d.mu.Lock()
	c := d.conns[handle]
	mine := false
	if c != nil && c.Failure() != nil {
		select {
		case <-c.up:
			d.discard(c)
			c = nil
		default: // it is still connecting, in vain
		}
	}
	if c == nil {
		c, mine = newConn(d, d.host.Peer(handle)), true
		d.conns[handle] = c
	}
	d.mu.Unlock()
	if mine {
		if err := c.peer.Failure(); err != nil {
			c.fail(err)
		}
		go c.connect(key) // not bound to ctx: other goroutines may wait for it, too
	}
	select {
	case <-c.up:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return c, c.Failure()
}

// dial connects a queue pair to the device of a process, whose memory has the key.
func (d *Device) dial(ctx context.Context, p Peer, key *envelope.Key, qp *verbs.QP, private []byte) error {
	params := verbs.ConnParams{PrivateData: private, Timeout: -1}
	if a, far := d.host.Process(p); far {
		_, err := d.dev.ConnectRelay(ctx, a, qp, params)
		return err
	}
	_, err := d.dev.Connect(ctx, sctp.Addr{Addrs: d.host.Addrs(p), Port: key.Port}, qp, params)
	return err
}

// Connections returns the number of processes that Conn has begun to connect to.
func (d *Device) Connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

// discard moves a connection that has failed to dead, and frees the dead connections that have
// ended. d.mu is held.
func (d *Device) discard(c *Conn) {
	if c.qp != nil {
		_ = c.qp.Close() // closed already, perhaps
	}
	d.dead = slices.DeleteFunc(append(d.dead, c), func(c *Conn) bool {
		if c.qp != nil {
			select {
			case <-c.qp.Done():
			default:
				return false
			}
		}
		return c.close() == nil
	})
}

// PeerDown ends the connections to a process that has failed, in both directions, and the associations under them.
// Their queue pairs would notice the failure later, and read the memory of what is not acknowledged until then.
func (d *Device) PeerDown(p Peer, err error) {
	d.Disconnect(p, err)
	d.mu.Lock()
	bulk := d.bulk
	d.mu.Unlock()
	if bulk != nil {
		bulk.peerDown(p)
	}
	if _, far := d.host.Process(p); far {
		return // its addresses may be those of another process of this site
	}
	addrs := d.host.Addrs(p)
	ofPeer := func(a netip.AddrPort) bool { return slices.Contains(addrs, a) }
	for _, a := range d.dev.Associations() {
		if slices.ContainsFunc(a.ConfirmedAddr().Addrs, ofPeer) {
			a.Abort("rank is gone")
		}
	}
}

// Disconnect ends the connection to a process: its operations fail with err.
func (d *Device) Disconnect(p Peer, err error) {
	d.mu.Lock()
	c := d.conns[p.Handle()]
	d.mu.Unlock()
	if c == nil {
		return
	}
	c.fail(err)
	c.giveUp()
	if <-c.up; c.qp != nil {
		_ = c.qp.Close() // closed already, perhaps
	}
}

// Close closes the device, at Finalize. Windows that were not freed cannot be used any more.
func (d *Device) Close(ctx context.Context) error {
	d.stop()
	errs := []error{d.l.Close()}
	<-d.served
	d.mu.Lock()
	for _, c := range d.conns {
		d.dead = append(d.dead, c)
	}
	dead, serving, regions := d.dead, d.serving, d.regions
	d.dead, d.serving, d.conns, d.regions = nil, nil, nil, nil
	bulk := d.bulk
	d.mu.Unlock()
	qps := serving
	if bulk != nil {
		qps = append(qps, bulk.finish()...)
	}
	for _, c := range dead {
		if <-c.up; c.qp != nil {
			qps = append(qps, c.qp)
		}
	}
	for _, qp := range qps {
		if err := qp.Close(); !errors.Is(err, verbs.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, qp := range qps {
		// A queue pair references memory until the peer has acknowledged it.
		if d.host.Usable() == nil {
			select {
			case <-qp.Done():
			case <-ctx.Done():
			}
		}
	}
	for _, c := range dead {
		errs = append(errs, c.close())
	}
	if bulk != nil {
		errs = append(errs, bulk.close(ctx))
	}
	errs = append(errs, d.Registrations.close())
	for mr := range regions {
		errs = append(errs, mr.Close())
	}
	errs = append(errs, d.idle.Close(), d.pd.Close(), d.dev.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("mpi: closing the RDMA device: %w", err)
	}
	return nil
}

// Busy returns how many connections that have failed may still use memory of operations, for tests.
func (d *Device) Busy() (n int) {
	d.mu.Lock()
	list := slices.AppendSeq(slices.Clone(d.dead), maps.Values(d.conns))
	d.mu.Unlock()
	for _, c := range list {
		if c.Failure() == nil || c.qp == nil {
			continue
		}
		select {
		case <-c.qp.Done():
		default:
			n++
		}
	}
	return n
}
