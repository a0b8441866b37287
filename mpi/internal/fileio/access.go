package fileio

import (
	"errors"
	"io"

	"github.com/weftstack/weft/internal/bufpool"
)

// convertChunk is about how many bytes are converted at a time.
const convertChunk = 1 << 20

// access reads or writes b at offset off of the view, and returns how many bytes of b it has done.
func (f *File) access(v *View, off int64, b []byte, write bool) (int, error) {
	rep, size := v.rep, f.elem
	if !rep.converts() {
		if write {
			return f.writeRuns(v, off, b)
		}
		return f.readRuns(v, off, b)
	}
	chunk := max(convertChunk/max(size, rep.Size), 1)
	s := bufpool.Get(min(chunk, len(b)/size) * rep.Size)
	defer s.Put()
	done := 0
	for done < len(b) {
		n := min(chunk, (len(b)-done)/size)
		part, ext := b[done:][:n*size], s.Bytes(n*rep.Size)
		at := off + int64(done/size*rep.Size)
		var k int
		var err error
		if !write {
			if k, err = f.readRuns(v, at, ext); err == nil {
				k /= rep.Size
				err = rep.fromFile(part[:k*size], ext[:k*rep.Size])
			}
		} else if err = rep.toFile(ext, part); err == nil {
			k, err = f.writeRuns(v, at, ext)
			k /= rep.Size
		}
		if err != nil {
			if !write {
				k = 0
			}
			return done + k*size, err
		}
		done += k * size
		if k < n {
			break
		}
	}
	return done, nil
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
