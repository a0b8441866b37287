package job

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// errKilled is the error of a rank of this process that ends as failed.
var errKilled = errors.New("mpi: this rank has died")

// Die makes a rank of this process look failed to the others.
func (j *Job) Die(why error) {
	j.Record(slog.LevelWarn, "this rank ends as failed", Cause(why))
	j.Engine.End(fmt.Errorf("%w: %w", errKilled, why))
	for _, p := range j.Engine.AllPeers() {
		if p.Link != nil {
			p.Link.Abort("died")
		}
	}
}

// peerDown ends what the parts of a job do with a peer that is gone because of reason, which may be nil.
func (j *Job) peerDown(p *p2p.Peer, reason error) {
	p.Liveness.End()
	well := j.endedWell(p, reason)
	j.recordDown(p, well)
	if !well {
		j.reportDead(p)
	}
	j.FT.Down()
	if d := j.rdma.open.Load(); d != nil && !p.Disconnected.Load() {
		d.PeerDown((*RDMAPeer)(p), p.Failure())
	}
	j.Engine.RemoteDown(p)
}

// endedWell reports whether the end of the link to p because of reason is no failure: p has finalized, this
// job has ended, or Finalize waits for p, which may close the link before its last message
// is sent.
func (j *Job) endedWell(p *p2p.Peer, reason error) bool {
	return p.Disconnected.Load() || j.Usable() != nil || j.leaving.Load() && reason == nil
}

// recordDown logs the end of the link to a peer.
func (j *Job) recordDown(p *p2p.Peer, well bool) {
	switch {
	case p.Remote == nil && p.Rank == j.Rank():
	case well:
		j.recordPeer(slog.LevelDebug, "link closed", p)
	default:
		j.recordPeer(slog.LevelWarn, "peer failed", p, Cause(p.Failure()))
	}
}
