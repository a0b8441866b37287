package mpi

import (
	"context"
	"fmt"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/mpi/internal/dynamic"
)

// Dynamic processes (MPI-4.1, Section 11.8): the root asks the launcher to start them, with the
// name of a port. The new processes connect to it in Init, and the group that has spawned them
// accepts.

// Limits of Spawn.
const (
	// MaxSpawn bounds the processes of one Spawn.
	MaxSpawn = pmi.MaxSpawn
	// MaxCommands bounds the commands of one SpawnMultiple.
	MaxCommands = pmi.MaxCommands
	// MaxSpawnArgs bounds the arguments, and the hints, of a command.
	MaxSpawnArgs = pmi.MaxArgs
	// MaxSpawnArg bounds the length of an argument or a hint, in bytes.
	MaxSpawnArg = pmi.MaxArg
)

// Hints for Spawn (MPI-4.1, Section 11.8.4). Others are ignored.
const (
	InfoWdir = "wdir"       // working directory
	InfoPath = "path"       // directories to find the command in, separated as in $PATH
	InfoHost = "host"       // one of `weft run -hosts`
	InfoSoft = pmi.InfoSoft // other numbers of processes that will do: "2,4:16:4"
)

// A SpawnError says which processes could not be started, and why (MPI_Comm_spawn). It wraps
// ErrSpawn and these errors.
type SpawnError struct {
	Errs []error // by process, of all commands; nil for processes without an error
}

// Error returns the first of the errors.
func (e *SpawnError) Error() string {
	for i, err := range e.Errs {
		if err != nil {
			return fmt.Sprintf("%v: process %d: %v", ErrSpawn, i, err)
		}
	}
	return ErrSpawn.Error()
}

// Unwrap returns ErrSpawn and the errors, for errors.Is and errors.As.
func (e *SpawnError) Unwrap() []error {
	out := []error{ErrSpawn}
	for _, err := range e.Errs {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// A Command is a program for [Comm.Spawn] (the arguments of MPI_Comm_spawn_multiple): in RunLocal
// one of [WithProgram], after Init an executable, which the launcher finds like that of the job,
// without building anything.
type Command struct {
	Path string
	Args []string // without the name
	N    int      // processes
	Info Info     // hints
}

// Spawn starts cmd.N processes and makes an intercommunicator of c and their world, which the new
// processes get from [World.Parent] (MPI_Comm_spawn). All ranks of c must call it; cmd is that of
// rank root, and ignored on other ranks. It blocks until the processes have called Init. Either all
// are started or none; with the hint [InfoSoft] it may be fewer than cmd.N. Errors to test for:
// ErrSpawn, which at the root is a [SpawnError] if it concerns single processes, ErrRoot, and
// ErrComm for an intercommunicator.
//
// For its launcher the new processes belong to the job: `weft run` waits for them, and ends all
// when one of them fails, unless it was given -ft.
func (c *Comm) Spawn(ctx context.Context, cmd Command, root int) (*Comm, error) {
	return c.SpawnMultiple(ctx, []Command{cmd}, root)
}

// SpawnMultiple is [Comm.Spawn] for several commands, with one world for all processes: those of
// the first command come first (MPI_Comm_spawn_multiple). [World.AppNum] returns the command of a
// process. It blocks and fails like Spawn.
func (c *Comm) SpawnMultiple(ctx context.Context, cmds []Command, root int) (*Comm, error) {
	t := c.enter()
	d, err := c.spawn(ctx, cmds, root)
	c.leave(t, "Comm.Spawn", root, 0, 0, err)
	return d, c.raise(err)
}

func (c *Comm) spawn(ctx context.Context, cmds []Command, root int) (*Comm, error) {
	return c.connectGroups(ctx, root, true, func(ctx context.Context) (*dynamic.RootConn, error) {
		if err := c.w.opts.SpawnsNone; err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSpawn, err)
		}
		name, err := c.w.OpenPort()
		if err != nil {
			return nil, err
		}
		defer func() { _ = c.w.ClosePort(name) }()
		var list []pmi.Command
		for _, x := range cmds {
			list = append(list, pmi.Command{Path: x.Path, Args: x.Args, N: x.N, Info: x.Info})
		}
		job, each, err := dynamic.Launch(ctx, c.w.job.Launcher, list, name)
		if err != nil {
			return nil, err
		}
		if each != nil {
			return nil, &SpawnError{each}
		}
		ctx, undo := c.w.job.Spawned.Watch(ctx, job)
		defer undo()
		return c.w.job.TakeAt(ctx, name)
	})
}

// connectParent connects spawned processes to the group that has spawned them.
func (w *World) connectParent(ctx context.Context) error {
	port := ""
	if w.Rank() == 0 {
		var err error
		if port, err = w.job.Launcher.Get(ctx, dynamic.ParentKey); err != nil {
			port = "" // an error at all ranks
		}
	}
	p, err := w.world.Connect(ctx, port, 0, nil)
	if err != nil {
		return fmt.Errorf("mpi: connecting to those that have spawned this job: %w", err)
	}
	p.SetName("parent")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parent = p
	return nil
}

// Parent returns the intercommunicator with the group that has spawned this
// job, or nil if it was not spawned (MPI_Comm_get_parent). After its Disconnect
// it returns nil.
func (w *World) Parent() *Comm {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.parent == nil || w.parent.comm.Freed.Load() {
		return nil
	}
	return w.parent
}

// UniverseSize returns how many processes the launcher has room for, including those of the job
// (MPI_UNIVERSE_SIZE), or [Undefined] if the launcher does not know. It blocks until the launcher
// has answered.
func (w *World) UniverseSize(ctx context.Context) int {
	if n, ok := w.job.UniverseSize(ctx); ok {
		return n
	}
	return Undefined
}

// AppNum returns which of the commands of a [Comm.SpawnMultiple] this process runs (MPI_APPNUM), or
// [Undefined] if the launcher does not know. It blocks until the launcher has answered.
func (w *World) AppNum(ctx context.Context) int {
	if n, ok := w.job.AppNum(ctx); ok {
		return n
	}
	return Undefined
}
