package job

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// MaxSiteName bounds the name of a site, in bytes.
const MaxSiteName = 64

// CheckSite checks the name of a site.
func CheckSite(name string) error {
	if len(name) > MaxSiteName {
		return fmt.Errorf("%w: site %.16q...: name of %d bytes, at most %d", mpierr.ErrOption, name, len(name), MaxSiteName)
	}
	return nil
}

// Site returns the name of the site that the process is at, or an empty one.
func (j *Job) Site() string {
	if j.Options.SiteOf == nil {
		return ""
	}
	return j.Options.SiteOf(j.Rank())
}

// SiteColor returns a number that ranks at one site, and at best only these, have.
func (j *Job) SiteColor() int { return colorOf(j.Site()) }
