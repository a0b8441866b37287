package mpi

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/handshake"
	"github.com/weftstack/weft/mpi/internal/hashid"
	"github.com/weftstack/weft/mpi/internal/mpierr"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// Intercommunicator handshake: makes an intercommunicator of two groups that share only a
// connection between one process of each, their roots (MPI-4.1, Section 11.8.1). It takes
// three exchanges, each of which gives every process the messages of all: who they are,
// which of them have a link already, and whether the missing links were made. So the
// handshake succeeds or fails on all processes alike.

// linkSetupTimeout bounds a link setup, counted from the first exchange.
const linkSetupTimeout = time.Minute

// errLinkSetupTimeout is the error of a link setup that takes longer than linkSetupTimeout.
var errLinkSetupTimeout = fmt.Errorf("mpi: no connection to all processes within %v", linkSetupTimeout)

// linkSetup is the part of one process in making the links between two groups.
type linkSetup struct {
	w        *World
	id       uint64
	key      []byte
	self     int         // number of this process in both groups: the accepting group comes first
	size     int         // processes on both sides
	peers    []*p2p.Peer // by number: processes to which this one may get a link
	others   []int       // numbers of the other group
	retained []*p2p.Peer // peers with a link already; released by end

	mu      sync.Mutex
	claimed []bool // by number: there is a link
	need    int    // number of links to be made; -1: not known yet
	up      int    // links that are up
	err     error
	done    chan struct{} // closed when all links are up, or one has failed
	closed  bool
}

// linkSetup returns the link setup with an id, or nil.
func (w *World) linkSetup(id uint64) *linkSetup {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.linkSetups[id]
}

// setupParams returns the parameters of the link setup with an id, if there is one.
func (w *World) setupParams(id uint64) (handshake.Params, bool) {
	m := w.linkSetup(id)
	if m == nil {
		return handshake.Params{}, false
	}
	return m.params(), true
}

// connector returns the connecting side of the handshake with a process, and its hello.
func (m *linkSetup) connector(number int) (*handshake.Exchange, []byte) {
	return handshake.Connect(m.params(), number)
}

// params returns the parameters of the handshakes.
func (m *linkSetup) params() handshake.Params {
	return handshake.Params{Setup: m.id, Key: m.key, Self: m.self, Size: m.size}
}

// claim makes l the link to a process, and returns its peer. It returns nil if the process is not
// to have a link, or has one.
func (m *linkSetup) claim(number int, l transport.Link) *p2p.Peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[number]
	if p == nil || m.claimed[number] || m.err != nil {
		return nil
	}
	m.claimed[number] = true
	m.w.eng.LinkRemote(p, l)
	return p
}

// linked records that a link is up, or has failed with err.
func (m *linkSetup) linked(number int, err error) {
	m.note(func() {
		switch p := m.peers[number]; {
		case err == nil:
			m.up++
		case m.err == nil && p != nil:
			m.err = fmt.Errorf("mpi: connecting to rank %d of another job: %w", p.Rank, err)
		}
	})
}

// note changes the state and closes done if that completes the setup.
func (m *linkSetup) note(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	if !m.closed && (m.err != nil || m.need >= 0 && m.up >= m.need) {
		m.closed = true
		close(m.done)
	}
}

