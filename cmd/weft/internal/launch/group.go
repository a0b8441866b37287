package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/internal/sites"
)

// group is processes with ranks of their own: those that a job begins with, or
// those of one Spawn.
type group struct {
	index    int // 0: those that the job begins with
	n        int
	server   *pmi.Server
	gone     chan struct{} // closed when all processes have ended
	link     link
	spread   *spread       // nil: all run here
	programs []rankProgram // by rank; nil: see job.command

	// Guarded by job.mu.
	live     int  // processes that have not ended, and who starts them
	canceled bool // not all could be started
}

// rankProgram is what one process runs.
type rankProgram struct {
	path string
	args []string
	dir  string
	env  []string // K=V, of this program only
}

// proc is a process of the job.
type proc struct {
	g    *group
	rank int
	host int // emulated host, if the job has such
	cmd  *exec.Cmd
	site *sites.Process // where it is; nil without sites

	over   bool // it has ended; guarded by job.mu
	killed bool // because the others have finished without it; see suspects
}

// emulatedHost returns on which emulated host a process is to run: those that are spawned go to
// them by turns.
func (j *job) emulatedHost(p *proc) int {
	if p.g.index == 0 {
		return j.emulated[p.rank]
	}
	h := j.turn % j.hosts
	j.turn++
	return h
}

// label is the rank in front of lines of output.
func (p *proc) label() string {
	if p.g.index == 0 {
		return strconv.Itoa(p.rank)
	}
	return fmt.Sprintf("%d:%d", p.g.index, p.rank)
}

// String names p in messages.
func (p *proc) String() string {
	if p.g.index == 0 {
		return "rank " + strconv.Itoa(p.rank)
	}
	return fmt.Sprintf("spawned rank %d:%d", p.g.index, p.rank)
}

// remote returns the name of the host that p runs on, or "" if that is this one.
func (p *proc) remote() string {
	if s := p.g.spread; s != nil {
		if h := s.hosts[s.place[p.rank]]; !h.here() {
			return h.name
		}
	}
	return ""
}

// ident is String with what finds the process: here its pid, elsewhere the host, as the
// pid known here is that of the remote shell.
func (p *proc) ident() string {
	if h := p.remote(); h != "" {
		return fmt.Sprintf("%s on host %s", p, h)
	}
	return fmt.Sprintf("%s (pid %d)", p, p.cmd.Process.Pid)
}

var errStopping = errors.New("the job is about to end")

// newGroup prepares for n processes.
func (j *job) newGroup(name string, n int) *group {
	g := &group{n: n, server: pmi.NewServer(n, name), gone: make(chan struct{})}
	g.server.Names = &j.names
	g.server.OnReport = func(rank int, r pmi.Report) {
		select {
		case j.reports <- rankReport{g, rank, r}:
		case <-j.over:
		}
	}
	g.server.OnSpawn = func(_ int, s *pmi.Spawn) (*pmi.Spawned, error) { return j.spawn(s) }
	j.mu.Lock()
	defer j.mu.Unlock()
	j.groups = append(j.groups, g)
	// A spawned process is not told that there is room for fewer than there are already.
	for _, each := range j.groups {
		g.server.Universe += each.n
	}
	g.server.Universe = max(g.server.Universe, j.universe)
	return g
}

// open lets the processes reach the launcher.
func (g *group) open(ctx context.Context, addr string) error {
	if g.spread != nil {
		return g.spread.open(ctx, g.server, addr)
	}
	return g.link.open(ctx, g.server, g.n)
}

func (g *group) close() {
	if g.spread != nil {
		g.spread.listener.Close()
	} else {
		g.link.close()
	}
}

// running reports whether there are processes that have not ended. After it has
// returned false none is started.
func (j *job) running() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stopping = j.stopping || j.live == 0
	return j.live > 0
}

// stop lets no more processes be started.
func (j *job) stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stopping = true
}

// ended notes that a process has, and reports whether that does not matter.
func (j *job) ended(p *proc) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.live--
	p.over = true
	j.sites.release(p.site)
	if p.g.index > 0 {
		// A job may spawn for weeks.
		process.SignalGroup(p.cmd.Process, os.Kill) // whatever it has left behind
		j.procs = slices.DeleteFunc(j.procs, func(q *proc) bool { return q == p })
		j.leave(p.g)
	}
	return p.g.canceled
}

// leave lets go of a spawned group, whose last user drops it. The caller holds
// j.mu.
func (j *job) leave(g *group) {
	if g.live--; g.live == 0 {
		g.close()
		close(g.gone)
		j.drop(g)
	}
}

// drop takes a group from those that have processes. The caller holds j.mu.
func (j *job) drop(g *group) {
	j.groups = slices.DeleteFunc(j.groups, func(x *group) bool { return x == g })
}

// abortError is an AbortError of a rank of a group.
type abortError struct {
	*pmi.AbortError
	g *group
}

func (e *abortError) Error() string {
	if e.g.index == 0 {
		return e.AbortError.Error()
	}
	return fmt.Sprintf("spawned group %d: %v", e.g.index, e.AbortError)
}

// abortReason returns which rank of the group has aborted the job, or nil.
func (g *group) abortReason() *abortError {
	if e := g.server.AbortReason(); e != nil {
		return &abortError{e, g}
	}
	return nil
}

