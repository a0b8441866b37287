package mpi

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// This file makes an intercommunicator of two groups that need have nothing in
// common but a connection between one process of each, their roots (MPI-4.1,
// Section 11.8.1). They confer in three rounds, in each of which every
// process learns what every other one says: who they are, which of them have
// links already, and whether the missing links could be made. So all succeed or
// fail alike.

const (
	// meetLimit bounds a meeting from when the roots are connected.
	meetLimit = time.Minute
	// maxReport bounds what one process says in a round, in bytes.
	maxReport = 64 << 10
	// maxRound bounds what one group says in a round.
	maxRound = 64 << 20
)

// errMeetLimit ends a meeting that takes too long.
var errMeetLimit = fmt.Errorf("mpi: no connection to all processes within %v", meetLimit)

// member is what a process says about itself.
type member struct {
	Job    uint64 // see procName
	Rank   uint32
	Addr   string // for the fabric
	Window int64  // bytes of eager messages it takes
	Call   string // see World.launcherName
}

func (m *member) name() procName { return procName{m.Job, m.Rank} }

// report is what a process says in one round.
type report struct {
	Member *member     `json:",omitempty"`
	Links  [][2]uint64 `json:",omitempty"` // present ones: place in the other group, and name
	Err    *failure    `json:",omitempty"`
}

// round is what a group says in one round.
type round struct {
	Head    *head    `json:",omitempty"` // in the first
	Reports []report `json:",omitempty"`
	Err     *failure `json:",omitempty"` // instead
}

// head is what is the same for all members of a group.
type head struct {
	Transport string
	Streams   int
	ID        uint64 // of the meeting; from the side that accepts
	Key       []byte
}

// failure is an error that is told to other processes.
type failure struct {
	Class Class
	Text  string
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &failure{ErrorClass(err), text[:min(len(text), maxReport/8)]}
}

// err returns an error with the sentinel of the class.
func (f *failure) err() error {
	if f == nil {
		return nil
	}
	for _, x := range classes {
		if x.class == f.Class {
			return &toldError{x.err, f.Text}
		}
	}
	return errors.New(f.Text)
}

// toldError is an error that another process has met.
type toldError struct {
	is   error
	text string
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.is }

// parley is the connection between the roots.
type parley struct {
	conn  net.Conn
	leave bool // the connection is the program's
}

func (p *parley) close() {
	if p != nil && !p.leave {
		_ = p.conn.Close()
	}
}

// swap exchanges one message with the other root.
func (p *parley) swap(ctx context.Context, b []byte) ([]byte, error) {
	// The deadline is undone when nobody can set it any more.
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		_ = p.conn.SetDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-over
			_ = p.conn.SetDeadline(time.Time{})
		}
	}()
	wrote := make(chan error, 1)
	go func() { wrote <- writeFrame(p.conn, b) }()
	other, err := readFrame(p.conn, maxRound)
	if err != nil {
		_ = p.conn.SetWriteDeadline(time.Unix(1, 0))
	}
	if e := <-wrote; err == nil {
		err = e
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return other, err
}

func writeFrame(w io.Writer, b []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func readFrame(r io.Reader, limit int) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(n[:])
	if int64(size) > int64(limit) {
		return nil, fmt.Errorf("%w: message of %d bytes", ErrProtocol, size)
	}
	// No more is allocated than comes.
	b, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err == nil && len(b) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// meeting is the part of one process in the making of links.
type meeting struct {
	w        *World
	id       uint64
	key      []byte
	self     int     // the caller's number: those that accept come first
	size     int     // processes on both sides
	peers    []*peer // by number: those that may get a link here
	others   []int   // numbers of the other group
	borrowed []*peer // of earlier meetings

	mu      sync.Mutex
	claimed []bool
	need    int // links to be made; -1: not known yet
	up      int
	err     error
	done    chan struct{} // closed when all links are up, or one cannot be
	closed  bool
}

// meeting returns the one with an id, or nil.
func (w *World) meeting(id uint64) *meeting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.meetings[id]
}

