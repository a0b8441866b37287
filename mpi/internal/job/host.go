package job

import (
	"fmt"
	"math"
	"os"

	"github.com/weftstack/weft/mpi/internal/hashid"
)

// host names the host of this rank.
func (j *Job) host() string {
	id := hostID()
	if f := j.Options.HostOf; f != nil {
		id = f(j.Rank())
	}
	if p := j.Options.Place; p != nil { // a host that plays several sites is one at each
		id += fmt.Sprint("@", p.Site)
	}
	return id
}

// HostColor returns a number that ranks of one host, and at best only these, have.
func (j *Job) HostColor() int { return colorOf(j.host()) }

// colorOf makes a color of a host: not negative, where an int has 32 bits, either.
func colorOf(host string) int { return int(hashid.Of("host", host) & math.MaxInt) }

// hostID names the host: see Job.host.
func hostID() string {
	name, err := os.Hostname()
	if err != nil {
		return "?"
	}
	return name
}
