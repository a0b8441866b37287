package mpi

import "log/slog"

// WithLog makes the rank log with l what an operator wants to know and what happens seldom:
//
//   - Error: the job is aborted, or its launcher is gone.
//   - Warn: a peer has failed or does not answer, a link is aborted because its peer breaks
//     the protocol, a communicator is revoked, a Connect, Accept, Spawn or Join has failed,
//     also because of a timeout. Paths that fail, with a transport of several addresses.
//   - Info: the links are up, a peer answers again, a group is connected, the World is
//     finalized.
//   - Debug: links that close after Finalize or Disconnect, handshakes that are refused.
//
// Each record has the attribute "rank", those about a peer also "peer", and "error" is the
// cause. The transports over SCTP use l for their own records, too (sctp.TransportConfig).
// By default nothing is logged; no message that is sent or received costs anything in either
// case. Handlers are called by goroutines that serve the network: they must not block for
// long, nor call methods of the World.
func WithLog(l *slog.Logger) Option {
	return func(o *options) error {
		o.Log = l
		return nil
	}
}
