package job

import (
	"fmt"
	"os"

	"github.com/weftstack/weft/internal/sites"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// ReadPlace learns from the environment where this process is: from a launcher that knows sites, or from a sites file.
// job names the job. Processes are numbered by rank, also those of one host.
func (o *Options) ReadPlace(rank int, job string, spawned bool) (err error) {
	var p *sites.Process
	if s := os.Getenv(sites.EnvProcess); s != "" {
		_ = os.Unsetenv(sites.EnvProcess) // it has a key, and names this process
		p, err = sites.DecodeProcess(s)
	} else if job != "" {
		if os.Getenv(sites.EnvFile) != "" {
			// The job of spawned processes has another name, so another number and key, than that of their parents.
			o.SpawnsNone = fmt.Errorf("%s is for the processes that a job begins with: only weft run -sites spawns others", sites.EnvFile)
		}
		if spawned && o.SpawnsNone != nil {
			err = o.SpawnsNone
		} else {
			p, err = sites.ProcessFromEnv(os.Getenv, job, hostID(), rank, rank)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", mpierr.ErrOption, err)
	}
	if p == nil {
		return nil
	}
	if o.SiteOf == nil {
		o.SiteOf = func(int) string { return p.Names[p.Site] }
	}
	if len(p.Gateways) > 0 {
		o.Place = p
	}
	return nil
}
