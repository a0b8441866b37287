package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// This file keeps the processes of other jobs that a rank is connected to, by
// Comm.Accept, Comm.Connect, Comm.Spawn or Join (MPI-4.1, Chapter 11). Between
// any two processes there is one link, however many communicators they share.

const (
	// firstFar is the handle of the first process of another job. Those of the
	// own job are ranks, which are less.
	firstFar = MaxRanks
	// MaxConnected bounds the processes of other jobs that a rank is connected
	// to at a time.
	MaxConnected = 1 << 14
	// farShare is the part of the memory for unexpected messages that a process
	// of another job may use: nobody knows beforehand how many there will be.
	farShare = 64
)

// farPeer is what a peer of another job has besides.
type farPeer struct {
	link uint64        // names the link, at both ends
	addr string        // of its transport
	call string        // what its launcher calls it, see World.launcherName
	left chan struct{} // closed when it has finalized or is gone
	once sync.Once     // closes left

	// Guarded by farPeers.mu.
	refs   int  // communicators it is a member of, and meetings
	linked bool // there is a link
	parted bool // Disconnect ends the link
	closed bool // nobody is to use it: Disconnect ends the link, or it has ended
}

// farPeers are the processes of other jobs. Handles are not used again, so that
// a Group of the past never names somebody else.
type farPeers struct {
	mu       sync.Mutex
	next     int32
	byHandle map[int32]*peer
	byName   map[procName]*peer // those that can be used
	past     PeerStats          // of those that were forgotten
}

// peer returns the peer with a handle. A process that is connected no longer is
// one that has failed.
func (e *engine) peer(h int32) *peer {
	if h < firstFar {
		return e.peers[h]
	}
	e.far.mu.Lock()
	defer e.far.mu.Unlock()
	if p := e.far.byHandle[h]; p != nil {
		return p
	}
	p := &peer{e: e, rank: -1, handle: h, link: noLink{}, far: &farPeer{closed: true}}
	p.failed.Store(p.lost(errDisconnected))
	return p
}

// errDisconnected is why nothing can be sent to a process after Disconnect.
var errDisconnected = errors.New("mpi: disconnected")

// noLink is the link to a process that is connected no longer.
type noLink struct{}

func (noLink) send(uint16, []byte, []byte, owner) error { return errDisconnected }
func (noLink) flush()                                   {}
func (noLink) copyLimit(bool) int                       { return 0 }
func (noLink) shutdown(context.Context) error           { return nil }
func (noLink) abort(string)                             {}

// all returns the peers of this job and of others.
func (e *engine) all() []*peer {
	e.far.mu.Lock()
	defer e.far.mu.Unlock()
	if len(e.far.byHandle) == 0 {
		return e.peers
	}
	out := slices.Clone(e.peers)
	for _, p := range e.far.byHandle {
		if p.far.linked {
			out = append(out, p)
		}
	}
	return out
}

// farCount returns the number of processes of other jobs.
func (e *engine) farCount() int {
	e.far.mu.Lock()
	defer e.far.mu.Unlock()
	return len(e.far.byHandle)
}

// farHandle returns the handle of a process of another job.
func (e *engine) farHandle(n procName) (int32, bool) {
	e.far.mu.Lock()
	defer e.far.mu.Unlock()
	if p := e.far.byName[n]; p != nil {
		return p.handle, true
	}
	return 0, false
}

// farWindow is how many bytes of eager messages a process of another job may
// have with us.
func (e *engine) farWindow() int64 {
	n := e.window * int64(len(e.peers)) / farShare
	if n = min(n, e.window); n <= cost(0) {
		return 0
	}
	return n
}

// borrow returns the process with a name, if there is a link to it, and keeps
// that from being closed until release.
func (e *engine) borrow(n procName) *peer {
	e.far.mu.Lock()
	defer e.far.mu.Unlock()
	p := e.far.byName[n]
	if p != nil {
		p.far.refs++
	}
	return p
}

// addFar makes a peer for a process of another job, for the caller to release.
func (e *engine) addFar(n procName, m *member, link uint64) (*peer, error) {
	e.far.mu.Lock()
	defer e.far.mu.Unlock()
	if len(e.far.byHandle) >= MaxConnected || e.far.next > 1<<30 {
		return nil, fmt.Errorf("%w: more than %d processes of other jobs", ErrLimit, MaxConnected)
	}
	if e.far.byHandle == nil {
		e.far.byHandle, e.far.byName = make(map[int32]*peer), make(map[procName]*peer)
	}
	p := e.newPeer(firstFar+e.far.next, n, e.farWindow())
	e.far.next++
	p.far = &farPeer{link: link, addr: m.Addr, call: m.Call, refs: 1, left: make(chan struct{})}
	p.credit.Store(max(min(m.Window, maxCredit), 0))
	e.far.byHandle[p.handle] = p
	if n := int32(len(e.peers) + len(e.far.byHandle)); n > e.sources.Load() {
		e.sources.Store(n)
	}
	return p, nil
}

