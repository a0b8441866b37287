package launch

import (
	"context"
	"os"
)

// PlacedJob is a job with ranks that the caller places on hosts: emulated ones, for instance.
type PlacedJob struct {
	N       int                                      // number of ranks
	Env     []string                                 // K=V, added to the environment of this process
	Command func(rank int) []string                  // absolute path of a rank's program, and its arguments
	HostEnv func(rank int) []string                  // added to a rank's environment
	Start   func(rank int, start func() error) error // calls start on the host of a rank
	Main    int                                      // 1 + the rank that ends the job when it ends; 0: none
	Prefix  bool                                     // put the rank before each line of output
	Verbose bool                                     // report starts and ends of ranks
}

// Run starts all ranks, passes signals on to them and blocks until all have ended. It
// returns the exit status of the job: 0 if all ranks exited with 0, and that of the first
// rank that failed otherwise. When ctx is done, the ranks are ended.
func (p *PlacedJob) Run(ctx context.Context, signals <-chan os.Signal) (int, error) {
	j := &job{
		n: p.N, env: p.Env, prefix: p.Prefix, verbose: p.Verbose,
		command: p.Command, hostEnv: p.HostEnv, on: p.Start, main: p.Main,
	}
	return j.run(ctx, signals)
}