// abortReason returns which rank has aborted the job, or nil; one of the group
// comes first.
func (j *job) abortReason(g *group) *abortError {
	if e := g.abortReason(); e != nil {
		return e
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, g := range j.groups {
		if e := g.abortReason(); e != nil {
			return e
		}
	}
	return nil
}

// watchAbort reports an abort by a rank of the group.
func (j *job) watchAbort(g *group) {
	select {
	case <-g.server.Aborted():
		select {
		case j.aborted <- g.abortReason():
		case <-j.over:
		}
	case <-g.gone:
	case <-j.over:
	}
}

// announceFailure tells the other processes of the job, and those of other groups, that p has failed.
func (j *job) announceFailure(p *proc, why string) {
	go p.g.server.Fail(p.rank, why)
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, g := range j.groups {
		if g != p.g {
			g.server.FailOther(p.g.server.Name(), p.rank, why)
		}
	}
}

// captureFile is where a process captures what it sends.
func (j *job) captureFile(p *proc) string {
	if p.g.index == 0 {
		return j.rankFiles("cap")[p.rank]
	}
	name := rankSet{p.g.index, p.g.n}.file(j.scratch, "cap", p.rank)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.captured = append(j.captured, name)
	return name
}

// spawn starts processes for one that asks for it.
func (j *job) spawn(s *pmi.Spawn) (out *pmi.Spawned, err error) {
	done := make(chan struct{})
	start := func() {
		defer close(done)
		out, err = j.startSpawned(s)
	}
	select {
	case j.starts <- start:
		<-done
		return out, err
	case <-j.over:
		return nil, errStopping
	}
}

// startSpawned starts all processes of a request or none. It runs where all are
// started.
func (j *job) startSpawned(s *pmi.Spawn) (*pmi.Spawned, error) {
	j.mu.Lock()
	room := MaxRanks - j.live
	j.mu.Unlock()
	out := &pmi.Spawned{}
	var programs []rankProgram
	var apps, hosts []int
	for i, c := range s.Commands {
		n, err := pmi.Soft(c.Info[pmi.InfoSoft], c.N, room-len(programs))
		if err == nil && n > room-len(programs) {
			err = fmt.Errorf("a job can have at most %d processes at a time", MaxRanks)
		}
		if err != nil {
			n = c.N
		}
		x := rankProgram{args: c.Args}
		host := -1
		if err == nil {
			host, err = j.hostOf(c.Info["host"])
		}
		if err == nil {
			x.path, x.dir, err = j.find(c)
		}
		for range n {
			programs, apps, hosts = append(programs, x), append(apps, i), append(hosts, host)
			out.Errs = append(out.Errs, err)
		}
	}
	if out.Err() != nil {
		return out, nil
	}
	j.mu.Lock()
	j.spawned++
	index := j.spawned
	j.mu.Unlock()
	g := j.newGroup(j.first.server.Name()+"."+strconv.Itoa(index), len(programs))
	g.index, g.programs, g.server.AppNums = index, programs, apps
	if j.spread != nil {
		g.spread = j.spread.more(hosts, programs)
	}
	err := g.server.Preput(s.Preput)
	if err == nil {
		err = g.open(j.serving, j.addr)
	}
	if err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.drop(g)
		return nil, err
	}
	go j.watchAbort(g)
	j.startGroup(g, out)
	return out, nil
}

// startGroup starts all processes of a spawned group, or ends those that it has
// started.
func (j *job) startGroup(g *group, out *pmi.Spawned) {
	j.mu.Lock()
	g.live++ // the first may end before the last is started
	j.mu.Unlock()
	for rank := range g.n {
		if out.Errs[rank] = j.start(j.serving, g, rank); out.Errs[rank] != nil {
			break
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.leave(g)
	if out.Err() == nil {
		out.Job = g.server.Name()
		if j.profile || j.trace {
			j.started = append(j.started, rankSet{g.index, g.n})
		}
		return
	}
	g.canceled = true
	for _, p := range j.procs {
		if p.g == g {
			process.SignalGroup(p.cmd.Process, os.Kill)
		}
	}
}

// find returns the executable of a command and its working directory.
func (j *job) find(c pmi.Command) (path, dir string, err error) {
	dir = j.dir
	if d := c.Info["wdir"]; d != "" {
		if dir, err = filepath.Abs(d); err != nil {
			return "", "", err
		}
	}
	if j.spread != nil && !j.spread.allHere() {
		return c.Path, dir, nil // it is there, or the shell will say so
	}
	if dir != "" {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return "", "", fmt.Errorf("%s is not a directory", dir)
		}
	}
	path, err = lookUp(c.Path, dir, c.Info["path"])
	return path, dir, err
}

// hostOf returns the index of a host of the job by name, or -1 for any.
func (j *job) hostOf(name string) (int, error) {
	switch {
	case name == "":
		return -1, nil
	case j.spread == nil && (host{name: name}).here():
		return -1, nil
	case j.spread != nil:
		if i := slices.IndexFunc(j.spread.hosts, func(h host) bool { return h.name == name }); i >= 0 {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no host %.40q in this job", name)
}

// more places further processes: on the hosts given, or in turn on all slots
// where that is -1.
func (s *spread) more(hosts []int, programs []rankProgram) *spread {
	out := &spread{hosts: s.hosts, rsh: s.rsh, dir: s.dir, token: newToken(), spawned: true, allEnv: s.allEnv}
	var slots []int
	for i, h := range s.hosts {
		for range h.slots {
			slots = append(slots, i)
		}
	}
	used := make(map[int]int)
	for i, h := range hosts {
		if h < 0 {
			h = slots[(len(s.place)+i)%len(slots)]
		}
		out.place, out.local = append(out.place, h), append(out.local, used[h])
		used[h]++
		out.dirs = append(out.dirs, programs[i].dir)
	}
	return out
}
