package tcp

import "github.com/weftstack/weft/mpi/internal/transport"

// batch is a sequence of messages that are written one after another.
type batch struct {
	parts  []part
	owners []transport.Owner
	arena  []byte // copied bytes
	last   bool   // the last of parts is the end of arena: a copied message extends it

	// Where the next byte to write is: runs of the part at that are written, and bytes of the next run.
	at, run, skip int
}

// part is one run of memory, or the runs of a body. The slice of them belongs to their sender.
type part struct {
	buf  []byte
	runs [][]byte // in place of buf, if not nil
}

// copy appends a copy of p.
func (b *batch) copy(p []byte) {
	if len(p) == 0 {
		return
	}
	at := len(b.arena)
	moved := at+len(p) > cap(b.arena)
	b.arena = append(b.arena, p...) // parts still reference the old array if it moves
	if b.last && !moved {
		i := len(b.parts) - 1
		b.parts[i].buf = b.parts[i].buf[:len(b.parts[i].buf)+len(p)]
	} else {
		b.parts = append(b.parts, part{buf: b.arena[at:]})
		b.last = true
	}
}

// reference appends a body that is not copied, and that is not empty.
func (b *batch) reference(p part) {
	b.parts = append(b.parts, p)
	b.last = false
}

// next stores what is to be written next, as far as to has room, and returns how many runs of memory that are: none
// if all is written.
func (b *batch) next(to [][]byte) (k int) {
	run, skip := b.run, b.skip
	for i := b.at; i < len(b.parts) && k < len(to); i++ {
		if p := &b.parts[i]; p.runs == nil {
			to[k] = p.buf
			k++
		} else {
			k += copy(to[k:], p.runs[run:])
		}
		run = 0
	}
	if k > 0 {
		to[0] = to[0][skip:]
	}
	return k
}

// written records that the next n bytes are written.
func (b *batch) written(n int) {
	n += b.skip
	for b.at < len(b.parts) {
		p := &b.parts[b.at]
		if p.runs == nil {
			if n < len(p.buf) {
				break
			}
			n -= len(p.buf)
		} else {
			for ; b.run < len(p.runs); b.run++ {
				if n < len(p.runs[b.run]) {
					b.skip = n
					return
				}
				n -= len(p.runs[b.run])
			}
		}
		b.at, b.run = b.at+1, 0
	}
	b.skip = n
}

// empty reports whether nothing is left to write.
func (b *batch) empty() bool { return b.at == len(b.parts) }

// emptied returns the memory of b for another batch.
func (b *batch) emptied() batch {
	clear(b.parts)
	clear(b.owners)
	if cap(b.arena) > queueLimit {
		b.arena = nil
	}
	return batch{parts: b.parts[:0], owners: b.owners[:0], arena: b.arena[:0]}
}
