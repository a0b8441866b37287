package job

import (
	"context"
	"fmt"
	"time"

	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// Transport is how a process reaches the others of its job.
type Transport interface {
	// Addr returns the address that peers connect to.
	Addr() string
	// Connect makes the links to all other ranks, by their addresses. It returns when all are up or
	// one has failed.
	Connect(ctx context.Context, addrs []string, key []byte) error
	// Listen lets processes of other jobs make links; connectRemote makes one to such a process. Both notify the
	// link setup.
	Listen() error
	connectRemote(ctx context.Context, m *linkSetup, number int) error
	// Polling returns how the transport is polled, see progress, and how goroutines
	// wait for it, see WaiterPool; both may be nil. Where goroutines poll often, no other ones are
	// woken to receive until lease after the last poll; 0 is the default of the transport.
	Polling(spins bool, lease time.Duration) (poll func() bool, park func() transport.Parker)
	// Close releases everything. Links still up are aborted.
	Close() error
}

// OpenTransport opens the network transport that the options select.
func (j *Job) OpenTransport() (Transport, error) {
	var t Transport
	var err error
	switch j.Options.Transport {
	case TransportTCP:
		t, err = newTCPTransport(j)
	case TransportSCTP, TransportHybrid:
		t, err = newSCTPTransport(j)
	default:
		return nil, fmt.Errorf("%w: transport %q", mpierr.ErrOption, j.Options.Transport)
	}
	if err != nil {
		return nil, err
	}
	return j.withGateways(t)
}

// OpenInproc opens the transport between ranks of this process. meet links the ranks of the job once all have called
// it.
func (j *Job) OpenInproc(meet func(context.Context, *Job) error) (Transport, error) {
	return j.withGateways(newInprocTransport(j, meet))
}

// withGateways returns t with the gateways between sites, if the process has some.
func (j *Job) withGateways(t Transport) (Transport, error) {
	if j.Options.Place == nil {
		return t, nil
	}
	return newSitesTransport(j, t)
}
