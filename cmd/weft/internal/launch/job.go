// Package launch is `weft run` and `weft nameserver`: it starts the ranks of MPI jobs, on
// this host, on others by a remote shell, or where the owner of a [PlacedJob] says, serves
// PMI-1 to them, and judges how they end.
package launch

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weftstack/weft/cmd/weft/internal/process"
	"github.com/weftstack/weft/cmd/weft/internal/terminal"
	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/pmi"
)

// absentGrace is how long the others go on when a rank ends before it has joined
// the job: a wrong flag, say, is wrong on all, and one of them explains it.
const absentGrace = 500 * time.Millisecond

// joinBarriers is the number of barriers in mpi.Init.
const joinBarriers = 2

// job is one run of a program in n ranks.
type job struct {
	n        int
	programs []rankProgram // what each of the first ranks runs; nil: see command
	apps     []int         // which of the command's programs that is
	env      []string      // K=V, added to this process's own
	dir      string        // working directory of spawned processes, or empty
	prefix   bool          // ranks before lines of output
	verbose  bool
	keepOn   bool    // the others go on when a rank is killed
	scratch  string  // directory for captures
	places   [][]int // processors of each of the first ranks; nil: they run anywhere
	capture  bool
	profile  bool // let the ranks profile themselves
	trace    bool // let the ranks trace themselves

	// For a job that is spread over emulated hosts; nil otherwise.
	command func(rank int) []string                  // its program and arguments, by rank
	hostEnv func(host int) []string                  // added to the environment
	on      func(host int, start func() error) error // runs start on a host
	main    int                                      // 1 + the rank that ends the job when it ends; 0: none

	sites    *siteJob              // gives the processes places in sites; nil: there are none
	hostName func(host int) string // of an emulated host; "": it is in no site

	spread *spread // places the ranks on hosts; nil: all run here
	addr   string  // where they find the launcher then; empty: to be found out

	universe int // processes that there is room for; 0: the ranks

	first   *group // the ranks that the job begins with
	names   pmi.Names
	serving context.Context // while the ranks are answered
	aborted chan *abortError
	reports chan rankReport
	starts  chan func()   // for the goroutine that starts processes
	over    chan struct{} // closed when the job is
	done    chan ended

	emulated []int // emulated host of each of the first ranks
	hosts    int   // number of emulated hosts
	turn     int   // of them, the one that gets the next spawned process; of the goroutine that starts processes

	suspects suspects // of the goroutine that supervises the job
	stdout   lineWriter
	stderr   lineWriter

	mu       sync.Mutex // guards what follows
	procs    []*proc    // those that are to get signals
	groups   []*group   // those with processes that have not ended
	spawned  int        // groups spawned so far
	live     int        // processes that have not ended
	stopping bool       // no more are started
	captured []string   // files of spawned ranks
	started  []rankSet  // what was spawned, if it profiles itself
}

// ended tells how one rank ended.
type ended struct {
	p   *proc
	err error // nil, or an *exec.ExitError, or what Wait said
}

// captureFiles names the files that the ranks capture into.
func (j *job) captureFiles() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append(j.rankFiles("cap"), j.captured...)
}

