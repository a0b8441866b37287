package mpi

import (
	"sync/atomic"

	"github.com/weftstack/weft/verbs"
)

// Traffic is a number of messages and of the bytes in them, without headers
// (MPI-4.1, Section 15.3.7).
type Traffic struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

func (t *Traffic) count(n int) {
	t.Messages++
	t.Bytes += uint64(n)
}

// add returns the sum.
func (t Traffic) add(u Traffic) Traffic {
	return Traffic{t.Messages + u.Messages, t.Bytes + u.Bytes}
}

// atomicTraffic is Traffic that several goroutines count.
type atomicTraffic struct{ messages, bytes atomic.Uint64 }

func (t *atomicTraffic) count(n int) { t.add(1, n) }

func (t *atomicTraffic) add(messages, bytes int) {
	t.messages.Add(uint64(messages))
	t.bytes.Add(uint64(bytes))
}

func (t *atomicTraffic) load() Traffic { return Traffic{t.messages.Load(), t.bytes.Load()} }

// rdmaCounts counts the RDMA operations on a peer.
type rdmaCounts struct{ writes, reads, atomics atomicTraffic }

func (r *rdmaCounts) count(wr *verbs.SendWR) {
	n := len(wr.Inline)
	for _, s := range wr.SGL {
		n += s.Len
	}
	t := &r.atomics
	switch wr.Op {
	case verbs.OpWrite, verbs.OpWriteImm:
		t = &r.writes
	case verbs.OpRead:
		if n == 0 {
			return // only asks whether the writes before it are placed
		}
		t = &r.reads
	}
	t.count(n)
}
