package ddp

// Mem is one element of a scatter/gather list: memory and, if it is
// registered, the region it is part of, which is pinned while a work queue
// holds the element.
type Mem struct {
	B      []byte
	Region *Region
}

// SGLen returns the number of bytes in a list.
func SGLen(l []Mem) (n uint64) {
	for i := range l {
		n += uint64(len(l[i].B))
	}
	return n
}

// Scatter copies p into the list, off bytes after its beginning, and returns
// how many bytes it had room for.
func Scatter(l []Mem, off uint64, p []byte) (n int) {
	for i := 0; i < len(l) && len(p) > 0; i++ {
		b := l[i].B
		if off >= uint64(len(b)) {
			off -= uint64(len(b))
			continue
		}
		c := copy(b[off:], p)
		off, p, n = 0, p[c:], n+c
	}
	return n
}

// Unpin takes the pins of the list back and forgets its memory.
func Unpin(l []Mem) {
	for i := range l {
		if r := l[i].Region; r != nil {
			r.Unpin()
		}
		l[i] = Mem{}
	}
}
