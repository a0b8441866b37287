package mpi

import "time"

// profileNames returns what the profiler calls the collective: blocking, and not.
func (c Coll) profileNames() (name, iname string) {
	if c == collNeighbor {
		return "Neighbor", "Ineighbor"
	}
	s := []byte(c.String())
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
		if c := Coll(i); c < collCount || c == collNeighbor || c == collAlltoallw {
			names[i][0], names[i][1] = c.profileNames()
		}
	}
	return names
}()

// profiledCall is what is told about a collective.
type profiledCall struct {
	c    *Comm
	kind Coll
	peer int
	n    int
}

func (k *collective) profiled() profiledCall {
	p := profiledCall{k.comm.c, k.kind, NoPeer, len(k.SendBuf)}
	switch k.kind {
	case CollBcast, CollReduce, CollGather, CollGatherv, CollScatter, CollScatterv:
		p.peer = k.Root
	}
	if k.SendBuf == nil {
		p.n = len(k.RecvBuf)
	}
	return p
}

// finishRecorded is finish with a Profiler.
func finishRecorded(k *collective) error {
	p, t := k.profiled(), time.Now()
	err := k.end()
	p.c.record(t, collCallNames[p.kind][0], p.peer, 0, p.n, err)
	return err
}

// startRecorded is start with a Profiler.
func startRecorded(k *collective) *Request {
	p, t := k.profiled(), time.Now()
	r := goRequest(k.comm.c.w, k.inBackground)
	p.c.record(t, collCallNames[p.kind][1], p.peer, 0, p.n, nil)
	return r
}