// connector begins the greeting of a process.
func (m *meeting) connector(number int) (*hello, []byte) {
	h, msg := newMeetingConnector(m.id, m.key, m.self, number, m.size)
	h.meeting = m
	return h, msg
}

// claim makes l the link to a process, if it is to have one and has none.
func (m *meeting) claim(number int, l link) *peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[number]
	if p == nil || m.claimed[number] || m.err != nil {
		return nil
	}
	m.claimed[number] = true
	m.w.eng.linkFar(p, l)
	return p
}

// linked notes that a link is up, or never will be.
func (m *meeting) linked(number int, err error) {
	if err != nil {
		err = fmt.Errorf("mpi: connecting to rank %d of another job: %w", m.peers[number].rank, err)
	}
	m.note(func() {
		if err == nil {
			m.up++
		} else if m.err == nil {
			m.err = err
		}
	})
}

// note changes the state and wakes up who waits for its end.
func (m *meeting) note(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	if !m.closed && (m.err != nil || m.need >= 0 && m.up >= m.need) {
		m.closed = true
		close(m.done)
	}
}

// meet makes an intercommunicator of c and the group that the connection made
// by open leads to. open is called at the root only.
func (c *Comm) meet(ctx context.Context, root int, accepts bool, open func(context.Context) (*parley, error)) (*Comm, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	if c.remote != nil {
		return nil, fmt.Errorf("%w: connecting an intercommunicator", ErrComm)
	}
	if err := c.checkPeer(root); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRoot, err)
	}
	e := c.w.eng
	if accepts {
		if err := c.w.fabric.listen(); err != nil {
			return nil, err
		}
	}
	x := &conference{c: c, root: root}
	own := round{Head: &head{Transport: c.w.opts.transport, Streams: c.w.opts.streams}}
	if c.rank == root {
		var err error
		if x.parley, err = open(ctx); err != nil {
			own.Err = failureOf(err)
			x.cause = err
		}
		defer x.parley.close()
		if accepts {
			var id [8]byte
			_, _ = rand.Read(id[:]) // never fails
			own.Head.ID, own.Head.Key = binary.BigEndian.Uint64(id[:])|1, []byte(newJobKey())
		}
	}
	me := &member{Job: e.job, Rank: uint32(e.rank), Addr: c.w.fabric.card(), Window: e.farWindow(), Call: c.w.launcherName()}
	mine, theirs, err := x.confer(ctx, own, report{Member: me})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, meetLimit, errMeetLimit)
	defer cancel()
	if !accepts {
		mine.Head.ID, mine.Head.Key = theirs.Head.ID, theirs.Head.Key
	}
	m, group, links, err := c.assemble(mine, theirs, accepts)
	defer m.end()
	mine, theirs, cerr := x.confer(ctx, round{}, report{Links: links, Err: failureOf(err)})
	if cerr != nil {
		return nil, cerr
	}
	err = m.link(ctx, c.rank, mine, theirs, group, accepts)
	if _, _, cerr = x.confer(ctx, round{}, report{Err: failureOf(err)}); cerr != nil {
		return nil, cerr
	}
	side := 0
	if !accepts {
		side = 1
	}
	id := hashOf("meeting", hex.EncodeToString(m.key)) &^ uint64(slotMask)
	remote := make([]int32, len(group))
	for i, p := range group {
		remote[i] = p.handle
		if p.far != nil {
			e.nameFar(p)
		}
	}
	return c.child(c.w.newIntercomm(id, c.group, c.rank, remote, side, c.Info())), nil
}

// conference is how a group talks to the other one.
type conference struct {
	c      *Comm
	root   int
	parley *parley // at the root
	cause  error   // why there is none
}

const (
	tagReport = 110 // to the root
	tagRound  = 111 // from the root
)

