package mpi

import (
	"context"
	"runtime/debug"
)

// Version is the version of the MPI standard that the package follows
// (MPI_Get_version).
const (
	Version    = 4
	Subversion = 1
)

// LibraryVersion names this library and its version (MPI_Get_library_version).
func LibraryVersion() string {
	const path = "github.com/weftstack/weft"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == path && m.Version != "" {
				return "weft " + m.Version
			}
		}
	}
	return "weft (unknown version)"
}

// Idup starts Dup (MPI_Comm_idup). The new communicator must not be used before
// the request is done, which as Dup does not communicate it is at once.
func (c *Comm) Idup() (*Comm, *Request, error) {
	d, err := c.Dup(context.Background())
	if err != nil {
		return nil, nil, err
	}
	return d, doneRequest(c.w, Status{}, nil), nil
}

// TranslateRanks is Translate for several members at once
// (MPI_Group_translate_ranks). ProcNull stays ProcNull; what is no rank of g
// becomes Undefined.
func (g Group) TranslateRanks(ranks []int, h Group) []int {
	out := make([]int, len(ranks))
	for i, r := range ranks {
		switch {
		case r == ProcNull:
			out[i] = ProcNull
		case r < 0 || r >= len(g.ranks):
			out[i] = Undefined
		default:
			out[i] = g.Translate(r, h)
		}
	}
	return out
}
