package launch

import (
	"context"
	"os"

	"github.com/weftstack/weft/internal/cli"
	"github.com/weftstack/weft/internal/sites"
)

// PlacedJob is a job with ranks that the caller places on hosts: emulated ones, for instance.
// Processes that they spawn are given to the hosts by turns.
type PlacedJob struct {
	Ranks   []int                                    // host of each rank, counted from 0
	Hosts   int                                      // number of hosts
	Env     []string                                 // K=V, added to the environment of this process
	Command func(rank int) []string                  // absolute path of a rank's program, and its arguments
	HostEnv func(host int) []string                  // added to the environment of what runs on a host
	Start   func(host int, start func() error) error // calls start on a host
	Main    int                                      // 1 + the rank that ends the job when it ends; 0: none
	// Sites, if not nil, is the sites file of the job. HostName is the name in it of a host, or "" for one that is in
	// no site: a gateway, say. Class is the class of the job, or "".
	Sites    *sites.File
	HostName func(host int) string
	Class    string
	Prefix   bool // put the rank before each line of output
	Verbose  bool // report starts and ends of ranks
}

// Run starts all ranks, passes signals on to them and blocks until all have ended. It
// returns the exit status of the job: 0 if all ranks exited with 0, and that of the first
// rank that failed otherwise. When ctx is done, the ranks are ended.
func (p *PlacedJob) Run(ctx context.Context, signals <-chan os.Signal) (int, error) {
	j := &job{
		n: len(p.Ranks), env: p.Env, prefix: p.Prefix, verbose: p.Verbose,
		command: p.Command, hostEnv: p.HostEnv, on: p.Start, main: p.Main, emulated: p.Ranks, hosts: p.Hosts,
	}
	if p.Sites != nil {
		var err error
		if j.sites, err = newSiteJob(p.Sites, p.Class, "", len(p.Ranks)); err != nil {
			return cli.ExitFail, err
		}
		j.hostName = p.HostName
	}
	return j.run(ctx, signals)
}
