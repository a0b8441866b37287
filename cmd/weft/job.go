package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/weftstack/weft/internal/pmi"
)

// killGrace is how long ranks have between being asked to end and being killed.
const killGrace = 2 * time.Second

// absentGrace is how long the others go on when a rank ends before it has joined
// the job: a wrong flag, say, is wrong on all, and one of them explains it.
const absentGrace = 500 * time.Millisecond

// joinBarriers is the number of barriers in mpi.Init.
const joinBarriers = 2

// job is one run of a program in n ranks.
type job struct {
	n       int
	path    string
	args    []string
	env     []string // K=V, added to this process's own
	dir     string   // working directory, or empty
	prefix  bool     // ranks before lines of output
	verbose bool
	keepOn  bool   // the others go on when a rank is killed
	scratch string // directory for captures
	capture bool
	profile bool // let the ranks profile themselves
	trace   bool // let the ranks trace themselves

	// For a job that is spread over emulated hosts; nil otherwise.
	command func(rank int) []string                  // its program and arguments, by rank
	hostEnv func(rank int) []string                  // added to the environment
	on      func(rank int, start func() error) error // runs start on the rank's host
	main    int                                      // 1 + the rank that ends the job when it ends; 0: none

	spread *spread // places the ranks on hosts; nil: all run here
	addr   string  // where they find the launcher then; empty: to be found out

	server *pmi.Server
	link   link
	ranks  []*exec.Cmd
	stdout lineWriter
	stderr lineWriter
}

// ended tells how one rank ended.
type ended struct {
	rank int
	err  error // nil, or an *exec.ExitError, or what Wait said
}

// captureFiles names the files that the ranks capture into.
func (j *job) captureFiles() []string {
	return j.rankFiles("cap")
}

// run starts all ranks and waits for all of them. It returns the status of the
// job: zero when every rank exited with zero, else that of the first to fail.
func (j *job) run(ctx context.Context, signals <-chan os.Signal) (int, error) {
	j.server = pmi.NewServer(j.n, "kvs_"+strconv.Itoa(os.Getpid()))
	j.server.OnBarrier = func(n int) {
		if n == joinBarriers {
			j.say("the ranks have joined the job")
		}
	}
	serving, stopServing := context.WithCancel(context.Background())
	defer stopServing()
	if j.spread != nil {
		if err := j.spread.open(serving, j.server, j.addr); err != nil {
			return exitFail, err
		}
		defer j.spread.listener.Close()
	} else {
		if err := j.link.open(serving, j.server, j.n); err != nil {
			return exitFail, err
		}
		defer j.link.close()
	}
	j.stdout.w, j.stderr.w = os.Stdout, os.Stderr

	done := make(chan ended, j.n)
	started := make(chan error)
	finish := make(chan struct{})
	defer close(finish)
	go func() {
		// Where the system can end children with their parent, the parent is
		// the thread that started them: it must live as long as the job.
		runtime.LockOSThread()
		started <- j.startAll(serving, done)
		<-finish
	}()
	if err := <-started; err != nil {
		j.signalAll(os.Kill)
		j.wait(len(j.ranks), done)
		return exitFail, err
	}
	status, err := j.supervise(ctx, signals, done)
	j.signalAll(os.Kill) // whatever the ranks started and left behind
	return status, err
}

func (j *job) startAll(ctx context.Context, done chan<- ended) error {
	for rank := range j.n {
		if err := j.start(ctx, rank, done); err != nil {
			return fmt.Errorf("starting rank %d: %w", rank, err)
		}
	}
	return nil
}

// start starts one rank.
func (j *job) start(ctx context.Context, rank int, done chan<- ended) error {
	cmd := exec.Command(j.path, j.args...)
	if j.command != nil {
		argv := j.command(rank)
		cmd = exec.Command(argv[0], argv[1:]...)
	}
	cmd.Dir = j.dir
	cmd.Env = append(os.Environ(), j.env...)
	cmd.Env = append(cmd.Env, pmi.EnvWatch+"="+j.server.Name())
	if j.keepOn {
		cmd.Env = append(cmd.Env, "WEFT_FT=1")
	}
	cmd.Env = append(cmd.Env, "MPI_LOCALRANKID="+strconv.Itoa(rank), "MPI_LOCALNRANKS="+strconv.Itoa(j.n))
	if j.hostEnv != nil {
		cmd.Env = append(cmd.Env, j.hostEnv(rank)...)
	}
	if j.capture {
		cmd.Env = append(cmd.Env, "WEFT_CAPTURE="+j.captureFiles()[rank])
	}
	cmd.Env = append(cmd.Env, j.toolEnv(rank)...)
	cmd.SysProcAttr = childAttr()
	var stdin io.WriteCloser
	if rank == 0 {
		if isTerminal(os.Stdin) {
			// Ranks run in process groups of their own, which may not read
			// from the terminal.
			var err error
			if stdin, err = cmd.StdinPipe(); err != nil {
				return err
			}
		} else {
			cmd.Stdin = os.Stdin
		}
	}
	flush := j.output(cmd, rank)
	var serve func(ctx context.Context, started bool)
	var err error
	if j.spread != nil {
		cmd.Env = append(cmd.Env, j.spread.env(rank)...)
		var feed func()
		if feed, err = j.spread.prepare(cmd, rank, cmd.Env[len(os.Environ()):]); err != nil {
			return err
		}
		serve = func(context.Context, bool) { feed() }
		if cmd.Env == nil {
			stdin = nil // fed by feed
		}
	} else if serve, err = j.link.attach(cmd, rank); err != nil {
		return err
	}
	if j.on != nil {
		err = j.on(rank, cmd.Start)
	} else {
		err = cmd.Start()
	}
	serve(ctx, err == nil)
	if err != nil {
		return err
	}
	if stdin != nil {
		go func() { io.Copy(stdin, os.Stdin); stdin.Close() }()
	}
	j.ranks = append(j.ranks, cmd)
	j.say("rank %d is pid %d", rank, cmd.Process.Pid)
	go func() {
		err := cmd.Wait()
		flush()
		done <- ended{rank, err}
	}()
	return nil
}