// run starts all ranks and waits for all of them. It returns the status of the
// job: zero when every rank exited with zero, else that of the first to fail.
func (j *job) run(ctx context.Context, signals <-chan os.Signal) (int, error) {
	serving, stopServing := context.WithCancel(context.Background())
	defer stopServing()
	j.stdout.w, j.stderr.w = os.Stdout, os.Stderr
	j.starts, j.over, j.done = make(chan func()), make(chan struct{}), make(chan ended, j.n)
	j.aborted = make(chan *abortError)
	j.reports, j.suspects = make(chan rankReport), make(suspects)
	j.serving = serving
	defer close(j.over)
	// On other hosts there may be jobs of a launcher with the same number.
	g := j.newGroup("kvs_"+strconv.Itoa(os.Getpid())+"_"+rand.Text()[:8], j.n)
	g.spread, g.programs, g.server.AppNums = j.spread, j.programs, j.apps
	g.server.OnBarrier = func(n int) {
		if n == joinBarriers {
			j.say("the ranks have joined the job")
		}
	}
	if err := g.open(serving, j.addr); err != nil {
		return cli.ExitFail, err
	}
	defer g.close()
	j.first = g
	go j.watchAbort(g)
	started := make(chan error)
	go func() {
		// Where the system can end children with their parent, the parent is
		// the thread that started them: it must live as long as the job.
		runtime.LockOSThread()
		started <- j.startAll(serving, g)
		for {
			select {
			case start := <-j.starts:
				start()
			case <-j.over:
				return
			}
		}
	}()
	if err := <-started; err != nil {
		j.stop()
		j.signalAll(os.Kill)
		j.wait()
		return cli.ExitFail, err
	}
	status, err := j.supervise(ctx, signals)
	j.signalAll(os.Kill) // whatever the ranks started and left behind
	return status, err
}

func (j *job) startAll(ctx context.Context, g *group) error {
	for rank := range g.n {
		if err := j.start(ctx, g, rank); err != nil {
			err = fmt.Errorf("starting %s: %w", &proc{g: g, rank: rank}, err)
			if g.programs != nil && strings.Contains(err.Error(), "exec format error") {
				err = fmt.Errorf("%w: %s", err, formatHint(g.programs[rank].path))
			}
			return err
		}
	}
	return nil
}

// start starts one rank.
func (j *job) start(ctx context.Context, g *group, rank int) error {
	p := &proc{g: g, rank: rank}
	if j.on != nil {
		p.host = j.emulatedHost(p)
	}
	err := j.startProc(ctx, p)
	if err != nil {
		j.sites.release(p.site)
	}
	return err
}

func (j *job) startProc(ctx context.Context, p *proc) error {
	g, rank := p.g, p.rank
	var x rankProgram
	if g.programs != nil {
		x = g.programs[rank]
	} else {
		argv := j.command(rank)
		x = rankProgram{path: argv[0], args: argv[1:], dir: j.dir}
	}
	cmd := exec.Command(x.path, x.args...)
	cmd.Dir = x.dir
	p.cmd = cmd
	cmd.Env = append(os.Environ(), slices.Concat(j.env, x.env)...)
	cmd.Env = append(cmd.Env, pmi.EnvWatch+"="+g.server.Name())
	if j.keepOn {
		cmd.Env = append(cmd.Env, "WEFT_FT=1")
	}
	cmd.Env = append(cmd.Env, "MPI_LOCALRANKID="+strconv.Itoa(rank), "MPI_LOCALNRANKS="+strconv.Itoa(g.n))
	if j.hostEnv != nil {
		cmd.Env = append(cmd.Env, j.hostEnv(p.host)...)
	}
	spawned := g.index > 0
	if j.capture {
		cmd.Env = append(cmd.Env, "WEFT_CAPTURE="+j.captureFile(p))
	}
	if spawned {
		cmd.Env = append(cmd.Env, pmi.EnvSpawned+"=1")
	} else {
		cmd.Env = append(cmd.Env, pmi.EnvSpawned+"=")
	}
	cmd.Env = append(cmd.Env, j.toolEnv(p)...)
	siteEnv, err := j.siteEnv(p)
	if err != nil {
		return err
	}
	cmd.Env = append(cmd.Env, siteEnv...)
	cmd.SysProcAttr = process.ChildAttr()
	var stdin io.WriteCloser
	if rank == 0 && !spawned {
		if terminal.Is(os.Stdin) {
			// Ranks run in process groups of their own, which may not read
			// from the terminal.
			if stdin, err = cmd.StdinPipe(); err != nil {
				return err
			}
		} else {
			cmd.Stdin = os.Stdin
		}
	}
	flush := j.output(p)
	var serve func(ctx context.Context, started bool)
	if g.spread != nil {
		cmd.Env = append(cmd.Env, g.spread.env(rank)...)
		var feed func()
		if feed, err = g.spread.prepare(cmd, rank, cmd.Env[len(os.Environ()):]); err != nil {
			return err
		}
		serve = func(context.Context, bool) { feed() }
		if cmd.Env == nil {
			stdin = nil // fed by feed
		}
	} else if serve, err = g.link.attach(cmd, rank); err != nil {
		return err
	}
	err = j.begin(p)
	serve(ctx, err == nil)
	if err != nil {
		return err
	}
	if stdin != nil {
		go func() { io.Copy(stdin, os.Stdin); stdin.Close() }()
	}
	j.say("%s is pid %d", p, cmd.Process.Pid) // of the remote shell, on another host
	go func() {
		err := cmd.Wait()
		flush()
		p.g.server.Drain(p.rank, lastWords) // it may have said why it ends
		j.done <- ended{p, err}
	}()
	return nil
}

