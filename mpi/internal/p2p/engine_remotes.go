package p2p

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
	// FirstRemoteHandle is the handle of the first remote process. The handles of the
	// own job are its ranks, which are less.
	FirstRemoteHandle = 1 << 16
	// MaxRemotes bounds the processes of other jobs that a rank is connected to at a time.
	MaxRemotes = 1 << 14
	// remoteWindowShare is the divisor of the memory for unexpected messages that gives
	// the part of one remote process: how many there will be is not known beforehand.
	remoteWindowShare = 64
)

// RemoteProcess is the extra state of a peer that belongs to another job.
type RemoteProcess struct {
	LinkID       uint64        // identifies the link, equal at both ends
	Addr         string        // of its transport
	LauncherName string        // see World.LauncherName
	Left         chan struct{} // closed when the process has finalized or failed
	once         sync.Once     // closes left

	// Guarded by RemoteProcesses.mu.
	Refs          int  // reference count: communicators that it is a member of, and link setups
	Linked        bool // there is a link
	Disconnecting bool // Disconnect is closing the link
	retired       bool // not found by name any more: the link is being closed, or has ended
}

// RemoteProcesses is the table of remote processes. Handles are not reused, so a Group that
// outlives its processes never names another one.
type RemoteProcesses struct {
	Mu       sync.Mutex
	next     int32
	ByHandle map[int32]*Peer
	byName   map[ProcName]*Peer // processes with a usable link
	past     PeerCounters       // sum over reaped processes
}

// Peer returns the peer with a handle. For a process that is no longer connected it returns a
// failed peer.
func (e *Engine) Peer(h int32) *Peer {
	if h < FirstRemoteHandle {
		return e.Peers[h]
	}
	e.Remotes.Mu.Lock()
	defer e.Remotes.Mu.Unlock()
	if p := e.Remotes.ByHandle[h]; p != nil {
		return p
	}
	p := &Peer{Engine: e, Rank: -1, ProcHandle: h, Link: NoLink{}, Remote: &RemoteProcess{retired: true}}
	err := p.Lost(ErrDisconnected)
	p.Failed.Store(&err)
	return p
}

// ErrDisconnected is why nothing can be sent to a process after Disconnect.
var ErrDisconnected = errors.New("mpi: disconnected")

// NoLink is the link to a process that is no longer connected.
type NoLink struct{}

func (NoLink) Send(uint16, []byte, []byte, transport.Owner) error { return ErrDisconnected }
func (NoLink) Flush()                                             {}
func (NoLink) CopyLimit(bool) int                                 { return 0 }
func (NoLink) Shutdown(context.Context) error                     { return nil }
func (NoLink) Abort(string)                                       {}

// AllPeers returns the peers of this job and the remote processes that have a link.
func (e *Engine) AllPeers() []*Peer {
	e.Remotes.Mu.Lock()
	defer e.Remotes.Mu.Unlock()
	if len(e.Remotes.ByHandle) == 0 {
		return e.Peers
	}
	out := slices.Clone(e.Peers)
	for _, p := range e.Remotes.ByHandle {
		if p.Remote.Linked {
			out = append(out, p)
		}
	}
	return out
}

// RemoteCount returns the number of remote processes.
func (e *Engine) RemoteCount() int {
	e.Remotes.Mu.Lock()
	defer e.Remotes.Mu.Unlock()
	return len(e.Remotes.ByHandle)
}

// remoteHandle returns the handle of the remote process with a name.
func (e *Engine) remoteHandle(n ProcName) (int32, bool) {
	e.Remotes.Mu.Lock()
	defer e.Remotes.Mu.Unlock()
	if p := e.Remotes.byName[n]; p != nil {
		return p.ProcHandle, true
	}
	return 0, false
}

// RemoteWindow returns how many bytes of eager messages this rank accepts from a remote process.
func (e *Engine) RemoteWindow() int64 {
	n := e.Window * int64(len(e.Peers)) / remoteWindowShare
	if n = min(n, e.Window); n <= cost(0) {
		return 0
	}
	return n
}

// RetainNamed returns the remote process with a name and retains it, or returns nil if there is no
// link to it.
func (e *Engine) RetainNamed(n ProcName) *Peer {
	e.Remotes.Mu.Lock()
	defer e.Remotes.Mu.Unlock()
	p := e.Remotes.byName[n]
	if p != nil {
		p.Remote.Refs++
	}
	return p
}

// RemoteInfo is what the engine is told about a remote process.
type RemoteInfo struct {
	Addr         string // of its transport
	LauncherName string // see RemoteProcess
	Window       int64  // bytes of unmatched eager messages that may be sent to it
	Site         string // where it is: see Peer
	Distant      bool   // see Peer
}

