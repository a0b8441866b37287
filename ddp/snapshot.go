package ddp

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// MaxSnapshots bounds the bytes in the copies of one [Snapshots]. A copy is up to twice as
// large as its original, by its size class.
const MaxSnapshots = 1 << 20

// Snapshots counts the copies that a stream has in flight for regions with ReadSnapshot. The
// lower layer reads the payload of a segment again for retransmissions; a copy keeps them
// equal to the first transmission when the memory changes meanwhile.
type Snapshots struct {
	held atomic.Int64 // bytes
}

// Held returns the bytes in copies.
func (s *Snapshots) Held() int64 { return s.held.Load() }

// Room reports whether there is room for a copy of any size that Message makes.
func (s *Snapshots) Room() bool { return s.held.Load() <= MaxSnapshots-maxBatchBytes }

// snapshot is a copy of the payload of a segment, or of a Train: its Body and Owner.
type snapshot struct {
	b     []byte // of a size that is a power of two
	owner Owner
	of    *Snapshots
	left  atomic.Int32 // segments that were not released
}

// snapshotPools have copies of 1<<(minSnapshotBits+i) bytes.
var snapshotPools [maxSnapshotBits - minSnapshotBits + 1]sync.Pool

const minSnapshotBits, maxSnapshotBits = 12, 18 // 4 KiB, and 256 KiB: maxBatchBytes

// take copies p, the payload of n segments, whose owner is told when they are done with.
func (s *Snapshots) take(p []byte, n int, owner Owner) *snapshot {
	class := max(bits.Len(uint(len(p)-1)), minSnapshotBits) - minSnapshotBits
	c, _ := snapshotPools[class].Get().(*snapshot)
	if c == nil {
		c = &snapshot{b: make([]byte, 1<<(minSnapshotBits+class))}
	}
	c.owner, c.of = owner, s
	c.left.Store(int32(n))
	s.held.Add(int64(len(c.b)))
	copyInOrder(c.b, p)
	return c
}

// copyInOrder copies p in the order of addresses, where it is aligned 8 bytes at once,
// as atomic.LoadUint64 loads them: copy does it in any order.
func copyInOrder(dst, p []byte) {
	for i := 0; i < len(p); {
		at := unsafe.Pointer(&p[i])
		if uintptr(at)%8 == 0 && len(p)-i >= 8 {
			binary.NativeEndian.PutUint64(dst[i:], atomic.LoadUint64((*uint64)(at)))
			i += 8
		} else {
			dst[i] = p[i]
			i++
		}
	}
}

// Released implements Owner.
func (c *snapshot) Released(err error) { c.ReleasedN(1, err) }

// ReleasedN implements BatchOwner.
func (c *snapshot) ReleasedN(n int, err error) {
	o := c.owner
	if c.left.Add(int32(-n)) == 0 {
		c.of.held.Add(int64(-len(c.b)))
		c.owner, c.of = nil, nil
		snapshotPools[bits.Len(uint(len(c.b)-1))-minSnapshotBits].Put(c)
	}
	ReleaseN(o, n, err)
}