// lastWords bounds how long the launcher listens to a process that has ended.
const lastWords = time.Second

// begin starts the process of a rank, unless the job is about to end.
func (j *job) begin(p *proc) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopping {
		return errStopping
	}
	var err error
	switch {
	case j.on != nil:
		err = j.on(p.host, p.cmd.Start)
	case j.places != nil && p.g == j.first: // on a goroutine that is locked to its thread
		err = startOn(j.places[p.rank], p.cmd.Start)
	default:
		err = p.cmd.Start()
	}
	if err == nil {
		j.procs = append(j.procs, p)
		j.live++
		p.g.live++
	}
	return err
}

// output decides where a rank's output goes: straight to ours, or through
// writers that prefix whole lines. It returns what to do at the end.
func (j *job) output(p *proc) (flush func()) {
	cmd := p.cmd
	if !j.prefix {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return func() {}
	}
	out := &prefixer{to: &j.stdout, rank: p.label()}
	err := &prefixer{to: &j.stderr, rank: p.label()}
	cmd.Stdout, cmd.Stderr = out, err
	cmd.WaitDelay = process.KillGrace // a child of the rank may hold its output open
	return func() { out.flush(); err.flush() }
}

// supervise waits for the ranks, passes signals on to them, and ends them all
// when one fails, one asks for it, or ctx is done.
func (j *job) supervise(ctx context.Context, signals <-chan os.Signal) (int, error) {
	status := cli.ExitOK
	var why error
	fail := func(code int, err error, grace time.Duration) {
		if why == nil {
			status, why = code, err
			j.stop()
			time.AfterFunc(grace, func() { j.signalAll(process.TermSignal) })
			time.AfterFunc(grace+process.KillGrace, func() { j.signalAll(os.Kill) })
		}
	}
	aborted := j.aborted
	finished := ctx.Done()
	end, asked := ends(), false
	well := 0       // ranks that ended well
	var lost *ended // the first that the others did without
	poll := time.NewTicker(suspectPoll)
	defer poll.Stop()
	var forsaken time.Time // since when only processes that were taken for dead are left
	for j.running() {
		var polled <-chan time.Time
		if j.keepOn && why == nil && j.suspects.anyDead() {
			polled = poll.C
		}
		select {
		case r := <-j.reports:
			j.heard(r)
		case <-polled:
			forsaken = j.killForsaken(forsaken)
		case e := <-j.done:
			server := e.p.g.server
			j.gone(e)
			if j.ended(e.p) {
				continue // of a group that came to nothing
			}
			if code, err := j.verdict(e); err != nil {
				// An abort's own message says more than the exit that follows.
				if reason := j.abortReason(e.p.g); reason != nil {
					code, err = reason.Code, reason
				}
				if why == nil && j.goesOn(e) {
					if !e.p.killed {
						fmt.Fprintln(os.Stderr, "weft run:", err)
					}
					if server.State(e.p.rank) == pmi.Finalized {
						status = cmp.Or(status, code) // the others do not need it any more, but it failed
						continue
					}
					j.announceFailure(e.p, err.Error())
					if lost == nil {
						lost = &e
					}
					continue
				}
				grace := time.Duration(0)
				if server.State(e.p.rank) == pmi.Absent {
					grace = absentGrace
				}
				fail(code, err, grace)
			} else if why == nil {
				well++
				j.say("%s has finished", e.p)
				if e.p.g.index == 0 && e.p.rank == j.main-1 {
					fail(cli.ExitOK, errMainEnded, 0)
				}
			}
		case reason := <-aborted:
			fail(reason.Code, reason, 0)
		case <-finished:
			finished = nil
			if errors.Is(context.Cause(ctx), errTimeout) {
				j.blocked()
			}
			code, err := stopped(ctx, nil)
			fail(code, err, 0)
		case sig := <-signals:
			if sig == process.QuitSignal && !asked {
				asked = true // the second one is passed on
				j.blocked()
				continue
			}
			if sig == os.Interrupt || sig == process.TermSignal {
				sig = end(sig)
			}
			j.signalAll(sig)
		}
	}
	if errors.Is(why, errMainEnded) {
		why = nil
	}
	if why == nil && well == 0 && lost != nil {
		return j.verdict(*lost) // nobody was left
	}
	return status, why
}