// AddRemote makes the peer for a remote process. The caller calls AbandonRemote or release.
func (e *Engine) AddRemote(n ProcName, m RemoteInfo, link uint64) (*Peer, error) {
	e.Remotes.Mu.Lock()
	defer e.Remotes.Mu.Unlock()
	if len(e.Remotes.ByHandle) >= MaxRemotes || e.Remotes.next > 1<<30 {
		return nil, fmt.Errorf("%w: more than %d processes of other jobs", mpierr.ErrLimit, MaxRemotes)
	}
	if e.Remotes.ByHandle == nil {
		e.Remotes.ByHandle, e.Remotes.byName = make(map[int32]*Peer), make(map[ProcName]*Peer)
	}
	p := e.newPeer(FirstRemoteHandle+e.Remotes.next, n, e.RemoteWindow())
	e.Remotes.next++
	p.Remote = &RemoteProcess{LinkID: link, Addr: m.Addr, LauncherName: m.LauncherName, Refs: 1, Left: make(chan struct{})}
	p.Site, p.Distant = m.Site, m.Distant
	p.Credit.Store(max(min(m.Window, MaxCredit), 0))
	e.Remotes.ByHandle[p.ProcHandle] = p
	if n := int32(len(e.Peers) + len(e.Remotes.ByHandle)); n > e.sources.Load() {
		e.sources.Store(n)
	}
	return p, nil
}

// LinkRemote gives p its link.
func (e *Engine) LinkRemote(p *Peer, l transport.Link) {
	e.Remotes.Mu.Lock()
	defer e.Remotes.Mu.Unlock()
	p.Link = l
	p.Coalesces = e.CanCoalesce()
	p.Remote.Linked = true
}

// AbandonRemote releases a peer of a link setup. If no communicator retains it, because the setup
// has failed, its link is aborted.
func (e *Engine) AbandonRemote(p *Peer, why string) {
	e.Remotes.Mu.Lock()
	p.Remote.Refs--
	unused := p.Remote.Refs == 0
	cut := unused && p.Remote.Linked && p.Failure() == nil
	gone := false
	if unused && !p.Remote.Linked {
		delete(e.Remotes.ByHandle, p.ProcHandle) // it had no traffic to count
	} else {
		gone = e.reapRemote(p)
	}
	if cut {
		e.RetireRemote(p)
	}
	e.Remotes.Mu.Unlock()
	if gone {
		e.addPastStats(p)
	}
	if cut {
		p.Link.Abort(why)
	}
}

// PublishRemote enters p, which has a link now, under its name.
func (e *Engine) PublishRemote(p *Peer) {
	e.Remotes.Mu.Lock()
	defer e.Remotes.Mu.Unlock()
	if p.Failure() == nil && !p.Remote.retired {
		e.Remotes.byName[p.name] = p
	}
}

// retain adds the reference of a communicator with these members.
func (e *Engine) retain(peers []*Peer) {
	e.Remotes.Mu.Lock()
	defer e.Remotes.Mu.Unlock()
	for _, p := range peers {
		if p.Remote != nil {
			p.Remote.Refs++
		}
	}
}

// Release is the opposite of retain. It reaps remote processes that have failed.
func (e *Engine) Release(peers []*Peer) {
	for _, p := range peers {
		if p.Remote == nil {
			continue
		}
		e.Remotes.Mu.Lock()
		p.Remote.Refs--
		gone := e.reapRemote(p)
		e.Remotes.Mu.Unlock()
		if gone {
			e.addPastStats(p)
		}
	}
}

// reapRemote removes p from the table if it has failed and no communicator retains it, and reports
// whether it did: then the caller calls addPastStats. remotes.mu is held.
func (e *Engine) reapRemote(p *Peer) bool {
	if p.Failure() == nil {
		return false
	}
	e.RetireRemote(p)
	if p.Remote.Refs > 0 || e.Remotes.ByHandle[p.ProcHandle] != p {
		return false
	}
	delete(e.Remotes.ByHandle, p.ProcHandle)
	return true
}

// addPastStats adds the traffic of p, which was reaped, to that of earlier ones. It locks
// remotes.mu.
func (e *Engine) addPastStats(p *Peer) {
	c := p.Counters()
	c.Announced, c.Credit, c.Held = 0, 0, 0
	e.Remotes.Mu.Lock()
	defer e.Remotes.Mu.Unlock()
	e.Remotes.past.add(&c)
}

// RetireRemote removes the name of p: the process may connect again, with another link.
// remotes.mu is held.
func (e *Engine) RetireRemote(p *Peer) {
	p.Remote.retired = true
	if e.Remotes.byName[p.name] == p {
		delete(e.Remotes.byName, p.name)
	}
}

// RemoteDown is called when a peer has failed: it reaps a remote process.
func (e *Engine) RemoteDown(p *Peer) {
	if p.Remote == nil {
		return
	}
	e.Remotes.Mu.Lock()
	gone := e.reapRemote(p)
	e.Remotes.Mu.Unlock()
	if gone {
		e.addPastStats(p)
	}
}

// markLeft records that the process has finalized or failed.
func (f *RemoteProcess) markLeft() {
	if f != nil {
		f.once.Do(func() { close(f.Left) })
	}
}
