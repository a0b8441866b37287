package reasm

import "math/bits"

// messageKey names a message within its association: stream, U bit and sequence
// number (SSN or MID).
func messageKey(sid uint16, unordered bool, num uint32) uint64 {
	k := uint64(sid)<<33 | uint64(num)
	if unordered {
		k |= 1 << 32
	}
	return k
}

// hash mixes two keys with a secret seed, so that a peer cannot aim at
// collisions.
func hash(seed, a uint64, b uint32) uint64 {
	hi, lo := bits.Mul64(a^seed^0x9e3779b97f4a7c15, uint64(b)^bits.RotateLeft64(seed, 32)^0xd1b54a32d192ed03)
	return hi ^ lo
}

// minBuckets is what a table begins with. Tables grow with what they hold, so
// they are bounded by maxHeldFragments and maxHeldMessages.
const minBuckets = 64

// fragTable finds fragments by their slot and sequence number. It is a chained
// hash table whose links are in the fragments. The zero table is empty.
type fragTable struct {
	seed uint64
	b    []*frag
	n    int
}

func (t *fragTable) at(slot uint64, seq uint32) **frag {
	return &t.b[hash(t.seed, slot, seq)&uint64(len(t.b)-1)]
}

// find returns the fragment with this slot and seq, or nil.
func (t *fragTable) find(slot uint64, seq uint32) *frag {
	if t.n == 0 {
		return nil
	}
	f := *t.at(slot, seq)
	for f != nil && (f.seq != seq || f.slot != slot) {
		f = f.hnext
	}
	return f
}

// insert adds f; there must be none with its slot and seq.
func (t *fragTable) insert(f *frag) {
	if t.n >= len(t.b) {
		old := t.b
		t.b = make([]*frag, max(minBuckets, 2*len(old)))
		for _, g := range old {
			for g != nil {
				next := g.hnext
				p := t.at(g.slot, g.seq)
				g.hnext, *p = *p, g
				g = next
			}
		}
	}
	p := t.at(f.slot, f.seq)
	f.hnext, *p = *p, f
	t.n++
}

// remove takes out f, which must be in the table.
func (t *fragTable) remove(f *frag) {
	p := t.at(f.slot, f.seq)
	for *p != f {
		p = &(*p).hnext
	}
	*p, f.hnext = f.hnext, nil
	t.n--
}

// Kinds of msgTable, and of the hash link in a message it uses.
const (
	linkNumbered = iota // by key
	linkOpen            // by the TSN that continues the message
	hashLinks
)

// msgTable finds messages by a 64-bit key. It is a chained hash table whose
// links are in the messages. The zero table is empty.
type msgTable struct {
	seed uint64
	link int
	b    []*message
	n    int
}

func (t *msgTable) key(m *message) uint64 {
	if t.link == linkOpen {
		return uint64(m.next)
	}
	return m.key
}

func (t *msgTable) at(key uint64) **message {
	return &t.b[hash(t.seed, key, 0)&uint64(len(t.b)-1)]
}

// find returns the message with this key, or nil.
func (t *msgTable) find(key uint64) *message {
	if t.n == 0 {
		return nil
	}
	m := *t.at(key)
	for m != nil && t.key(m) != key {
		m = m.hnext[t.link]
	}
	return m
}

// insert adds m, whose key must not change while it is in the table.
func (t *msgTable) insert(m *message) {
	if t.n >= len(t.b) {
		old := t.b
		t.b = make([]*message, max(minBuckets, 2*len(old)))
		for _, o := range old {
			for o != nil {
				next := o.hnext[t.link]
				p := t.at(t.key(o))
				o.hnext[t.link], *p = *p, o
				o = next
			}
		}
	}
	p := t.at(t.key(m))
	m.hnext[t.link], *p = *p, m
	m.hashed[t.link] = true
	t.n++
}

// remove takes out m if it is in the table.
func (t *msgTable) remove(m *message) {
	if !m.hashed[t.link] {
		return
	}
	p := t.at(t.key(m))
	for *p != m {
		p = &(*p).hnext[t.link]
	}
	*p, m.hnext[t.link] = m.hnext[t.link], nil
	m.hashed[t.link] = false
	t.n--
}

// appendAll appends every message of the table to dst.
func (t *msgTable) appendAll(dst []*message) []*message {
	for _, m := range t.b {
		for ; m != nil; m = m.hnext[t.link] {
			dst = append(dst, m)
		}
	}
	return dst
}
