package datatype

// A transfer copies between the memory of items and their data without gaps, the packed
// stream.
type transfer struct {
	mem    []byte
	origin int  // index in mem of the beginning of the items
	out    bool // from memory to the stream; otherwise from the stream to memory
}

// Pack copies the data of count items from src to dst.
func (t *Type) Pack(dst, src []byte, count int) {
	t.part(transfer{mem: src, out: true}, dst[:t.size*count], count, 0)
}

// Unpack is the reverse of Pack. It stops where src ends.
func (t *Type) Unpack(dst, src []byte, count int) {
	t.part(transfer{mem: dst}, src[:min(len(src), t.size*count)], count, 0)
}

// part copies the part of the packed stream of count items that begins at from and is as
// long as b. It takes time for what it copies and for finding from in the tree, not for
// what lies before from.
func (t *Type) part(c transfer, b []byte, count, from int) {
	if len(b) == 0 {
		return
	}
	extent := t.ub - t.lb
	if run := t.root; len(run.kids) == 0 && run.count == 1 {
		run.count, run.stride = count, extent
		if extent == run.n {
			run.count, run.n = 1, run.n*count
		}
		run.part(c, b, c.origin, from)
		return
	}
	i := from / t.size
	from -= i * t.size
	for base := c.origin + i*extent; len(b) > 0; base += extent {
		n := min(t.size-from, len(b))
		t.root.part(c, b[:n], base, from)
		b, from = b[n:], 0
	}
}

// part copies the bytes of the loop at base that begin at from in its data, as many as b has.
func (x *loop) part(c transfer, b []byte, base, from int) {
	base += x.off
	if from > 0 {
		i := from / x.n
		from -= i * x.n
		base += i * x.stride
	}
	if len(x.kids) == 0 {
		x.runPart(c, b, base, from)
		return
	}
	for len(b) > 0 {
		n := min(x.n-from, len(b))
		for k, done := x.kidAt(from), 0; done < n; k++ {
			kid := &x.kids[k]
			skip := from + done - kid.at
			m := min(kid.count*kid.n-skip, n-done)
			if kid.count == 1 && len(kid.kids) == 0 {
				c.copy(b[done:done+m], base+kid.off+skip)
			} else {
				kid.part(c, b[done:done+m], base, skip)
			}
			done += m
		}
		b, from = b[n:], 0
		base += x.stride
	}
}

// runPart is part of a loop without kids. base is the place of the first run, of which the first
// from bytes are not copied.
func (x *loop) runPart(c transfer, b []byte, base, from int) {
	if from > 0 {
		n := min(x.n-from, len(b))
		c.copy(b[:n], base+from)
		b = b[n:]
		base += x.stride
	}
	if whole := len(b) / x.n; whole > 1 && x.n <= maxShortRun {
		n := whole * x.n
		if c.out {
			gather(b[:n], c.mem, base, x.n, x.stride)
		} else {
			scatter(c.mem, b[:n], base, x.n, x.stride)
		}
		b = b[n:]
		base += whole * x.stride
	}
	for len(b) > 0 {
		n := min(x.n, len(b))
		c.copy(b[:n], base)
		b = b[n:]
		base += x.stride
	}
}

func (c *transfer) copy(b []byte, base int) {
	if c.out {
		copy(b, c.mem[base:base+len(b)])
	} else {
		copy(c.mem[base:base+len(b)], b)
	}
}

// maxShortRun is the length up to which runs are worth not calling memmove for each: the processor
// loads several of them at a time, where they are not in a cache.
const maxShortRun = 32

// gather copies runs of n bytes, at most maxShortRun, stride bytes apart, to dst.
func gather(dst, src []byte, base, n, stride int) {
	switch n {
	case 32:
		for m := 0; m <= len(dst)-32; m += 32 {
			*(*[32]byte)(dst[m:]) = *(*[32]byte)(src[base:])
			base += stride
		}
	case 24:
		for m := 0; m <= len(dst)-24; m += 24 {
			*(*[24]byte)(dst[m:]) = *(*[24]byte)(src[base:])
			base += stride
		}
	case 16:
		for m := 0; m <= len(dst)-16; m += 16 {
			*(*[16]byte)(dst[m:]) = *(*[16]byte)(src[base:])
			base += stride
		}
	case 8:
		for m := 0; m <= len(dst)-8; m += 8 {
			*(*[8]byte)(dst[m:]) = *(*[8]byte)(src[base:])
			base += stride
		}
	case 4:
		for m := 0; m <= len(dst)-4; m += 4 {
			*(*[4]byte)(dst[m:]) = *(*[4]byte)(src[base:])
			base += stride
		}
	case 2:
		for m := 0; m <= len(dst)-2; m += 2 {
			*(*[2]byte)(dst[m:]) = *(*[2]byte)(src[base:])
			base += stride
		}
	case 1:
		for i := range dst {
			dst[i] = src[base]
			base += stride
		}
	default:
		for ; len(dst) >= n; dst = dst[n:] {
			copy(dst[:n], src[base:base+n])
			base += stride
		}
	}
}

// scatter is the reverse of gather.
func scatter(dst, src []byte, base, n, stride int) {
	switch n {
	case 32:
		for m := 0; m <= len(src)-32; m += 32 {
			*(*[32]byte)(dst[base:]) = *(*[32]byte)(src[m:])
			base += stride
		}
	case 24:
		for m := 0; m <= len(src)-24; m += 24 {
			*(*[24]byte)(dst[base:]) = *(*[24]byte)(src[m:])
			base += stride
		}
	case 16:
		for m := 0; m <= len(src)-16; m += 16 {
			*(*[16]byte)(dst[base:]) = *(*[16]byte)(src[m:])
			base += stride
		}
	case 8:
		for m := 0; m <= len(src)-8; m += 8 {
			*(*[8]byte)(dst[base:]) = *(*[8]byte)(src[m:])
			base += stride
		}
	case 4:
		for m := 0; m <= len(src)-4; m += 4 {
			*(*[4]byte)(dst[base:]) = *(*[4]byte)(src[m:])
			base += stride
		}
	case 2:
		for m := 0; m <= len(src)-2; m += 2 {
			*(*[2]byte)(dst[base:]) = *(*[2]byte)(src[m:])
			base += stride
		}
	case 1:
		for _, v := range src {
			dst[base] = v
			base += stride
		}
	default:
		for ; len(src) >= n; src = src[n:] {
			copy(dst[base:base+n], src[:n])
			base += stride
		}
	}
}
