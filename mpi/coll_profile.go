package mpi

import (
	"time"

	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/collective"
)

// profileNames returns what the profiler calls a collective: blocking, and not.
func profileNames(k coll.Kind) (name, iname string) {
	if k == coll.Neighbor {
		return "Neighbor", "Ineighbor"
	}
	s := []byte(k.String())
	out := make([]byte, 0, len(s))
	up := false
	for _, b := range s {
		switch {
		case b == '-':
			up = true
		case up:
			out, up = append(out, b-'a'+'A'), false
		default:
			out = append(out, b)
		}
	}
	iname = "I" + string(out)
	out[0] -= 'a' - 'A'
	return string(out), iname
}

// collCallNames holds the profileNames of all collectives.
var collCallNames = func() (names [256][2]string) {
	for i := range names {
		if k := coll.Kind(i); k < coll.Kinds || k == coll.Neighbor || k == coll.Alltoallw {
			names[i][0], names[i][1] = profileNames(k)
		}
	}
	return names
}()

// profiledCall is what is told about a collective.
type profiledCall struct {
	kind    coll.Kind
	peer, n int
}

func profiled(k *collective.Call) profiledCall {
	p := profiledCall{k.Kind, NoPeer, k.Bytes()}
	if root, ok := k.RootRank(); ok {
		p.peer = root
	}
	return p
}

// finishRecorded is finish with a Profiler.
func (c *Comm) finishRecorded(k *collective.Call) error {
	p, t := profiled(k), time.Now()
	err := k.End()
	c.record(t, collCallNames[p.kind][0], p.peer, 0, p.n, err)
	return err
}

// startRecorded is start with a Profiler.
func (c *Comm) startRecorded(k *collective.Call) *Request {
	p, t := profiled(k), time.Now()
	r := c.inBackground(k)
	c.record(t, collCallNames[p.kind][1], p.peer, 0, p.n, nil)
	return r
}
