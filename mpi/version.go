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
	place := make(map[int32]int, len(h.ranks))
	for i, r := range h.ranks {
		place[r] = i
	}
	out := make([]int, len(ranks))
	for i, r := range ranks {
		out[i] = Undefined
		if r == ProcNull {
			out[i] = ProcNull
		} else if r >= 0 && r < len(g.ranks) {
			if p, ok := place[g.ranks[r]]; ok {
				out[i] = p
			}
		}
	}
	return out
}
