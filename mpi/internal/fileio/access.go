package fileio

import (
	"errors"
	"io"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
)

// access performs an operation of one rank, and returns how many bytes of the data and of the view it
// has done.
func (f *File) access(op *Op) (n int, inFile int64, err error) {
	x := &op.Data
	if conv := op.view.rep.conv; conv != nil {
		return f.accessConverted(op, conv)
	}
	if x.Dense() {
		n, err = f.accessBytes(op, op.off, x.Mem)
		return n, int64(n), err
	}
	// Data with gaps goes through a buffer, a part at a time.
	all := x.Len()
	s := bufpool.Get(min(all, convertChunk))
	defer s.Put()
	for n < all && err == nil {
		b := s.Bytes(min(all-n, convertChunk))
		if op.Write {
			x.Gaps.Pack(b, n)
		}
		var k int
		k, err = f.accessBytes(op, op.off+int64(n), b)
		if !op.Write {
			x.Gaps.Unpack(b[:k], n)
		}
		if n += k; k < len(b) {
			break
		}
	}
	return n, int64(n), err
}

// accessBytes reads or writes b at offset off of the view, and returns how many bytes of b it has done.
func (f *File) accessBytes(op *Op, off int64, b []byte) (int, error) {
	if op.Write {
		return f.writeRuns(op.view, off, b)
	}
	return f.readRuns(op.view, off, b)
}

// accessConverted is access of data that looks different in the file, some items at a time.
func (f *File) accessConverted(op *Op, conv converter) (n int, inFile int64, err error) {
	x := op.view.items(&op.Data)
	if x.own != nil {
		defer x.own.Put()
	}
	if x.Count == 0 {
		return 0, 0, nil
	}
	size := int(op.n) / x.Count // of an item in the file
	most := max(conv.chunk()/size, 1)
	s := bufpool.Get(min(most, x.Count) * size)
	defer s.Put()
	for i := 0; i < x.Count && err == nil; i += most {
		part := x.from(i, most)
		b := s.Bytes(part.Count * size)
		var k, mem int
		if op.Write {
			if err = op.view.rep.wrap(conv.write(b, part)); err != nil {
				break
			}
			k, err = f.accessBytes(op, op.off+inFile, b)
			mem = k / size * part.Type.Size() // of an item that was cut nothing counts
		} else if k, err = f.accessBytes(op, op.off+inFile, b); err == nil {
			mem, err = conv.read(part, b[:k])
			if err = op.view.rep.wrap(err); err != nil {
				mem = 0
			}
		}
		n, inFile = n+mem, inFile+int64(k)
		if k < len(b) {
			break
		}
	}
	x.stored(n, op)
	return n, inFile, err
}

// memoryItems are the items in memory that a converter works on.
type memoryItems struct {
	datatype.Buffer
	own *bufpool.Buffer // where data with gaps is in a row, for elements that items cut
}

// items returns what converters of the view work on: the elements of an Elements may lie in parts
// of several items.
func (v *View) items(data *datatype.Items) memoryItems {
	if _, ok := v.rep.conv.(*Elements); !ok || data.Dense() && data.Type == nil {
		return memoryItems{Buffer: data.Buffer(v.etype)}
	}
	b, own := data.Packed()
	return memoryItems{datatype.Buffer{Mem: datatype.In(b), Count: len(b) / v.elem, Type: datatype.OfBytes(v.elem)}, own}
}

// from returns items from the first, at most n of them.
func (x *memoryItems) from(first, n int) datatype.Buffer {
	return datatype.Buffer{Mem: x.Mem.At(first * x.Type.Extent()), Count: min(n, x.Count-first), Type: x.Type}
}

// stored stores the first n bytes of what was read where the program wants it.
func (x *memoryItems) stored(n int, op *Op) {
	if x.own != nil && !op.Write {
		op.Data.Unpack(x.Mem.Bytes(0, n), 0)
	}
}

func (f *File) writeRuns(v *View, off int64, b []byte) (int, error) {
	if v.unordered {
		return f.writeUnordered(v.list(off, int64(len(b))), b)
	}
	done := 0
	var err error
	v.each(off, int64(len(b)), func(at, n int64) bool {
		var k int
		k, err = f.os.WriteAt(b[done:done+int(n)], at)
		done += k
		return err == nil
	})
	return done, err
}

// writeUnordered writes runs in the order of the file, and joins those without gaps between them.
func (f *File) writeUnordered(runs []run, b []byte) (int, error) {
	most := f.hints.Load().Sieve
	var s []byte
	for i := 0; i < len(runs); {
		first := runs[i]
		j, n := i+1, first.n
		for ; j < len(runs) && runs[j].off == first.off+n && n+runs[j].n <= most; j++ {
			n += runs[j].n
		}
		mem := b[first.at : first.at+first.n]
		if j > i+1 {
			s = s[:0]
			for _, r := range runs[i:j] {
				s = append(s, b[r.at:r.at+r.n]...)
			}
			mem = s
		}
		if _, err := f.os.WriteAt(mem, first.off); err != nil {
			done := len(b)
			for _, r := range runs[i:] {
				done = min(done, int(r.at))
			}
			return done, err
		}
		i = j
	}
	return len(b), nil
}

// sieveShare bounds the gaps that data sieving reads: a stretch of the file is read as a whole
// if at least one part in so many is data.
const sieveShare = 4

func (f *File) readRuns(v *View, off int64, b []byte) (int, error) {
	if v.dense() {
		return f.readAt(b, v.offset(off))
	}
	runs := v.list(off, int64(len(b)))
	n, err := f.readSieved(runs, b)
	if v.unordered && err == nil && n < len(b) {
		size, err := f.size()
		return min(n, before(runs, size)), err
	}
	return n, err
}

// readSieved reads runs in groups and returns how much there was before the
// end of the file.
func (f *File) readSieved(runs []run, b []byte) (int, error) {
	done := 0
	most := f.hints.Load().Sieve
	for i := 0; i < len(runs); {
		j, data, end := i+1, runs[i].n, runs[i].off+runs[i].n
		for j < len(runs) {
			end = max(end, runs[j].off+runs[j].n)
			span := end - runs[i].off
			if span > most || (data+runs[j].n)*sieveShare < span {
				break
			}
			data += runs[j].n
			j++
		}
		n, err := f.sieve(runs[i:j], b)
		done += n
		if err != nil || int64(n) < data {
			return done, err
		}
		i = j
	}
	return done, nil
}

// sieve reads a group of runs, with the gaps between them, and copies the data out.
func (f *File) sieve(runs []run, b []byte) (int, error) {
	first := runs[0]
	if len(runs) == 1 {
		return f.readAt(b[first.at:first.at+first.n], first.off)
	}
	span := int(endOf(runs) - first.off)
	s := bufpool.Get(span)
	defer s.Put()
	mem := s.Bytes(span)
	n, err := f.readAt(mem, first.off)
	done := 0
	for _, r := range runs {
		from := r.off - first.off
		if k := min(r.n, int64(n)-from); k > 0 {
			done += copy(b[r.at:r.at+r.n], mem[from:from+k])
		}
	}
	return done, err
}

// readAt reads until the end of the file.
func (f *File) readAt(b []byte, off int64) (int, error) {
	n, err := f.os.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