// linkFar gives p its link.
func (e *engine) linkFar(p *peer, l link) {
	e.far.mu.Lock()
	defer e.far.mu.Unlock()
	p.link = l
	p.bursts = canBurst()
	p.far.linked = true
}

// dropFar is release for a peer of a meeting. If that came to nothing, the link
// is cut.
func (e *engine) dropFar(p *peer, why string) {
	e.far.mu.Lock()
	p.far.refs--
	unused := p.far.refs == 0
	cut := unused && p.far.linked && p.failure() == nil
	gone := false
	if unused && !p.far.linked {
		delete(e.far.byHandle, p.handle) // it has counted nothing
	} else {
		gone = e.forgetFar(p)
	}
	if cut {
		e.closeFar(p)
	}
	e.far.mu.Unlock()
	if gone {
		e.bury(p)
	}
	if cut {
		p.link.abort(why)
	}
}

// nameFar lets others find p, which has a link now.
func (e *engine) nameFar(p *peer) {
	e.far.mu.Lock()
	defer e.far.mu.Unlock()
	if p.failure() == nil && !p.far.closed {
		e.far.byName[p.name] = p
	}
}

// hold notes that a communicator has these members.
func (e *engine) hold(peers []*peer) {
	e.far.mu.Lock()
	defer e.far.mu.Unlock()
	for _, p := range peers {
		if p.far != nil {
			p.far.refs++
		}
	}
}

// release is the opposite of hold. Processes that are gone are forgotten.
func (e *engine) release(peers []*peer) {
	for _, p := range peers {
		if p.far == nil {
			continue
		}
		e.far.mu.Lock()
		p.far.refs--
		gone := e.forgetFar(p)
		e.far.mu.Unlock()
		if gone {
			e.bury(p)
		}
	}
}

// forgetFar drops p if it is gone and in no communicator. far.mu is held. It
// reports whether p is dropped: then it is to be buried.
func (e *engine) forgetFar(p *peer) bool {
	if p.failure() == nil {
		return false
	}
	e.closeFar(p)
	if p.far.refs > 0 || e.far.byHandle[p.handle] != p {
		return false
	}
	delete(e.far.byHandle, p.handle)
	return true
}

// bury keeps what p has counted. far.mu is not held.
func (e *engine) bury(p *peer) {
	s := p.stats()
	s.Announced, s.Credit, s.Held = 0, 0, 0
	e.far.mu.Lock()
	defer e.far.mu.Unlock()
	e.far.past.sum(s)
}

// closeFar lets nobody find p any more; the process may come back, with another
// link. far.mu is held.
func (e *engine) closeFar(p *peer) {
	p.far.closed = true
	if e.far.byName[p.name] == p {
		delete(e.far.byName, p.name)
	}
}

// farDown is called when a peer is gone.
func (e *engine) farDown(p *peer) {
	if p.far == nil {
		return
	}
	e.far.mu.Lock()
	gone := e.forgetFar(p)
	e.far.mu.Unlock()
	if gone {
		e.bury(p)
	}
}

// leave notes that the process has finalized or is gone.
func (f *farPeer) leave() {
	if f != nil {
		f.once.Do(func() { close(f.left) })
	}
}

// awaitFar says goodbye to the processes of other jobs that are still connected,
// and waits for theirs: Finalize is collective over all that are (MPI-4.1,
// Section 11.2.2).
func (w *World) awaitFar(ctx context.Context) {
	var wait []*peer
	w.eng.far.mu.Lock()
	for _, p := range w.eng.far.byHandle {
		if p.far.linked && !p.far.parted {
			wait = append(wait, p)
		}
	}
	w.eng.far.mu.Unlock()
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
		case <-p.far.left:
		case <-ctx.Done():
			return
		}
	}
}

// part closes the links to the processes in peers that no communicator has as
// members, and waits until everything sent has arrived.
func (w *World) part(ctx context.Context, peers []*peer) {
	e := w.eng
	var wg sync.WaitGroup
	for _, p := range peers {
		e.far.mu.Lock()
		mine := p.far != nil && p.far.refs == 0 && p.far.linked && !p.far.parted
		if mine {
			p.far.parted = true
			e.closeFar(p)
		}
		e.far.mu.Unlock()
		if !mine {
			continue
		}
		wg.Go(func() {
			p.goodbye()
			if d := w.rma.open.Load(); d != nil {
				d.rankDown(int(p.handle), p.lost(errDisconnected))
			}
			if err := p.link.shutdown(ctx); err != nil {
				p.link.abort("disconnected")
			}
		})
	}
	wg.Wait()
}

// launcherName is what a launcher calls this process when it tells of deaths;
// empty without one that does.
func (w *World) launcherName() string {
	if b, ok := w.boot.(interface{ ProcessName() string }); ok {
		return b.ProcessName()
	}
	return ""
}