// output decides where a rank's output goes: straight to ours, or through
// writers that prefix whole lines. It returns what to do at the end.
func (j *job) output(cmd *exec.Cmd, rank int) (flush func()) {
	if !j.prefix {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return func() {}
	}
	out := &prefixer{to: &j.stdout, rank: rank}
	err := &prefixer{to: &j.stderr, rank: rank}
	cmd.Stdout, cmd.Stderr = out, err
	cmd.WaitDelay = killGrace // a child of the rank may hold its output open
	return func() { out.flush(); err.flush() }
}

// supervise waits for the ranks, passes signals on to them, and ends them all
// when one fails, one asks for it, or ctx is done.
func (j *job) supervise(ctx context.Context, signals <-chan os.Signal, done <-chan ended) (int, error) {
	status := exitOK
	var why error
	fail := func(code int, err error, grace time.Duration) {
		if why == nil {
			status, why = code, err
			time.AfterFunc(grace, func() { j.signalAll(termSignal) })
			time.AfterFunc(grace+killGrace, func() { j.signalAll(os.Kill) })
		}
	}
	aborted := j.server.Aborted()
	finished := ctx.Done()
	interrupted := false
	well := 0 // ranks that ended well
	var lost *ended
	for left := j.n; left > 0; {
		select {
		case e := <-done:
			left--
			if code, err := j.verdict(e); err != nil {
				// An abort's own message says more than the exit that follows.
				if reason := j.server.AbortReason(); reason != nil {
					code, err = reason.Code, reason
				}
				if j.survives(e) && why == nil {
					fmt.Fprintln(os.Stderr, "weft run:", err)
					go j.server.Fail(e.rank, err.Error())
					lost = &e
					continue
				}
				grace := time.Duration(0)
				if j.server.State(e.rank) == pmi.Absent {
					grace = absentGrace
				}
				fail(code, err, grace)
			} else if why == nil {
				well++
				j.say("rank %d has finished", e.rank)
				if e.rank == j.main-1 {
					fail(exitOK, errMainEnded, 0)
				}
			}
		case <-aborted:
			aborted = nil
			reason := j.server.AbortReason()
			fail(reason.Code, reason, 0)
		case <-finished:
			finished = nil
			fail(exitFail, context.Cause(ctx), 0)
		case sig := <-signals:
			if interrupted && sig == os.Interrupt {
				sig = os.Kill
			}
			interrupted = interrupted || sig == os.Interrupt
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

// survives reports whether the others go on without the rank that ended: it
// was killed, or left without a word. An exit with an error is an error of the
// job.
func (j *job) survives(e ended) bool {
	if !j.keepOn || j.server.State(e.rank) != pmi.Initialized || j.server.AbortReason() != nil {
		return false
	}
	var exit *exec.ExitError
	if e.err == nil || !errors.As(e.err, &exit) {
		return e.err == nil
	}
	far := j.spread != nil && !j.spread.hosts[j.spread.place[e.rank]].here()
	return killed(exit.ProcessState) || far && remoteKilled(exit.ExitCode())
}

// errMainEnded ends a job whose main rank has ended well.
var errMainEnded = errors.New("the main command has ended")

// verdict judges how one rank ended.
func (j *job) verdict(e ended) (int, error) {
	pid := j.ranks[e.rank].Process.Pid
	var exit *exec.ExitError
	switch {
	case errors.As(e.err, &exit):
		code, how := exitStatus(exit.ProcessState)
		return code, fmt.Errorf("rank %d (pid %d) %s", e.rank, pid, how)
	case e.err != nil:
		return exitFail, fmt.Errorf("rank %d (pid %d): %w", e.rank, pid, e.err)
	case j.server.State(e.rank) == pmi.Initialized:
		return exitFail, fmt.Errorf("rank %d (pid %d) exited without finalizing", e.rank, pid)
	case j.server.State(e.rank) == pmi.Absent && j.othersJoined(e.rank):
		return exitFail, fmt.Errorf("rank %d (pid %d) exited without joining the job", e.rank, pid)
	}
	return exitOK, nil
}

// othersJoined reports whether a rank that never spoke leaves others waiting.
func (j *job) othersJoined(rank int) bool {
	for i := range j.n {
		if i != rank && j.server.State(i) == pmi.Initialized {
			return true
		}
	}
	return false
}

// wait collects n ranks that have been killed.
func (j *job) wait(n int, done <-chan ended) {
	for range n {
		<-done
	}
}

// signalAll sends a signal to every rank and to the processes it started. Ranks
// that are gone are passed over.
func (j *job) signalAll(sig os.Signal) {
	for _, cmd := range j.ranks {
		signalGroup(cmd.Process, sig)
	}
}

// say reports progress under -v.
func (j *job) say(format string, args ...any) {
	if j.verbose {
		fmt.Fprintf(os.Stderr, "weft run: "+format+"\n", args...)
	}
}
