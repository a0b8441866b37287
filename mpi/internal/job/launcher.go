package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Launcher is how ranks find each other: a store of short strings, which Barrier makes visible to
// all. *pmi.Client implements it.
type Launcher interface {
	Put(ctx context.Context, key, value string) error
	Get(ctx context.Context, key string) (string, error)
	Barrier(ctx context.Context) error
	Abort(code int, msg string) error
	Finalize(ctx context.Context) error
}

// Watch has the launcher report what happens to the other ranks, and ask what this one waits for, if it can. A rank
// that fails, or the loss of the launcher, before the links are up calls cancel.
func (j *Job) Watch(ctx context.Context, client *pmi.Client, cancel context.CancelCauseFunc) error {
	if client == nil || !client.CanWatch() {
		return nil
	}
	lost := func(err error) { j.launcherLost(err); cancel(err) }
	failed := func(rank int, why string) {
		if !j.rankDied(rank, why) {
			cancel(j.face.RankError(rank, false, errors.New(why)))
		}
	}
	client.OnOther, client.OnBlocked = j.otherDied, j.blocked
	return client.Watch(ctx, failed, lost)
}

// launcherName returns the name by which the launcher reports the failure of this process,
// or "" if the launcher reports none.
func (j *Job) launcherName() string {
	if b, ok := j.Launcher.(interface{ ProcessName() string }); ok {
		return b.ProcessName()
	}
	return ""
}

// exitGrace is how long a program may go on after its launcher has ended.
const exitGrace = 5 * time.Second

// rankDied is called when the launcher reports that a rank has failed. It reports false if the
// links are not up yet.
func (j *Job) rankDied(rank int, why string) bool {
	if !j.joined.Load() {
		return false
	}
	j.Engine.Peers[rank].MarkFailed(why)
	return true
}

// otherDied is called when the launcher reports the failure of a process that it started for a
// Spawn, or of one of the group that has spawned this job.
func (j *Job) otherDied(job string, rank int, why string) {
	name := pmi.ProcessName(job, rank)
	j.Spawned.Died(job, j.face.RankError(rank, true, errors.New(why)))
	for _, p := range j.Engine.AllPeers() {
		if p.Remote != nil && p.Remote.LauncherName == name {
			p.MarkFailed(why)
		}
	}
}

// launcherLost is called when the connection to `weft run` has ended. Like the other children of
// the launcher, the process must not outlive it.
func (j *Job) launcherLost(err error) {
	j.Record(slog.LevelError, "launcher is gone", Cause(err))
	j.Engine.End(fmt.Errorf("%w: %w", mpierr.ErrAborted, err))
	for _, p := range j.Engine.AllPeers() {
		if j.joined.Load() && p.Link != nil {
			p.Link.Abort("the launcher is gone")
		}
	}
	time.AfterFunc(exitGrace, func() {
		fmt.Fprintf(os.Stderr, "mpi: rank %d: %v\n", j.Rank(), err)
		os.Exit(1)
	})
}

// launcherInfo is information that some launchers have.
type launcherInfo interface {
	AppNum(ctx context.Context) (int, error)
	UniverseSize(ctx context.Context) (int, error)
}

// UniverseSize returns how many processes the launcher has room for. It reports false if the launcher does not know.
func (j *Job) UniverseSize(ctx context.Context) (int, bool) {
	b, ok := j.Launcher.(launcherInfo)
	if !ok {
		return 0, false
	}
	n, err := b.UniverseSize(context.WithoutCancel(ctx))
	return n, err == nil
}

// AppNum returns which of the commands of a Spawn this process runs. It reports false if the launcher does not know.
func (j *Job) AppNum(ctx context.Context) (int, bool) {
	b, ok := j.Launcher.(launcherInfo)
	if !ok {
		return 0, false
	}
	n, err := b.AppNum(context.WithoutCancel(ctx))
	return n, err == nil
}
