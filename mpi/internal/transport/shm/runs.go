package shm

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/cma"
	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// memoryRuns is memory of another process that is copied from its beginning to its end: left bytes at
// addr, or in the runs of a table.
type memoryRuns struct {
	pid   int
	addr  uint64
	left  int
	table *bufpool.Buffer
	list  []byte // entries of the table that are not copied yet
	skip  int    // bytes of the first of them that are copied
}

// load reads the table of count runs that is at addr. They must have as much as is left to copy.
func (m *memoryRuns) load(count int) error {
	n := count * runEntry
	m.table = bufpool.Get(n)
	m.list = m.table.Bytes(n)
	if err := cma.Read(m.pid, m.addr, m.list); err != nil {
		return err
	}
	all := 0
	for i := 0; i < n; i += runEntry {
		k := binary.NativeEndian.Uint64(m.list[i+8:])
		if k == 0 || k > uint64(math.MaxInt-all) {
			return fmt.Errorf("%w: run of %d bytes in a message of %d", mpierr.ErrProtocol, k, m.left)
		}
		all += int(k)
	}
	if all < m.left {
		return fmt.Errorf("%w: runs of %d bytes in a message of %d", mpierr.ErrProtocol, all, m.left)
	}
	return nil
}

// read copies the next n bytes, or fewer, to pieces, which have room for n, and returns how many.
func (m *memoryRuns) read(to [][]byte, n int) (int, error) {
	if m.table == nil {
		err := cma.ReadScattered(m.pid, m.addr, to)
		m.addr += uint64(n)
		return n, err
	}
	var runs [cma.MaxPieces]cma.Run
	k, got := 0, 0
	for ; k < len(runs) && got < n; k++ {
		addr := binary.NativeEndian.Uint64(m.list) + uint64(m.skip)
		length := int(binary.NativeEndian.Uint64(m.list[8:])) - m.skip
		if length > n-got {
			length = n - got
			m.skip += length
		} else {
			m.list, m.skip = m.list[runEntry:], 0
		}
		runs[k] = cma.Run{Addr: addr, Len: length}
		got += length
	}
	return got, cma.ReadRuns(m.pid, runs[:k], to)
}
