package collective

import (
	"github.com/weftstack/weft/mpi/internal/coll"
	"github.com/weftstack/weft/mpi/internal/datatype"
)

// What a collective sends and receives may not overlap. What counts is the data, not the memory from
// its first byte to its last: blocks of both may interleave in one array.

// blocks returns the blocks of a buffer.
func blocks(b []byte, l *coll.Layout) []datatype.Buffer {
	if l == nil {
		return []datatype.Buffer{bytesIn(b)}
	}
	all := make([]datatype.Buffer, 0, len(l.Counts))
	for i, at := range l.Displs {
		if n := l.Counts[i]; n > 0 {
			all = append(all, bytesIn(b[at:at+n]))
		}
	}
	return all
}

// bytesIn describes all of b.
func bytesIn(b []byte) datatype.Buffer {
	x := datatype.Items{Mem: b}
	return x.Described()
}

// overlaps reports whether blocks that are sent and blocks that are received share memory. A layout
// is nil for a whole buffer.
func overlaps(send []byte, sl *coll.Layout, recv []byte, rl *coll.Layout) bool {
	if !coll.Overlap(send, recv) {
		return false
	}
	if sl == nil && rl == nil {
		return true
	}
	return datatype.Overlap(blocks(send, sl), blocks(recv, rl))
}