// connectGroups makes an intercommunicator of c and the group at the other end of the connection
// that open makes. It calls open at the root only.
func (c *Comm) connectGroups(ctx context.Context, root int, accepts bool, open func(context.Context) (*dynamic.RootConn, error)) (d *Comm, err error) {
	defer func() { c.w.recordConnected(d, err) }()
	if err := c.comm.Usable(); err != nil {
		return nil, err
	}
	if c.remote != nil {
		return nil, fmt.Errorf("%w: connecting an intercommunicator", ErrComm)
	}
	if err := c.comm.CheckPeer(p2p.SlotComm, root); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRoot, err)
	}
	e := c.w.eng
	var lerr error
	if accepts {
		lerr = c.w.transport.listen()
	}
	x := &dynamic.Exchange{Comm: exchangeComm{c}, Root: root, Limit: MaxConnected}
	own := dynamic.GroupMessage{Head: &dynamic.GroupHeader{Transport: c.w.opts.transport, Streams: c.w.opts.streams}}
	if c.comm.Rank == root {
		var err error
		if x.Conn, err = open(ctx); err != nil {
			own.Err = mpierr.MakePortable(err)
			x.Cause = err
		}
		defer x.Conn.Close()
		if accepts {
			var id [8]byte
			_, _ = rand.Read(id[:]) // never fails
			own.Head.ID, own.Head.Key = binary.BigEndian.Uint64(id[:])|1, []byte(newJobKey())
		}
	}
	me := &dynamic.ProcessInfo{Job: e.Job, Rank: uint32(e.Rank), Addr: c.w.transport.addr(), Window: e.RemoteWindow(), Call: c.w.launcherName(), Site: c.w.Site()}
	mine, theirs, err := x.Allgather(ctx, own, dynamic.ProcessMessage{Member: me, Err: mpierr.MakePortable(lerr)})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, linkSetupTimeout, errLinkSetupTimeout)
	defer cancel()
	if !accepts {
		mine.Head.ID, mine.Head.Key = theirs.Head.ID, theirs.Head.Key
	}
	m, group, links, err := c.prepareLinks(mine, theirs, accepts)
	defer m.end()
	mine, theirs, cerr := x.Allgather(ctx, dynamic.GroupMessage{}, dynamic.ProcessMessage{Links: links, Err: mpierr.MakePortable(err)})
	if cerr != nil {
		return nil, cerr
	}
	err = m.link(ctx, c.comm.Rank, mine, theirs, group, accepts)
	if _, _, cerr = x.Allgather(ctx, dynamic.GroupMessage{}, dynamic.ProcessMessage{Err: mpierr.MakePortable(err)}); cerr != nil {
		return nil, cerr
	}
	side := 0
	if !accepts {
		side = 1
	}
	id := hashid.Of("meeting", hex.EncodeToString(m.key)) &^ uint64(p2p.SlotMask)
	remote := make([]int32, len(group))
	for i, p := range group {
		remote[i] = p.ProcHandle
		if p.Remote != nil {
			e.PublishRemote(p)
		}
	}
	return c.child(c.w.newIntercomm(id, c.group, c.comm.Rank, remote, side, c.Info())), nil
}

