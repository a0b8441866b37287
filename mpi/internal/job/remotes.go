package job

import (
	"context"
	"sync"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// awaitRemotes sends the disconnect message to the remote processes that are still
// connected, and waits for theirs: Finalize is collective over all connected processes
// (MPI-4.1, Section 11.2.2).
func (j *Job) awaitRemotes(ctx context.Context) {
	var wait []*p2p.Peer
	j.Engine.Remotes.Mu.Lock()
	for _, p := range j.Engine.Remotes.ByHandle {
		if p.Remote.Linked && !p.Remote.Disconnecting {
			wait = append(wait, p)
		}
	}
	j.Engine.Remotes.Mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range wait {
		if p.Failure() == nil {
			wg.Go(p.Goodbye)
		}
	}
	wg.Wait()
	for _, p := range wait {
		if p.Failure() != nil {
			continue
		}
		select {
		case <-p.Remote.Left:
		case <-ctx.Done():
			return
		}
	}
}

// DisconnectRemotes closes the links to those of peers that are a member of no communicator, and
// waits until everything sent has arrived.
func (j *Job) DisconnectRemotes(ctx context.Context, peers []*p2p.Peer) {
	e := j.Engine
	var wg sync.WaitGroup
	for _, p := range peers {
		e.Remotes.Mu.Lock()
		mine := p.Remote != nil && p.Remote.Refs == 0 && p.Remote.Linked && !p.Remote.Disconnecting
		if mine {
			p.Remote.Disconnecting = true
			e.RetireRemote(p)
		}
		e.Remotes.Mu.Unlock()
		if !mine {
			continue
		}
		wg.Go(func() {
			p.Goodbye()
			if d := j.rdma.open.Load(); d != nil {
				d.Disconnect((*RDMAPeer)(p), p.Lost(p2p.ErrDisconnected))
			}
			if err := p.Link.Shutdown(ctx); err != nil {
				p.Link.Abort("disconnected")
			}
		})
	}
	wg.Wait()
}
