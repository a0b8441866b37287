package mpi

import (
	"context"
	"sync"
)

// MaxConnected bounds the processes of other jobs that a rank is connected
// to at a time.
const MaxConnected = maxRemotes

// awaitRemotes sends the disconnect message to the remote processes that are still
// connected, and waits for theirs: Finalize is collective over all connected processes
// (MPI-4.1, Section 11.2.2).
func (w *World) awaitRemotes(ctx context.Context) {
	var wait []*peer
	w.eng.remotes.mu.Lock()
	for _, p := range w.eng.remotes.byHandle {
		if p.remote.linked && !p.remote.disconnecting {
			wait = append(wait, p)
		}
	}
	w.eng.remotes.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range wait {
		if p.failure() == nil {
			wg.Go(p.goodbye)
		}
	}
	wg.Wait()
	for _, p := range wait {
		if p.failure() != nil {
			continue
		}
		select {
		case <-p.remote.left:
		case <-ctx.Done():
			return
		}
	}
}

// disconnectRemotes closes the links to those of peers that are a member of no communicator, and
// waits until everything sent has arrived.
func (w *World) disconnectRemotes(ctx context.Context, peers []*peer) {
	e := w.eng
	var wg sync.WaitGroup
	for _, p := range peers {
		e.remotes.mu.Lock()
		mine := p.remote != nil && p.remote.refs == 0 && p.remote.linked && !p.remote.disconnecting
		if mine {
			p.remote.disconnecting = true
			e.retireRemote(p)
		}
		e.remotes.mu.Unlock()
		if !mine {
			continue
		}
		wg.Go(func() {
			p.goodbye()
			if d := w.rdma.open.Load(); d != nil {
				d.Disconnect((*rdmaPeer)(p), p.lost(errDisconnected))
			}
			if err := p.link.Shutdown(ctx); err != nil {
				p.link.Abort("disconnected")
			}
		})
	}
	wg.Wait()
}

// launcherName returns the name by which the launcher reports the failure of this process,
// or "" if the launcher reports none.
func (w *World) launcherName() string {
	if b, ok := w.boot.(interface{ ProcessName() string }); ok {
		return b.ProcessName()
	}
	return ""
}