// prepareLinks prepares the links to the other group. group holds the members of the other group
// that have a peer: those of this job, and those with a link already, which links lists. The caller
// ends m, also after an error.
func (c *Comm) prepareLinks(mine, theirs *dynamic.GroupMessage, accepts bool) (m *linkSetup, group []*p2p.Peer, links [][2]uint64, err error) {
	e := c.w.eng
	na, nc := len(mine.Reports), len(theirs.Reports)
	m = &linkSetup{w: c.w, id: mine.Head.ID, key: mine.Head.Key, self: c.comm.Rank, size: na + nc, need: -1, done: make(chan struct{})}
	first := na
	if !accepts {
		first, m.self = 0, nc+c.comm.Rank
	}
	m.peers, m.claimed = make([]*p2p.Peer, m.size), make([]bool, m.size)
	group = make([]*p2p.Peer, nc)
	names := make(map[p2p.ProcName]bool, na)
	for i := range mine.Reports {
		names[nameOf(mine.Reports[i].Member)] = true
	}
	if m.id == 0 || len(m.key) == 0 {
		return m, group, nil, fmt.Errorf("%w: link setup without a key", ErrProtocol)
	}
	for i := range theirs.Reports {
		m.others = append(m.others, first+i)
		o := theirs.Reports[i].Member
		if err := checkSite(o.Site); err != nil {
			return m, group, nil, err
		}
		name := nameOf(o)
		if names[name] {
			return m, group, nil, fmt.Errorf("%w: groups with common members", ErrRank)
		}
		if name.Job == e.Job {
			if int64(name.Rank) >= int64(len(e.Peers)) {
				return m, group, nil, fmt.Errorf("%w: rank %d", ErrProtocol, name.Rank)
			}
			group[i] = e.Peers[name.Rank]
			continue
		}
		numbers := []int{m.self, first + i}
		slices.Sort(numbers)
		link := hashid.Of("link", string(m.key), fmt.Sprint(numbers))
		_, far := c.w.distant(o.Addr)
		p, err := e.AddRemote(name, p2p.RemoteInfo{Addr: o.Addr, LauncherName: o.Call, Window: o.Window, Site: o.Site, Distant: far}, link)
		if err != nil {
			return m, group, nil, err
		}
		m.peers[first+i] = p
		if old := e.RetainNamed(name); old != nil {
			group[i] = old
			m.retained = append(m.retained, old)
			links = append(links, [2]uint64{uint64(i), old.Remote.LinkID})
		}
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.w.linkSetups == nil {
		c.w.linkSetups = make(map[uint64]*linkSetup)
	}
	if c.w.linkSetups[m.id] != nil {
		return m, group, links, fmt.Errorf("%w: both groups have a member in this process", ErrRank)
	}
	c.w.linkSetups[m.id] = m
	return m, group, links, nil
}

func nameOf(m *dynamic.ProcessInfo) p2p.ProcName { return p2p.ProcName{Job: m.Job, Rank: m.Rank} }

// end ends the setup, and aborts links that no communicator uses.
func (m *linkSetup) end() {
	m.w.mu.Lock()
	if m.w.linkSetups[m.id] == m {
		delete(m.w.linkSetups, m.id)
	}
	m.w.mu.Unlock()
	m.note(func() {
		if m.err == nil {
			m.err = transport.ErrClosed
		}
	})
	e := m.w.eng
	for _, p := range m.peers {
		if p != nil {
			e.AbandonRemote(p, "not connected")
		}
	}
	e.Release(m.retained)
}

// peer returns the peer for a number, or nil.
func (m *linkSetup) peer(number int) *p2p.Peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peers[number]
}

// link makes the missing links and waits until they are up. The connecting side dials. It completes
// group.
func (m *linkSetup) link(ctx context.Context, me int, mine, theirs *dynamic.GroupMessage, group []*p2p.Peer, accepts bool) error {
	common := make(map[uint64]bool) // ids of links that both ends list
	for _, l := range mine.Reports[me].Links {
		for _, o := range theirs.Reports[l[0]].Links {
			if o[0] == uint64(me) && o[1] == l[1] {
				common[l[1]] = true
			}
		}
	}
	var missing []int
	for i, number := range m.others {
		p := m.peer(number)
		switch {
		case p == nil: // a rank of this job
		case group[i] != nil && common[group[i].Remote.LinkID]:
			m.note(func() {
				m.peers[number] = nil
				if m.claimed[number] {
					m.err = fmt.Errorf("%w: one more link to rank %d of another job", ErrProtocol, p.Rank)
				}
			})
			m.w.eng.AbandonRemote(p, "not needed")
		default:
			group[i] = p
			missing = append(missing, number)
		}
	}
	m.note(func() { m.need = len(missing) })
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !accepts {
		gate := make(chan struct{}, dialsAtOnce)
		for _, number := range missing {
			wg.Go(func() {
				gate <- struct{}{}
				defer func() { <-gate }()
				if err := m.w.transport.connectRemote(ctx, m, number); err != nil {
					m.linked(number, err)
				}
			})
		}
	}
	select {
	case <-m.done:
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.w.eng.Over:
		return m.w.usable()
	}
}

// recordConnected logs the outcome of an intercommunicator handshake.
func (w *World) recordConnected(c *Comm, err error) {
	if err != nil {
		w.record(slog.LevelWarn, "connecting to a group failed", cause(err))
		return
	}
	w.record(slog.LevelInfo, "group connected", slog.Int("processes", c.RemoteSize()))
}
