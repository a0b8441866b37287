package p2p

import (
	"math/bits"
	"sync"

	"github.com/weftstack/weft/mpi/internal/datatype"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// runTable lists the runs of memory that hold the data of a send, for a link that sends from there. It is the
// owner of the body: when the link releases it, it goes back to its pool.
type runTable struct {
	send *Request
	link transport.RunsLink
	runs [][]byte // its capacity is a power of two
}

const (
	// minTable and maxTable are the capacities of the shortest and of the longest run tables, in runs. A run takes
	// 24 bytes of a table, so the longest takes 1.5 MiB. Items with more runs travel by a packed copy.
	minTable = 1 << minTableBits
	maxTable = 1 << maxTableBits

	minTableBits = 5
	maxTableBits = 16
)

// runTables has tables of 1<<(minTableBits+i) runs in runTables[i].
var runTables [maxTableBits - minTableBits + 1]sync.Pool

// tableClass returns the index in runTables of tables for n runs.
func tableClass(n int) int { return max(bits.Len(uint(n-1)), minTableBits) - minTableBits }

// getRunTable returns an empty table for n runs, at most maxTable.
func getRunTable(n int) *runTable {
	class := tableClass(n)
	if t, ok := runTables[class].Get().(*runTable); ok {
		return t
	}
	return &runTable{runs: make([][]byte, 0, minTable<<class)}
}

// put gives t back. It does nothing if t is nil.
func (t *runTable) put() {
	if t == nil {
		return
	}
	clear(t.runs)
	t.send, t.link, t.runs = nil, nil, t.runs[:0]
	runTables[tableClass(cap(t.runs))].Put(t)
}

// Released implements transport.Owner.
func (t *runTable) Released(err error) {
	r := t.send
	t.put()
	r.Event(err)
}

// sendBy sends hdr and the runs as one message. If it fails, t is given back.
func (t *runTable) sendBy(stream uint16, hdr []byte) error {
	err := t.link.SendRuns(stream, hdr, t.runs, t)
	if err != nil {
		t.put()
	}
	return err
}

// runsLink returns the link to p if it is to send items with gaps from their runs, or else nil.
func (p *Peer) runsLink(x *datatype.Buffer) transport.RunsLink {
	l, ok := p.Link.(transport.RunsLink)
	if !ok || !x.Type.LongRuns(l.MinRun()) {
		return nil
	}
	if n, ok := datatype.Mul(x.Type.RunCount(), x.Count); !ok || n > maxTable {
		return nil
	}
	return l
}

// runTable returns a table of the first n bytes of the data of r, or nil if the link does not send r from its runs.
func (r *Request) runTable(n int) *runTable {
	if r.Gaps.Type == nil {
		return nil
	}
	l := r.Peer.runsLink(&r.Gaps)
	if l == nil {
		return nil
	}
	t := getRunTable(r.Gaps.Type.RunCount() * r.Gaps.Count)
	t.send, t.link = r, l
	for at := 0; at < n; {
		i := len(t.runs)
		k, m := r.Runs(t.runs[i:cap(t.runs)], at, n)
		t.runs = t.runs[:i+k]
		at += m
	}
	return t
}

// sendsRuns reports whether a message of items is one that the link sends from their runs: a packed copy takes
// longer, and the sender does not gain more by having its memory free at once.
func (c *Comm) sendsRuns(x *datatype.Items, dst int, blocks bool) bool {
	if dst < 0 || dst >= len(c.Peers) || c.Hints.Load().Rendezvous != RendezvousMessage {
		return false
	}
	l := c.Peers[dst].runsLink(&x.Gaps)
	return l != nil && x.Len() > l.CopyLimit(blocks)
}
