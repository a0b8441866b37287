package mpi

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// errKilled is the error of a rank of this process that ends as failed.
var errKilled = errors.New("mpi: this rank has died")

// die makes a rank of this process look failed to the others.
func (w *World) die(why error) {
	w.record(slog.LevelWarn, "this rank ends as failed", cause(why))
	w.eng.End(fmt.Errorf("%w: %w", errKilled, why))
	for _, p := range w.eng.AllPeers() {
		if p.Link != nil {
			p.Link.Abort("died")
		}
	}
}

// peerDown ends what the parts of a World do with a peer that has failed.
func (w *World) peerDown(p *p2p.Peer, err error) {
	p.Liveness.End()
	failed := p.Failure()
	w.recordDown(p, failed)
	w.reportDead(p, failed)
	w.ft.Down()
	if d := w.rdma.open.Load(); d != nil && !p.Disconnected.Load() {
		d.PeerDown((*rdmaPeer)(p), err)
	}
	w.eng.RemoteDown(p)
}

// exitGrace is how long a program may go on after its launcher has ended.
const exitGrace = 5 * time.Second

// rankDied is called when the launcher reports that a rank has failed. It reports false if the
// links are not up yet.
func (w *World) rankDied(rank int, why string) bool {
	if !w.joined.Load() {
		return false
	}
	w.eng.Peers[rank].MarkFailed(why)
	return true
}

// launcherLost is called when the connection to `weft run` has ended. Like the other children of
// the launcher, the process must not outlive it.
func (w *World) launcherLost(err error) {
	w.record(slog.LevelError, "launcher is gone", cause(err))
	w.eng.End(fmt.Errorf("%w: %w", ErrAborted, err))
	for _, p := range w.eng.AllPeers() {
		if w.joined.Load() && p.Link != nil {
			p.Link.Abort("the launcher is gone")
		}
	}
	time.AfterFunc(exitGrace, func() {
		fmt.Fprintf(os.Stderr, "mpi: rank %d: %v\n", w.Rank(), err)
		os.Exit(1)
	})
}

// recordDown logs the end of the link to a peer.
func (w *World) recordDown(p *p2p.Peer, why error) {
	switch {
	case p.Remote == nil && p.Rank == w.Rank():
	case w.endedWell(p, why):
		w.recordPeer(slog.LevelDebug, "link closed", p)
	default:
		w.recordPeer(slog.LevelWarn, "peer failed", p, cause(why))
	}
}
