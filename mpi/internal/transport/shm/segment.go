package shm

import (
	"encoding/hex"
	"errors"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/cma"
)

// Segment is the part of a business card by which the ranks of a host find and map the
// shared-memory segment.
type Segment struct {
	Place string `json:"p"` // equal for processes that may share memory
	PID   int    `json:"i"`
	FD    int    `json:"f"`
	Nonce string `json:"n"`
	Probe uint64 `json:"a,omitempty"` // where the nonce is in the memory of the process
}

const nonceLen = cma.ProbeLen

// layoutVersion is the version of the shared-memory layout. Ranks of different versions use the
// network.
const layoutVersion = 2

// mappingHeader begins the segment of a rank.
type mappingHeader struct {
	nonce [nonceLen]byte // written to the file before it is mapped
	_     [112]byte
	awake atomic.Uint32 // 1 while the rank polls: it needs no doorbell
	_     [124]byte
}

const headerLen = int(unsafe.Sizeof(mappingHeader{}))

// mapping is the shared memory into which the other ranks of the host write messages for one
// rank: a header, a ringControl for each of them, then their ring buffers.
type mapping struct{ mem []byte }

func (s *mapping) header() *mappingHeader { return (*mappingHeader)(unsafe.Pointer(&s.mem[0])) }

// ring returns the i-th of n ring buffers.
func (s *mapping) ring(i, n int) (*ringControl, []byte) {
	ctl := (*ringControl)(unsafe.Pointer(&s.mem[headerLen+i*ringControlLen]))
	size := ringSize(n)
	at := dataAt(n) + i*size
	return ctl, s.mem[at : at+size : at+size]
}

// ringSize returns the size of each of n ring buffers, a power of 2.
func ringSize(n int) int {
	size := max(min(ringBudget/max(n, 1), MaxRing), minRing)
	return 1 << (bits.Len(uint(size)) - 1)
}

// dataAt returns the offset of the first ring buffer, a multiple of the page size.
func dataAt(n int) int { return (headerLen + n*ringControlLen + 4095) &^ 4095 }

// mappingLen returns the length of a segment with n ring buffers.
func mappingLen(n int) int { return dataAt(n) + n*ringSize(n) }

// open maps the segment of another rank, which has n ring buffers.
func (c *Segment) open(n int) (*mapping, error) {
	f, err := openFile(c.PID, c.FD)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var nonce [nonceLen]byte
	if _, err := f.ReadAt(nonce[:], 0); err != nil {
		return nil, err
	}
	if hex.EncodeToString(nonce[:]) != c.Nonce {
		return nil, errors.New("mpi: shared-memory segment of another process")
	}
	return mapFile(f, mappingLen(n))
}
