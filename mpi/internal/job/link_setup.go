package job

import (
	"context"
	"fmt"
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

// linkSetupTimeout bounds a link setup, counted from the first exchange.
const linkSetupTimeout = time.Minute

// errLinkSetupTimeout is the error of a link setup that takes longer than linkSetupTimeout.
var errLinkSetupTimeout = fmt.Errorf("mpi: no connection to all processes within %v", linkSetupTimeout)

// linkSetup is the part of one process in making the links between two groups.
type linkSetup struct {
	job      *Job
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
func (j *Job) linkSetup(id uint64) *linkSetup {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.setups[id]
}

// setupParams returns the parameters of the link setup with an id, if there is one.
func (j *Job) setupParams(id uint64) (handshake.Params, bool) {
	m := j.linkSetup(id)
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
	m.job.Engine.LinkRemote(p, l)
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

// prepareLinks prepares the links to the other group. group holds the members of the other group
// that have a peer: those of this job, and those with a link already, which links lists. me is the rank in the own group.
// The caller ends m, also after an error.
func (j *Job) prepareLinks(me int, mine, theirs *dynamic.GroupMessage, accepts bool) (m *linkSetup, group []*p2p.Peer, links [][2]uint64, err error) {
	e := j.Engine
	na, nc := len(mine.Reports), len(theirs.Reports)
	m = &linkSetup{job: j, id: mine.Head.ID, key: mine.Head.Key, self: me, size: na + nc, need: -1, done: make(chan struct{})}
	first := na
	if !accepts {
		first, m.self = 0, nc+me
	}
	m.peers, m.claimed = make([]*p2p.Peer, m.size), make([]bool, m.size)
	group = make([]*p2p.Peer, nc)
	names := make(map[p2p.ProcName]bool, na)
	for i := range mine.Reports {
		names[nameOf(mine.Reports[i].Member)] = true
	}
	if m.id == 0 || len(m.key) == 0 {
		return m, group, nil, fmt.Errorf("%w: link setup without a key", mpierr.ErrProtocol)
	}
	for i := range theirs.Reports {
		m.others = append(m.others, first+i)
		o := theirs.Reports[i].Member
		if err := CheckSite(o.Site); err != nil {
			return m, group, nil, err
		}
		name := nameOf(o)
		if names[name] {
			return m, group, nil, fmt.Errorf("%w: groups with common members", mpierr.ErrRank)
		}
		if name.Job == e.Job {
			if int64(name.Rank) >= int64(len(e.Peers)) {
				return m, group, nil, fmt.Errorf("%w: rank %d", mpierr.ErrProtocol, name.Rank)
			}
			group[i] = e.Peers[name.Rank]
			continue
		}
		numbers := []int{m.self, first + i}
		slices.Sort(numbers)
		link := hashid.Of("link", string(m.key), fmt.Sprint(numbers))
		_, far := j.distant(o.Addr)
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
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.setups == nil {
		j.setups = make(map[uint64]*linkSetup)
	}
	if j.setups[m.id] != nil {
		return m, group, links, fmt.Errorf("%w: both groups have a member in this process", mpierr.ErrRank)
	}
	j.setups[m.id] = m
	return m, group, links, nil
}

func nameOf(m *dynamic.ProcessInfo) p2p.ProcName { return p2p.ProcName{Job: m.Job, Rank: m.Rank} }

// end ends the setup, and aborts links that no communicator uses.
func (m *linkSetup) end() {
	m.job.mu.Lock()
	if m.job.setups[m.id] == m {
		delete(m.job.setups, m.id)
	}
	m.job.mu.Unlock()
	m.note(func() {
		if m.err == nil {
			m.err = transport.ErrClosed
		}
	})
	e := m.job.Engine
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
					m.err = fmt.Errorf("%w: one more link to rank %d of another job", mpierr.ErrProtocol, p.Rank)
				}
			})
			m.job.Engine.AbandonRemote(p, "not needed")
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
				if err := m.job.Transport.connectRemote(ctx, m, number); err != nil {
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
	case <-m.job.Engine.Over:
		return m.job.Usable()
	}
}
