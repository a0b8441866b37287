package mpi

import (
	"context"
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/weftstack/weft/internal/poll"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/rdmadev"
	"github.com/weftstack/weft/sctp/relay"
)

// rdmaState is the RDMA device of a World.
type rdmaState struct {
	once sync.Once
	open atomic.Pointer[rdmadev.Device] // dev, once it has been opened
	dev  *rdmadev.Device
	err  error
}

// rdmaDevice opens the device on first use. It returns nil if the transport has none.
func (w *World) rdmaDevice() (*rdmadev.Device, error) {
	tr, ok := direct(w.transport).(*sctpTransport)
	if !ok || w.opts.transport != TransportHybrid {
		return nil, nil
	}
	w.rdma.once.Do(func() {
		w.rdma.dev, w.rdma.err = openRDMA(w, tr)
		w.rdma.open.Store(w.rdma.dev)
	})
	return w.rdma.dev, w.rdma.err
}

func openRDMA(w *World, tr *sctpTransport) (*rdmadev.Device, error) {
	cfg := w.opts.sctp.cfg
	cfg.ZeroChecksumLocal = w.opts.zeroChecksum()
	w.opts.timeouts(&cfg, w.Size())
	d, err := rdmadev.Open(rdmadev.Config{
		Host: (*rdmaHost)(w), Rank: uint32(w.Rank()), Name: w.eng.AppendNames(nil, []int32{int32(w.Rank())}),
		Processes: w.Size(), Transport: tr.udp, Relay: w.relayNode(), SCTP: cfg,
	})
	if err != nil {
		return nil, err
	}
	w.onFinalize(d.Close)
	return d, nil
}

// rdmaHost is the World as its device sees it.
type rdmaHost World

func (h *rdmaHost) Peer(handle int32) rdmadev.Peer { return (*rdmaPeer)(h.eng.Peer(handle)) }

func (h *rdmaHost) PeerNamed(name []byte) (rdmadev.Peer, bool) {
	n, ok := h.eng.Handle(p2p.ProcName{Job: binary.BigEndian.Uint64(name), Rank: binary.BigEndian.Uint32(name[8:])})
	if !ok {
		return nil, false
	}
	return h.Peer(n), true
}

func (h *rdmaHost) Addrs(p rdmadev.Peer) []netip.AddrPort {
	return direct(h.transport).(*sctpTransport).addrsOf((*p2p.Peer)(p.(*rdmaPeer)))
}

// relayNode returns the node of a job that spans sites.
func (w *World) relayNode() *relay.Node {
	if s, ok := w.transport.(*sitesTransport); ok {
		return s.station.Node()
	}
	return nil
}

func (h *rdmaHost) Process(p rdmadev.Peer) (a relay.Address, far bool) {
	q := (*p2p.Peer)(p.(*rdmaPeer))
	if !q.Distant {
		return a, false
	}
	if q.Remote != nil {
		return (*World)(h).distant(q.Remote.Addr)
	}
	a, far = h.transport.(*sitesTransport).far[int(q.ProcHandle)]
	return a, far
}

func (h *rdmaHost) Processes() int { return (*World)(h).Size() + h.eng.RemoteCount() }

func (h *rdmaHost) Usable() error { return (*World)(h).usable() }

func (h *rdmaHost) BeginWait() poll.Wait { return h.eng.Progress.Begin() }

func (h *rdmaHost) Spin(ctx context.Context, w poll.Wait, ready func() bool) bool {
	return h.eng.Progress.Spin(ctx, w, ready)
}

func (h *rdmaHost) EndWait(w poll.Wait) { h.eng.Progress.End(w) }

func (h *rdmaHost) Written(p rdmadev.Peer, id uint64) { h.eng.Written((*p2p.Peer)(p.(*rdmaPeer)), id) }

// rdmaPeer is a peer as the device sees it.
type rdmaPeer p2p.Peer

func (p *rdmaPeer) Handle() int32 { return p.ProcHandle }

func (p *rdmaPeer) Failure() error { return (*p2p.Peer)(p).Failure() }

func (p *rdmaPeer) Lost(err error) error { return (*p2p.Peer)(p).Lost(err) }

func (p *rdmaPeer) Counters() *rdmadev.Counters { return &p.RDMA }

const _ = uint(p2p.ProcNameLen-rdmadev.NameLen) + uint(rdmadev.NameLen-p2p.ProcNameLen) // names have one length
