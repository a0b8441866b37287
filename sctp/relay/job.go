package relay

import (
	"fmt"
	"slices"

	"github.com/weftstack/weft/sctp/relay/frame"
)

// job is a job that the gateway relays for.
type job struct {
	id     uint32
	key    []byte
	class  uint8
	memory account
	local  map[uint32]*conn // processes of this site: node<<16 | process
	flows  int              // in the gateway
	// derived is true if the key is from GatewayConfig.JobKey: the gateway forgets the job when it has neither processes
	// nor flows.
	derived bool
}

// checkJob returns an error for a number or a key that a job cannot have.
func checkJob(job uint32, key []byte) error {
	switch {
	case job == 0 || job > frame.MaxJob:
		return fmt.Errorf("%w: job %d, want 1 to %d", ErrConfig, job, frame.MaxJob)
	case len(key) < MinKey:
		return fmt.Errorf("%w: key of job %d of %d bytes, want at least %d", ErrConfig, job, len(key), MinKey)
	}
	return nil
}

// AddJob lets the gateway relay for a job whose processes prove that they know key. It replaces the key of a job that
// it knows, and the class of flows that begin later. Errors: ErrConfig.
func (g *Gateway) AddJob(id uint32, key []byte, o JobOptions) error {
	if err := checkJob(id, key); err != nil {
		return err
	}
	class, err := g.cfg.classOf(id, o.Class)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	j := g.jobs[id]
	if j == nil {
		j = g.newJob(id)
	}
	j.key, j.class, j.derived = slices.Clone(key), class, false
	return nil
}

// RemoveJob ends the legs of the processes of a job, and forgets it. Processes of a job whose key is from GatewayConfig.JobKey can
// connect again.
func (g *Gateway) RemoveJob(id uint32) {
	g.mu.Lock()
	var legs []*conn
	if j := g.jobs[id]; j != nil {
		for _, c := range j.local {
			legs = append(legs, c)
		}
		delete(g.jobs, id)
	}
	g.mu.Unlock()
	for _, c := range legs {
		c.a.Abort(fmt.Sprintf("relay: job %d was removed", id))
	}
}

// newJob makes a job. mu is held.
func (g *Gateway) newJob(id uint32) *job {
	j := &job{id: id, local: make(map[uint32]*conn)}
	j.memory.limit, j.memory.above = int64(g.cfg.JobMemory), &g.memory
	g.jobs[id] = j
	return j
}

// jobKey returns the key of a job, or nil for one that is not known. It keeps nothing. mu is held.
func (g *Gateway) jobKey(id uint32) []byte {
	if j := g.jobs[id]; j != nil && !j.derived {
		return j.key
	}
	if g.cfg.JobKey == nil || id == 0 || id > frame.MaxJob {
		return nil
	}
	if key := g.cfg.JobKey(id); len(key) >= MinKey {
		return key
	}
	return nil
}

// knows reports whether the gateway relays for a job. With GatewayConfig.JobKey it does for all: whether there is a
// key was checked where a process has connected. mu is held.
func (g *Gateway) knows(id uint32) bool { return g.jobs[id] != nil || g.cfg.JobKey != nil }

// needJob returns a job that the gateway knows. Jobs that it makes here are as few as processes and flows. mu is held.
func (g *Gateway) needJob(id uint32) *job {
	j := g.jobs[id]
	if j == nil {
		j = g.newJob(id)
		j.derived = true
		j.class, _ = g.cfg.classOf(id, "") // without a name it does not fail
	}
	return j
}

// leaveJob is called after a process or flow of the job has gone. mu is held.
func (g *Gateway) leaveJob(j *job) {
	if j.derived && j.flows == 0 && len(j.local) == 0 && g.jobs[j.id] == j {
		delete(g.jobs, j.id)
	}
}
