package p2p

import (
	"encoding/binary"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// ProcName identifies a process among those of all jobs. Within an engine a process has a handle
// instead: its rank in the world for the own job, for others see RemoteProcesses. Groups consist of
// handles; messages between processes carry names.
type ProcName struct {
	Job  uint64 // derived from the job key
	Rank uint32 // in the world of that job
}

const ProcNameLen = 12

// SetJob sets the job that the peers belong to.
func (e *Engine) SetJob(job uint64) {
	e.Job = job
	for _, p := range e.Peers {
		p.name.Job = e.Job
	}
}

// Handle returns the handle of a process.
func (e *Engine) Handle(n ProcName) (int32, bool) {
	if n.Job == e.Job && int64(n.Rank) < int64(len(e.Peers)) && e.Peers[n.Rank].name == n {
		return int32(n.Rank), true
	}
	return e.remoteHandle(n)
}

// AppendNames appends the names of a group to b.
func (e *Engine) AppendNames(b []byte, group []int32) []byte {
	for _, h := range group {
		n := e.Peer(h).name
		b = binary.BigEndian.AppendUint64(b, n.Job)
		b = binary.BigEndian.AppendUint32(b, n.Rank)
	}
	return b
}

// ParseNames returns the handles of the processes that AppendNames wrote. All
// must be known here.
func (e *Engine) ParseNames(b []byte) ([]int32, error) {
	if len(b)%ProcNameLen != 0 {
		return nil, fmt.Errorf("%w: group of %d bytes", mpierr.ErrProtocol, len(b))
	}
	group := make([]int32, 0, len(b)/ProcNameLen)
	for ; len(b) > 0; b = b[ProcNameLen:] {
		n := ProcName{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}
		h, ok := e.Handle(n)
		if !ok {
			return nil, fmt.Errorf("%w: no link to rank %d of another job", mpierr.ErrRank, n.Rank)
		}
		group = append(group, h)
	}
	return group, nil
}
