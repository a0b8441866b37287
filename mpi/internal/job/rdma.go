package job

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

// rdmaState is the RDMA device of a job.
type rdmaState struct {
	once sync.Once
	open atomic.Pointer[rdmadev.Device] // dev, once it has been opened
	dev  *rdmadev.Device
	err  error
}

// Device opens the RDMA device on first use. It returns nil if the transport has none.
func (j *Job) Device() (*rdmadev.Device, error) {
	tr, ok := direct(j.Transport).(*sctpTransport)
	if !ok || j.Options.Transport != TransportHybrid {
		return nil, nil
	}
	j.rdma.once.Do(func() {
		j.rdma.dev, j.rdma.err = openRDMA(j, tr)
		j.rdma.open.Store(j.rdma.dev)
	})
	return j.rdma.dev, j.rdma.err
}

func openRDMA(j *Job, tr *sctpTransport) (*rdmadev.Device, error) {
	cfg := j.Options.SCTP
	cfg.ZeroChecksumLocal = j.Options.zeroChecksum()
	j.Options.timeouts(&cfg, j.Size())
	d, err := rdmadev.Open(rdmadev.Config{
		Host: (*rdmaHost)(j), Rank: uint32(j.Rank()), Name: j.Engine.AppendNames(nil, []int32{int32(j.Rank())}),
		Processes: j.Size(), Transport: tr.udp, Relay: j.relayNode(), SCTP: cfg,
	})
	if err != nil {
		return nil, err
	}
	j.OnFinalize(d.Close)
	return d, nil
}

// rdmaHost is the Job as its device sees it.
type rdmaHost Job

func (h *rdmaHost) Peer(handle int32) rdmadev.Peer { return (*RDMAPeer)(h.Engine.Peer(handle)) }

func (h *rdmaHost) PeerNamed(name []byte) (rdmadev.Peer, bool) {
	n, ok := h.Engine.Handle(p2p.ProcName{Job: binary.BigEndian.Uint64(name), Rank: binary.BigEndian.Uint32(name[8:])})
	if !ok {
		return nil, false
	}
	return h.Peer(n), true
}

func (h *rdmaHost) Addrs(p rdmadev.Peer) []netip.AddrPort {
	return direct(h.Transport).(*sctpTransport).addrsOf((*p2p.Peer)(p.(*RDMAPeer)))
}

// relayNode returns the node of a job that spans sites.
func (j *Job) relayNode() *relay.Node {
	if s, ok := j.Transport.(*sitesTransport); ok {
		return s.station.Node()
	}
	return nil
}

func (h *rdmaHost) Process(p rdmadev.Peer) (a relay.Address, far bool) {
	q := (*p2p.Peer)(p.(*RDMAPeer))
	if !q.Distant {
		return a, false
	}
	if q.Remote != nil {
		return (*Job)(h).distant(q.Remote.Addr)
	}
	a, far = h.Transport.(*sitesTransport).far[int(q.ProcHandle)]
	return a, far
}

func (h *rdmaHost) Processes() int { return (*Job)(h).Size() + h.Engine.RemoteCount() }

func (h *rdmaHost) Usable() error { return (*Job)(h).Usable() }

func (h *rdmaHost) BeginWait() poll.Wait { return h.Engine.Progress.Begin() }

func (h *rdmaHost) Spin(ctx context.Context, w poll.Wait, ready func() bool) bool {
	return h.Engine.Progress.Spin(ctx, w, ready)
}

func (h *rdmaHost) EndWait(w poll.Wait) { h.Engine.Progress.End(w) }

func (h *rdmaHost) Written(p rdmadev.Peer, id uint64) {
	h.Engine.Written((*p2p.Peer)(p.(*RDMAPeer)), id)
}

// RDMAPeer is a peer as the device sees it.
type RDMAPeer p2p.Peer

func (p *RDMAPeer) Handle() int32 { return p.ProcHandle }

func (p *RDMAPeer) Failure() error { return (*p2p.Peer)(p).Failure() }

func (p *RDMAPeer) Lost(err error) error { return (*p2p.Peer)(p).Lost(err) }

func (p *RDMAPeer) Counters() *rdmadev.Counters { return &p.RDMA }

const _ = uint(p2p.ProcNameLen-rdmadev.NameLen) + uint(rdmadev.NameLen-p2p.ProcNameLen) // names have one length
