package mpi

import (
	"fmt"
	"math"
	"os"

	"github.com/weftstack/weft/mpi/internal/hashid"
)

// host names the host of this rank.
func (w *World) host() string {
	id := hostID()
	if f := w.opts.hostOf; f != nil {
		id = f(w.Rank())
	}
	if p := w.opts.place; p != nil { // a host that plays several sites is one at each
		id += fmt.Sprint("@", p.Site)
	}
	return id
}

func (w *World) hostColor() int { return colorOf(w.host()) }

// colorOf makes a color of a host: not negative, where an int has 32 bits, either.
func colorOf(host string) int { return int(hashid.Of("host", host) & math.MaxInt) }

// hostID names the host: see World.host.
func hostID() string {
	name, err := os.Hostname()
	if err != nil {
		return "?"
	}
	return name
}
