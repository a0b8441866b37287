package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftstack/weft/internal/pmi"
	"github.com/weftstack/weft/mpi/internal/job"
)

// ErrLauncher is returned by [Init] and [SessionInit] under a launcher of several ranks that does
// not speak PMI-1, such as Open MPI's mpirun or srun without --mpi=pmi2. The ranks could not find
// each other, and each would be a job of one rank. The error names the launcher and what to use
// instead; with WEFT_SINGLETON=1 each rank is a job of its own.
var ErrLauncher = pmi.ErrLauncher

// Init joins the job that this process was started for and connects to all other ranks (MPI_Init).
// It blocks until all ranks have done so, or ctx ends. The launcher is found through the
// environment (PMI_FD, PMI_RANK and PMI_SIZE, or PMI_PORT); without one, the process is a job of
// one rank. Options override the environment variables listed in the package documentation.
//
// A process calls Init once: afterwards Init returns ErrInitialized, or after [World.Finalize]
// ErrFinalized (MPI-4.1, Section 11.2.1). After [SessionInit] it returns the World that the
// sessions share, and the options have no effect. Init removes the environment variables that name
// the connection to the launcher and the files of this rank, so that child processes do not use
// them. Errors to test for: ErrLauncher, ErrOption, ErrInitialized, ErrFinalized.
func Init(ctx context.Context, opts ...Option) (*World, error) {
	return joinOnce(ctx, opts, func() error {
		if process.inited {
			return ErrInitialized
		}
		process.inited = true
		return nil
	})
}

// joinJob joins the job. After an error, spent says whether the connection to the launcher has been
// used.
func joinJob(ctx context.Context, opts []Option) (w *World, spent bool, err error) {
	o, err := buildOptions(TransportHybrid, append([]Option{fromProcess}, opts...))
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.dropTools())
		}
	}()
	if o.gateways != nil {
		return nil, false, fmt.Errorf("%w: WithGateways is for RunLocal", ErrOption)
	}
	if o.Transport == TransportInproc {
		return nil, false, fmt.Errorf("%w: transport %q is for RunLocal", ErrOption, o.Transport)
	}
	client, err := pmi.FromEnv(ctx)
	if err != nil {
		return nil, false, err
	}
	rank, size := 0, 1
	var launcher job.Launcher
	if client != nil {
		rank, size, launcher = client.Rank, client.Size, client
		o.Launcher = client.Addr
	} else {
		launcher = &localLauncher{localJob: &localJob{Local: job.NewLocal(1, nil)}}
		o.Addrs = append(o.Addrs, job.Loopback)[:1]
	}
	if err := o.ReadPlace(rank, client.JobName(), client != nil && client.Spawned); err != nil {
		return nil, client != nil, err
	}
	if size < 1 || size > MaxRanks || rank < 0 || rank >= size {
		return nil, true, fmt.Errorf("%w: rank %d of %d", ErrOption, rank, size)
	}
	w, err = joinAs(ctx, rank, size, o, launcher, client)
	if err == nil {
		forgetFiles()
	}
	return w, client != nil, err
}

// joinAs joins the job as a rank, once its launcher is known. client is nil without one.
func joinAs(
	ctx context.Context, rank, size int, o *options, launcher job.Launcher, client *pmi.Client,
) (*World, error) {
	w := newWorld(rank, size, o, launcher)
	f, err := w.job.OpenTransport()
	if err != nil {
		return nil, err
	}
	joining, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := w.job.Watch(ctx, client, cancel); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	err = w.join(joining, f)
	if err == nil && client != nil && client.Spawned {
		err = w.connectParent(joining)
	}
	if err != nil {
		if cause := context.Cause(joining); cause != nil {
			err = cause
		}
		w.eng.End(err)
		return nil, errors.Join(err, f.Close())
	}
	w.runTools()
	return w, nil
}
