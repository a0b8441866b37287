package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// Remote processes: those of other jobs that a rank is connected to, by Comm.Accept,
// Comm.Connect, Comm.Spawn or World.Join (MPI-4.1, Chapter 11). Two processes have one link,
// however many communicators they share. It is counted by reference: communicators and
// link setups retain it, and Disconnect closes it when no communicator is left.

const (
	// firstRemoteHandle is the handle of the first remote process. The handles of the
	// own job are its ranks, which are less.
	firstRemoteHandle = 1 << 16
	// maxRemotes bounds the processes of other jobs that a rank is connected to at a time.
	maxRemotes = 1 << 14
	// remoteWindowShare is the divisor of the memory for unexpected messages that gives
	// the part of one remote process: how many there will be is not known beforehand.
	remoteWindowShare = 64
)

// remoteProcess is the extra state of a peer that belongs to another job.
type remoteProcess struct {
	linkID       uint64        // identifies the link, equal at both ends
	addr         string        // of its transport
	launcherName string        // see World.launcherName
	left         chan struct{} // closed when the process has finalized or failed
	once         sync.Once     // closes left

	// Guarded by remoteProcesses.mu.
	refs          int  // reference count: communicators that it is a member of, and link setups
	linked        bool // there is a link
	disconnecting bool // Disconnect is closing the link
	retired       bool // not found by name any more: the link is being closed, or has ended
}

// remoteProcesses is the table of remote processes. Handles are not reused, so a Group that
// outlives its processes never names another one.
type remoteProcesses struct {
	mu       sync.Mutex
	next     int32
	byHandle map[int32]*peer
	byName   map[procName]*peer // processes with a usable link
	past     peerCounters       // sum over reaped processes
}

// peer returns the peer with a handle. For a process that is no longer connected it returns a
// failed peer.
func (e *engine) peer(h int32) *peer {
	if h < firstRemoteHandle {
		return e.peers[h]
	}
	e.remotes.mu.Lock()
	defer e.remotes.mu.Unlock()
	if p := e.remotes.byHandle[h]; p != nil {
		return p
	}
	p := &peer{e: e, rank: -1, handle: h, link: noLink{}, remote: &remoteProcess{retired: true}}
	err := p.lost(errDisconnected)
	p.failed.Store(&err)
	return p
}

// errDisconnected is why nothing can be sent to a process after Disconnect.
var errDisconnected = errors.New("mpi: disconnected")

// noLink is the link to a process that is no longer connected.
type noLink struct{}

func (noLink) Send(uint16, []byte, []byte, transport.Owner) error { return errDisconnected }
func (noLink) Flush()                                             {}
func (noLink) CopyLimit(bool) int                                 { return 0 }
func (noLink) Shutdown(context.Context) error                     { return nil }
func (noLink) Abort(string)                                       {}

// all returns the peers of this job and the remote processes that have a link.
func (e *engine) all() []*peer {
	e.remotes.mu.Lock()
	defer e.remotes.mu.Unlock()
	if len(e.remotes.byHandle) == 0 {
		return e.peers
	}
	out := slices.Clone(e.peers)
	for _, p := range e.remotes.byHandle {
		if p.remote.linked {
			out = append(out, p)
		}
	}
	return out
}

// remoteCount returns the number of remote processes.
func (e *engine) remoteCount() int {
	e.remotes.mu.Lock()
	defer e.remotes.mu.Unlock()
	return len(e.remotes.byHandle)
}

// remoteHandle returns the handle of the remote process with a name.
func (e *engine) remoteHandle(n procName) (int32, bool) {
	e.remotes.mu.Lock()
	defer e.remotes.mu.Unlock()
	if p := e.remotes.byName[n]; p != nil {
		return p.handle, true
	}
	return 0, false
}

// remoteWindow returns how many bytes of eager messages this rank accepts from a remote process.
func (e *engine) remoteWindow() int64 {
	n := e.window * int64(len(e.peers)) / remoteWindowShare
	if n = min(n, e.window); n <= cost(0) {
		return 0
	}
	return n
}

// retainNamed returns the remote process with a name and retains it, or returns nil if there is no
// link to it.
func (e *engine) retainNamed(n procName) *peer {
	e.remotes.mu.Lock()
	defer e.remotes.mu.Unlock()
	p := e.remotes.byName[n]
	if p != nil {
		p.remote.refs++
	}
	return p
}

// remoteInfo is what the engine is told about a remote process.
type remoteInfo struct {
	addr         string // of its transport
	launcherName string // see remoteProcess
	window       int64  // bytes of unmatched eager messages that may be sent to it
}