// confer gives all processes of both groups what all of them say. Only the
// root's own counts. It fails alike on all, if one of them says so or cannot be
// heard.
func (x *conference) confer(ctx context.Context, own round, say report) (mine, theirs *round, err error) {
	c := x.c
	b, err := json.Marshal(say)
	if err == nil && len(b) > maxReport {
		b, err = json.Marshal(report{Err: failureOf(fmt.Errorf("%w: too much to say for a process", ErrLimit))})
	}
	if err != nil {
		return nil, nil, err
	}
	var both [2]round
	if c.rank == x.root {
		both = x.collect(ctx, own, b)
	} else if err := c.send(ctx, slotComm, sendStandard, b, x.root, tagReport); err != nil {
		return nil, nil, err
	}
	if b, err = json.Marshal(both); err != nil {
		return nil, nil, err
	}
	if b, err = c.proclaim(ctx, x.root, b); err != nil {
		return nil, nil, err
	}
	if err = json.Unmarshal(b, &both); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	for i := range both {
		if err = both[i].Err.err(); err != nil && x.cause != nil {
			err = x.cause
		}
		for j := range both[i].Reports {
			if err == nil {
				err = both[i].Reports[j].Err.err()
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return &both[0], &both[1], both[1].check(&both[0])
}

// check finds out whether the other group says what can be.
func (r *round) check(mine *round) error {
	bad := len(r.Reports) == 0 || (r.Head == nil) != (mine.Head == nil)
	for i := range r.Reports {
		bad = bad || mine.Head != nil && r.Reports[i].Member == nil
	}
	switch {
	case bad:
		return fmt.Errorf("%w: the other group says nothing", ErrProtocol)
	case r.Head != nil && (r.Head.Transport != mine.Head.Transport || r.Head.Streams != mine.Head.Streams):
		return fmt.Errorf("%w: the other group uses %.20s with %d streams, this one %s with %d",
			ErrOption, r.Head.Transport, r.Head.Streams, mine.Head.Transport, mine.Head.Streams)
	case len(r.Reports) > MaxConnected:
		return fmt.Errorf("%w: %d processes", ErrLimit, len(r.Reports))
	}
	return nil
}

// collect is the root's part of confer. Whatever happens it tells the other one.
func (x *conference) collect(ctx context.Context, own round, b []byte) (both [2]round) {
	c := x.c
	own.Reports = make([]report, len(c.group))
	buf := make([]byte, maxReport)
	for r := range c.group {
		said, err := b, error(nil)
		if r != c.rank {
			var st Status
			st, err = c.recv(ctx, slotComm, buf, r, tagReport)
			said = buf[:st.Bytes]
		}
		if err == nil {
			err = json.Unmarshal(said, &own.Reports[r])
		}
		if err != nil && own.Err == nil {
			own.Err = failureOf(err)
		}
	}
	both[0] = own
	if own.Err != nil {
		both[0].Reports = nil
	}
	if x.parley == nil {
		return both
	}
	out, err := json.Marshal(both[0])
	if err == nil && len(out) > maxRound {
		err = fmt.Errorf("%w: too many processes", ErrLimit)
		both[0] = round{Err: failureOf(err)}
		out, _ = json.Marshal(both[0]) // has been done above
	}
	in, serr := x.parley.swap(ctx, out)
	if serr == nil {
		serr = json.Unmarshal(in, &both[1])
	}
	if serr != nil {
		both[1] = round{Err: failureOf(fmt.Errorf("%w: the other group: %w", ErrPort, serr))}
	}
	return both
}

// proclaim gives all ranks of c what the root says.
func (c *Comm) proclaim(ctx context.Context, root int, b []byte) ([]byte, error) {
	var size [8]byte
	if c.rank == root {
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		for r := range c.group {
			if r == root {
				continue
			}
			if err := c.send(ctx, slotComm, sendStandard, size[:], r, tagRound); err != nil {
				return nil, err
			}
			if err := c.send(ctx, slotComm, sendStandard, b, r, tagRound); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	if _, err := c.recv(ctx, slotComm, size[:], root, tagRound); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint64(size[:])
	if n > 4*maxRound {
		return nil, fmt.Errorf("%w: %d bytes from the root", ErrProtocol, n)
	}
	b = make([]byte, n)
	_, err := c.recv(ctx, slotComm, b, root, tagRound)
	return b, err
}

// assemble prepares for links to the other group. It returns its members: those
// of this job, and those with a link, which links lists. The meeting is to be
// ended also after an error.
func (c *Comm) assemble(mine, theirs *round, accepts bool) (m *meeting, group []*peer, links [][2]uint64, err error) {
	e := c.w.eng
	na, nc := len(mine.Reports), len(theirs.Reports)
	m = &meeting{w: c.w, id: mine.Head.ID, key: mine.Head.Key, self: c.rank, size: na + nc, need: -1, done: make(chan struct{})}
	first := na
	if !accepts {
		first, m.self = 0, nc+c.rank
	}
	m.peers, m.claimed = make([]*peer, m.size), make([]bool, m.size)
	group = make([]*peer, nc)
	names := make(map[procName]bool, na)
	for i := range mine.Reports {
		names[mine.Reports[i].Member.name()] = true
	}
	if m.id == 0 || len(m.key) == 0 {
		return m, group, nil, fmt.Errorf("%w: meeting without a key", ErrProtocol)
	}
	for i := range theirs.Reports {
		m.others = append(m.others, first+i)
		o := theirs.Reports[i].Member
		name := o.name()
		if names[name] {
			return m, group, nil, fmt.Errorf("%w: groups with common members", ErrRank)
		}
		if name.job == e.job {
			if int64(name.rank) >= int64(len(e.peers)) {
				return m, group, nil, fmt.Errorf("%w: rank %d", ErrProtocol, name.rank)
			}
			group[i] = e.peers[name.rank]
			continue
		}
		numbers := []int{m.self, first + i}
		slices.Sort(numbers)
		link := hashOf("link", string(m.key), fmt.Sprint(numbers))
		p, err := e.addFar(name, o, link)
		if err != nil {
			return m, group, nil, err
		}
		m.peers[first+i] = p
		if old := e.borrow(name); old != nil {
			group[i] = old
			m.borrowed = append(m.borrowed, old)
			links = append(links, [2]uint64{uint64(i), old.far.link})
		}
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.w.meetings == nil {
		c.w.meetings = make(map[uint64]*meeting)
	}
	if c.w.meetings[m.id] != nil {
		return m, group, links, fmt.Errorf("%w: both groups have a member in this process", ErrRank)
	}
	c.w.meetings[m.id] = m
	return m, group, links, nil
}

// end is the end of the meeting. Links that no communicator uses are cut.
func (m *meeting) end() {
	m.w.mu.Lock()
	if m.w.meetings[m.id] == m {
		delete(m.w.meetings, m.id)
	}
	m.w.mu.Unlock()
	m.note(func() {
		if m.err == nil {
			m.err = errLinkClosed
		}
	})
	e := m.w.eng
	for _, p := range m.peers {
		if p != nil {
			e.dropFar(p, "not connected")
		}
	}
	e.release(m.borrowed)
}

// peer returns the peer for a number, or nil.
func (m *meeting) peer(number int) *peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peers[number]
}

// link makes the missing links, those from the side that connects, and waits
// until they are up. It completes group.
func (m *meeting) link(ctx context.Context, me int, mine, theirs *round, group []*peer, accepts bool) error {
	common := make(map[uint64]bool) // links that both ends know
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
		case group[i] != nil && common[group[i].far.link]:
			m.mu.Lock()
			m.peers[number] = nil
			m.mu.Unlock()
			m.w.eng.dropFar(p, "not needed")
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
				if err := m.w.fabric.call(ctx, m, number); err != nil {
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
	case <-m.w.over:
		return m.w.usable()
	}
}
