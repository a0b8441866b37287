package mpi

import "github.com/weftstack/weft/sctp"

// WithSCTP sets the parameters of the associations. This package sets their streams, scheduler and
// callbacks, and zero checksums between ranks on one host.
func WithSCTP(cfg sctp.Config) Option {
	return func(o *options) error {
		o.SCTP = cfg
		return nil
	}
}

// WithPacketConns makes the SCTP transports use what conns returns for a rank
// instead of opening UDP sockets: for tests over simulated networks. The
// transport owns and closes them.
func WithPacketConns(conns func(rank int) ([]sctp.PacketConn, error)) Option {
	return func(o *options) error {
		o.PacketConns = conns
		return nil
	}
}
