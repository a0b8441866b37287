package rdmadev

import (
	"sync/atomic"

	"github.com/weftstack/weft/verbs"
)

// Counter counts messages and the bytes in them.
type Counter struct{ messages, bytes atomic.Uint64 }

// Count counts a message of n bytes.
func (c *Counter) Count(n int) { c.Add(1, n) }

// Add counts several messages.
func (c *Counter) Add(messages, bytes int) {
	c.messages.Add(uint64(messages))
	c.bytes.Add(uint64(bytes))
}

// Load returns the numbers.
func (c *Counter) Load() (messages, bytes uint64) { return c.messages.Load(), c.bytes.Load() }

// Counters counts the RDMA operations on the memory of a peer.
type Counters struct{ Writes, Reads, Atomics Counter }

// count counts a work request.
func (c *Counters) count(wr *verbs.SendWR) {
	n := len(wr.Inline)
	for _, s := range wr.SGL {
		n += s.Len
	}
	t := &c.Atomics
	switch wr.Op {
	case verbs.OpWrite, verbs.OpWriteImm:
		t = &c.Writes
	case verbs.OpRead:
		if n == 0 {
			return // only asks whether the writes before it are placed
		}
		t = &c.Reads
	}
	t.Count(n)
}