// sameRequest is how soon after one signal that asks the ranks to end another one says the same: programs such as
// timeout signal a process and then its group.
const sameRequest = 100 * time.Millisecond

// ends returns a function that says by which signal the ranks are to end that are asked to by another one: by that, and
// the second time, when it did not help, by a kill.
func ends() func(sig os.Signal) os.Signal {
	var first time.Time
	return func(sig os.Signal) os.Signal {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		if now.Sub(first) > sameRequest {
			return os.Kill
		}
		return sig
	}
}

// goesOn reports whether the others go on without the rank that ended, in whatever way:
// those that are fault tolerant do, unless it has asked to end the job, or had not joined
// it, so that the others wait for it in Init.
func (j *job) goesOn(e ended) bool {
	return j.keepOn && e.p.g.server.State(e.p.rank) != pmi.Absent && j.abortReason(e.p.g) == nil
}

// errMainEnded ends a job whose main rank has ended well.
var errMainEnded = errors.New("the main command has ended")

// verdict judges how one rank ended.
func (j *job) verdict(e ended) (int, error) {
	server, who := e.p.g.server, e.p.ident()
	var exit *exec.ExitError
	switch {
	case errors.As(e.err, &exit):
		code, how := process.ExitStatus(exit.ProcessState)
		if h := e.p.remote(); h != "" && code == remoteShellFailed {
			how = fmt.Sprintf("%s, as %s does that cannot run a command there", how, filepath.Base(e.p.g.spread.rsh[0]))
		}
		return code, fmt.Errorf("%s %s", who, how)
	case e.err != nil:
		return cli.ExitFail, fmt.Errorf("%s: %w", who, e.err)
	case server.State(e.p.rank) == pmi.Initialized:
		return cli.ExitFail, fmt.Errorf("%s exited without finalizing", who)
	case server.State(e.p.rank) == pmi.Absent && (e.p.g.index > 0 || othersJoined(e.p)):
		return cli.ExitFail, fmt.Errorf("%s exited without joining the job", who)
	}
	return cli.ExitOK, nil
}

// othersJoined reports whether a rank that never spoke leaves others waiting.
func othersJoined(p *proc) bool {
	for i := range p.g.n {
		if i != p.rank && p.g.server.State(i) == pmi.Initialized {
			return true
		}
	}
	return false
}

// wait collects the ranks, which have been killed.
func (j *job) wait() {
	for j.running() {
		j.ended((<-j.done).p)
	}
}

// signalAll sends a signal to every rank and to the processes it started. Ranks
// that are gone are passed over.
func (j *job) signalAll(sig os.Signal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.procs {
		process.SignalGroup(p.cmd.Process, sig)
	}
}

// say reports progress under -v.
func (j *job) say(format string, args ...any) {
	if j.verbose {
		fmt.Fprintf(os.Stderr, "weft run: "+format+"\n", args...)
	}
}
