package mpi

import (
	"encoding/binary"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// procName identifies a process among those of all jobs. Within an engine a process has a handle
// instead: its rank in the world for the own job, for others see remoteProcesses. Groups consist of
// handles; messages between processes carry names.
type procName struct {
	job  uint64 // derived from the job key
	rank uint32 // in the world of that job
}

const procNameLen = 12

// setJob sets the job that the peers belong to.
func (e *engine) setJob(job uint64) {
	e.job = job
	for _, p := range e.peers {
		p.name.job = e.job
	}
}

// handle returns the handle of a process.
func (e *engine) handle(n procName) (int32, bool) {
	if n.job == e.job && int64(n.rank) < int64(len(e.peers)) && e.peers[n.rank].name == n {
		return int32(n.rank), true
	}
	return e.remoteHandle(n)
}

// appendNames appends the names of a group to b.
func (e *engine) appendNames(b []byte, group []int32) []byte {
	for _, h := range group {
		n := e.peer(h).name
		b = binary.BigEndian.AppendUint64(b, n.job)
		b = binary.BigEndian.AppendUint32(b, n.rank)
	}
	return b
}

// parseNames returns the handles of the processes that appendNames wrote. All
// must be known here.
func (e *engine) parseNames(b []byte) ([]int32, error) {
	if len(b)%procNameLen != 0 {
		return nil, fmt.Errorf("%w: group of %d bytes", mpierr.ErrProtocol, len(b))
	}
	group := make([]int32, 0, len(b)/procNameLen)
	for ; len(b) > 0; b = b[procNameLen:] {
		n := procName{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}
		h, ok := e.handle(n)
		if !ok {
			return nil, fmt.Errorf("%w: no link to rank %d of another job", mpierr.ErrRank, n.rank)
		}
		group = append(group, h)
	}
	return group, nil
}
