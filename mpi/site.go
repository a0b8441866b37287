package mpi

import (
	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// MaxSiteName bounds the name of a site, in bytes.
const MaxSiteName = job.MaxSiteName // 64

// WithSite says at which site a process is: of returns the name of the site of a rank of the job's
// first communicator, and is called for the own rank only, so that the ranks of RunLocal can play
// several sites. Sites are groups of hosts with a long way between them, as clusters at several
// places are. Processes tell each other their sites when the job begins, and when jobs are started
// or connected. Collectives then cross the way between two sites as few times as they can; see
// ParseTuning. Processes that give no name are at one site, which has an empty name. The default is
// the environment variable WEFT_SITE. A name longer than MaxSiteName gives ErrOption, when the job
// begins.
func WithSite(of func(rank int) string) Option {
	return func(o *options) error {
		o.SiteOf = of
		return nil
	}
}

// Site returns the name of the site that the process is at, or an empty one: see WithSite.
func (w *World) Site() string { return w.job.Site() }

// SiteOf returns the name of the site of a rank of c, of the remote group of an intercommunicator.
// It is local. The name is empty if the rank has not told it. Errors: ErrRank.
func (c *Comm) SiteOf(rank int) (string, error) {
	if err := c.comm.CheckPeer(p2p.SlotComm, rank); err != nil {
		return "", err
	}
	return c.comm.Peers[rank].Site, nil
}
