package mpi

import (
	"context"
	"log/slog"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

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
		o.log = l
		return nil
	}
}

// record logs an event, if there is a logger. Callers hold no lock, and are on no path of
// messages.
func (w *World) record(level slog.Level, event string, attrs ...slog.Attr) {
	if w.log != nil {
		w.log.LogAttrs(context.Background(), level, "mpi: "+event, attrs...)
	}
}

// recordPeer logs an event about a peer.
func (w *World) recordPeer(level slog.Level, event string, p *p2p.Peer, attrs ...slog.Attr) {
	if w.log == nil {
		return
	}
	about := []slog.Attr{slog.Int("peer", p.Rank)}
	if p.Remote != nil { // its rank is that in its own job
		about = append(about, slog.String("peer_job", jobName(p)))
	}
	w.record(level, event, append(about, attrs...)...)
}

// jobName names the job of a remote process: as its launcher does, or by its address.
func jobName(p *p2p.Peer) string {
	if p.Remote.LauncherName != "" {
		return p.Remote.LauncherName
	}
	return p.Remote.Addr
}

// cause is the attribute of an error.
func cause(err error) slog.Attr {
	if err == nil {
		return slog.Attr{} // handlers ignore it
	}
	return slog.String("error", err.Error())
}