// addRemote makes the peer for a remote process. The caller calls abandonRemote or release.
func (e *engine) addRemote(n procName, m remoteInfo, link uint64) (*peer, error) {
	e.remotes.mu.Lock()
	defer e.remotes.mu.Unlock()
	if len(e.remotes.byHandle) >= maxRemotes || e.remotes.next > 1<<30 {
		return nil, fmt.Errorf("%w: more than %d processes of other jobs", mpierr.ErrLimit, maxRemotes)
	}
	if e.remotes.byHandle == nil {
		e.remotes.byHandle, e.remotes.byName = make(map[int32]*peer), make(map[procName]*peer)
	}
	p := e.newPeer(firstRemoteHandle+e.remotes.next, n, e.remoteWindow())
	e.remotes.next++
	p.remote = &remoteProcess{linkID: link, addr: m.addr, launcherName: m.launcherName, refs: 1, left: make(chan struct{})}
	p.credit.Store(max(min(m.window, maxCredit), 0))
	e.remotes.byHandle[p.handle] = p
	if n := int32(len(e.peers) + len(e.remotes.byHandle)); n > e.sources.Load() {
		e.sources.Store(n)
	}
	return p, nil
}

// linkRemote gives p its link.
func (e *engine) linkRemote(p *peer, l transport.Link) {
	e.remotes.mu.Lock()
	defer e.remotes.mu.Unlock()
	p.link = l
	p.coalesces = canCoalesce()
	p.remote.linked = true
}

// abandonRemote releases a peer of a link setup. If no communicator retains it, because the setup
// has failed, its link is aborted.
func (e *engine) abandonRemote(p *peer, why string) {
	e.remotes.mu.Lock()
	p.remote.refs--
	unused := p.remote.refs == 0
	cut := unused && p.remote.linked && p.failure() == nil
	gone := false
	if unused && !p.remote.linked {
		delete(e.remotes.byHandle, p.handle) // it had no traffic to count
	} else {
		gone = e.reapRemote(p)
	}
	if cut {
		e.retireRemote(p)
	}
	e.remotes.mu.Unlock()
	if gone {
		e.addPastStats(p)
	}
	if cut {
		p.link.Abort(why)
	}
}

// publishRemote enters p, which has a link now, under its name.
func (e *engine) publishRemote(p *peer) {
	e.remotes.mu.Lock()
	defer e.remotes.mu.Unlock()
	if p.failure() == nil && !p.remote.retired {
		e.remotes.byName[p.name] = p
	}
}

// retain adds the reference of a communicator with these members.
func (e *engine) retain(peers []*peer) {
	e.remotes.mu.Lock()
	defer e.remotes.mu.Unlock()
	for _, p := range peers {
		if p.remote != nil {
			p.remote.refs++
		}
	}
}

// release is the opposite of retain. It reaps remote processes that have failed.
func (e *engine) release(peers []*peer) {
	for _, p := range peers {
		if p.remote == nil {
			continue
		}
		e.remotes.mu.Lock()
		p.remote.refs--
		gone := e.reapRemote(p)
		e.remotes.mu.Unlock()
		if gone {
			e.addPastStats(p)
		}
	}
}

// reapRemote removes p from the table if it has failed and no communicator retains it, and reports
// whether it did: then the caller calls addPastStats. remotes.mu is held.
func (e *engine) reapRemote(p *peer) bool {
	if p.failure() == nil {
		return false
	}
	e.retireRemote(p)
	if p.remote.refs > 0 || e.remotes.byHandle[p.handle] != p {
		return false
	}
	delete(e.remotes.byHandle, p.handle)
	return true
}

// addPastStats adds the traffic of p, which was reaped, to that of earlier ones. It locks
// remotes.mu.
func (e *engine) addPastStats(p *peer) {
	c := p.counters()
	c.Announced, c.Credit, c.Held = 0, 0, 0
	e.remotes.mu.Lock()
	defer e.remotes.mu.Unlock()
	e.remotes.past.add(&c)
}

// retireRemote removes the name of p: the process may connect again, with another link.
// remotes.mu is held.
func (e *engine) retireRemote(p *peer) {
	p.remote.retired = true
	if e.remotes.byName[p.name] == p {
		delete(e.remotes.byName, p.name)
	}
}

// remoteDown is called when a peer has failed: it reaps a remote process.
func (e *engine) remoteDown(p *peer) {
	if p.remote == nil {
		return
	}
	e.remotes.mu.Lock()
	gone := e.reapRemote(p)
	e.remotes.mu.Unlock()
	if gone {
		e.addPastStats(p)
	}
}

// markLeft records that the process has finalized or failed.
func (f *remoteProcess) markLeft() {
	if f != nil {
		f.once.Do(func() { close(f.left) })
	}
}
