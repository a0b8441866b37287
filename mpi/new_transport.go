package mpi

import "fmt"

// newTransport opens the network transport that the options of w select.
func newTransport(w *World) (jobTransport, error) {
	t, err := newDirectTransport(w)
	if err != nil || w.opts.place == nil {
		return t, err
	}
	return newSitesTransport(w, t)
}

// newDirectTransport opens the transport to ranks that need no gateways.
func newDirectTransport(w *World) (jobTransport, error) {
	switch w.opts.transport {
	case TransportTCP:
		return newTCPTransport(w)
	case TransportSCTP, TransportHybrid:
		return newSCTPTransport(w)
	}
	return nil, fmt.Errorf("%w: transport %q", ErrOption, w.opts.transport)
}
