package mpi

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weftstack/weft/internal/bufpool"
	"github.com/weftstack/weft/mpi/internal/datatype"
)

// ReadAt reads elements of the view from offset on (MPI-4.1, Section 14.4.2).
// It blocks until the elements have been read; until then buf belongs to the
// call. Errors to test for: ErrMode, ErrFile, those of package io/fs.
func (f *File[T]) ReadAt(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.ReadAt", at: atOffset, pos: offset, b: datatype.Bytes(buf)})
}

// WriteAt writes elements of the view from offset on (MPI_File_write_at). It
// blocks until the system has taken the elements; until then buf belongs to the
// call, which does not change it. Errors to test for: ErrMode, ErrFile, those
// of package io/fs.
func (f *File[T]) WriteAt(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.WriteAt", at: atOffset, pos: offset, b: datatype.Bytes(buf), write: true})
}

// Read reads from the individual pointer on, and moves it behind what it read.
// Nonblocking and collective forms move it behind what they were asked for, at
// once (MPI-4.1, Section 14.4.3). It blocks until the elements have been read;
// until then buf belongs to the call. Errors to test for: ErrMode, ErrFile,
// those of package io/fs.
func (f *File[T]) Read(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.Read", at: atPointer, b: datatype.Bytes(buf)})
}

// Write writes from the individual pointer on, and moves it (MPI_File_write).
// It blocks until the system has taken the elements; until then buf belongs to
// the call, which does not change it. Errors to test for: ErrMode, ErrFile,
// those of package io/fs.
func (f *File[T]) Write(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.Write", at: atPointer, b: datatype.Bytes(buf), write: true})
}

// ReadAtAll is ReadAt that all ranks call, each with its own offset and buffer
// (MPI_File_read_at_all). What they access together is read in large pieces by
// some of them: see InfoNodes. It blocks until this rank has its elements;
// until then buf belongs to the call. Errors are those of ReadAt, and
// RankError.
func (f *File[T]) ReadAtAll(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.ReadAtAll", at: atOffset, pos: offset, b: datatype.Bytes(buf), all: true})
}

// WriteAtAll is WriteAt that all ranks call (MPI_File_write_at_all). It blocks
// until all elements of this rank are written; until then buf belongs to the
// call. Errors are those of WriteAt, and RankError.
func (f *File[T]) WriteAtAll(ctx context.Context, offset int64, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.WriteAtAll", at: atOffset, pos: offset, b: datatype.Bytes(buf), write: true, all: true})
}

// ReadAll is Read that all ranks call (MPI_File_read_all). It blocks until this
// rank has its elements; until then buf belongs to the call. Errors are those
// of ReadAt, and RankError.
func (f *File[T]) ReadAll(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.ReadAll", at: atPointer, b: datatype.Bytes(buf), all: true})
}

// WriteAll is Write that all ranks call (MPI_File_write_all). It blocks until
// all elements of this rank are written; until then buf belongs to the call.
// Errors are those of WriteAt, and RankError.
func (f *File[T]) WriteAll(ctx context.Context, buf []T) (int, error) {
	return f.f.call(ctx, fileOp{name: "File.WriteAll", at: atPointer, b: datatype.Bytes(buf), write: true, all: true})
}

// IreadAt starts ReadAt (MPI_File_iread_at).
func (f *File[T]) IreadAt(offset int64, buf []T) (*Request, error) {
	return f.f.start(fileOp{name: "File.IreadAt", at: atOffset, pos: offset, b: datatype.Bytes(buf)})
}

// IwriteAt starts WriteAt (MPI_File_iwrite_at).
func (f *File[T]) IwriteAt(offset int64, buf []T) (*Request, error) {
	return f.f.start(fileOp{name: "File.IwriteAt", at: atOffset, pos: offset, b: datatype.Bytes(buf), write: true})
}

// Iread starts Read (MPI_File_iread).
func (f *File[T]) Iread(buf []T) (*Request, error) {
	return f.f.start(fileOp{name: "File.Iread", at: atPointer, b: datatype.Bytes(buf)})
}

// Iwrite starts Write (MPI_File_iwrite).
func (f *File[T]) Iwrite(buf []T) (*Request, error) {
	return f.f.start(fileOp{name: "File.Iwrite", at: atPointer, b: datatype.Bytes(buf), write: true})
}

// IreadAtAll starts ReadAtAll (MPI_File_iread_at_all).
func (f *File[T]) IreadAtAll(offset int64, buf []T) (*Request, error) {
	return f.f.start(fileOp{name: "File.IreadAtAll", at: atOffset, pos: offset, b: datatype.Bytes(buf), all: true})
}

// IwriteAtAll starts WriteAtAll (MPI_File_iwrite_at_all).
func (f *File[T]) IwriteAtAll(offset int64, buf []T) (*Request, error) {
	return f.f.start(fileOp{name: "File.IwriteAtAll", at: atOffset, pos: offset, b: datatype.Bytes(buf), write: true, all: true})
}

// IreadAll starts ReadAll (MPI_File_iread_all).
func (f *File[T]) IreadAll(buf []T) (*Request, error) {
	return f.f.start(fileOp{name: "File.IreadAll", at: atPointer, b: datatype.Bytes(buf), all: true})
}

// IwriteAll starts WriteAll (MPI_File_iwrite_all).
func (f *File[T]) IwriteAll(buf []T) (*Request, error) {
	return f.f.start(fileOp{name: "File.IwriteAll", at: atPointer, b: datatype.Bytes(buf), write: true, all: true})
}

// ReadAtType is ReadAt into count items of t in buf (MPI_File_read_at). It
// returns the bytes read. It blocks until that is done; until then buf belongs
// to the call. ErrCount tells of items outside buf.
func (f *File[T]) ReadAtType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	return f.f.typed(ctx, fileOp{name: "File.ReadAtType", at: atOffset, pos: offset}, datatype.Bytes(buf), count, t.typ())
}

// WriteAtType is WriteAt of count items of t in buf (MPI_File_write_at). It
// returns the bytes written. It blocks until that is done; until then buf
// belongs to the call. ErrCount tells of items outside buf.
func (f *File[T]) WriteAtType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	return f.f.typed(ctx, fileOp{name: "File.WriteAtType", at: atOffset, pos: offset, write: true}, datatype.Bytes(buf), count, t.typ())
}

// ReadAtAllType is ReadAtType that all ranks call (MPI_File_read_at_all). It
// blocks until this rank's part is done; until then buf belongs to the call.
func (f *File[T]) ReadAtAllType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	return f.f.typed(ctx, fileOp{name: "File.ReadAtAllType", at: atOffset, pos: offset, all: true}, datatype.Bytes(buf), count, t.typ())
}

// WriteAtAllType is WriteAtType that all ranks call (MPI_File_write_at_all). It
// blocks until this rank's part is done; until then buf belongs to the call.
func (f *File[T]) WriteAtAllType(ctx context.Context, offset int64, buf []T, count int, t *Datatype) (int, error) {
	return f.f.typed(ctx, fileOp{name: "File.WriteAtAllType", at: atOffset, pos: offset, write: true, all: true}, datatype.Bytes(buf), count, t.typ())
}

// fileOp is a read or write.
type fileOp struct {
	name  string
	at    filePlace
	pos   int64 // in elements, for atOffset
	b     []byte
	write bool
	all   bool  // collective
	bad   error // why there is no data

	view *fileView // set when it starts
	off  int64     // in bytes of the view
}

// filePlace is where an operation begins.
type filePlace uint8

const (
	atOffset  filePlace = iota
	atPointer           // the individual one
	atShared            // the shared one; with all: in the order of the ranks
)

// check finds what is wrong with an operation. For the nonblocking and the
// collective ones with the individual pointer it moves that.
func (f *file) check(op *fileOp, moves bool) error {
	if err := f.usable(); err != nil {
		return err
	}
	switch {
	case op.bad != nil:
		return op.bad
	case op.write && f.mode&FileRead != 0, !op.write && f.mode&FileWrite != 0:
		return fmt.Errorf("%w: %s", ErrMode, op.name)
	case f.mode&FileSequential != 0 && op.at != atShared:
		return fmt.Errorf("%w: %s with FileSequential", ErrMode, op.name)
	case len(op.b)%f.elem.Size != 0:
		return fmt.Errorf("%w: %d bytes are no elements of %d", ErrCount, len(op.b), f.elem.Size)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	op.view = f.view
	if op.at == atShared {
		return nil
	}
	if op.at == atPointer {
		op.pos = f.pos
	}
	var err error
	if op.off, err = f.bytes(op.view, op.pos, len(op.b)); err != nil {
		return err
	}
	if op.at == atPointer && moves {
		f.pos += int64(len(op.b) / f.elem.Size)
	}
	return nil
}

// call performs an operation and returns how many elements it has done.
func (f *file) call(ctx context.Context, op fileOp) (int, error) {
	t := f.of.enter()
	n, err := f.do(ctx, op)
	f.of.leave(t, op.name, NoPeer, 0, n, err)
	return n / f.elem.Size, err
}

func (f *file) do(ctx context.Context, op fileOp) (int, error) {
	err := f.check(&op, op.all)
	if op.all {
		if f.usable() != nil {
			return 0, err
		}
		before, done := f.queue()
		return f.collect(ctx, op, err, before, done)
	}
	if err != nil {
		return 0, err
	}
	n, err := f.alone(ctx, op)
	if op.at == atPointer {
		f.mu.Lock()
		f.pos = op.pos + int64(n/f.elem.Size)
		f.mu.Unlock()
	}
	return n, err
}

// start starts an operation.
func (f *file) start(op fileOp) (*Request, error) {
	t := f.of.enter()
	r, err := f.startOp(op)
	f.of.leave(t, op.name, NoPeer, 0, len(op.b), err)
	return r, err
}

func (f *file) startOp(op fileOp) (*Request, error) {
	err := f.check(&op, true)
	if op.all {
		if e := f.usable(); e != nil {
			return nil, e
		}
		// The others cannot know of err: it is told to them.
		before, done := f.queue()
		return goRequest(f.c.w, func() (Status, error) {
			n, err := f.collect(context.Background(), op, err, before, done)
			return Status{Source: f.c.rank, Bytes: n}, err
		}), nil
	}
	if err != nil {
		return nil, err
	}
	return goRequest(f.c.w, func() (Status, error) {
		n, err := f.alone(context.Background(), op)
		return Status{Source: f.c.rank, Bytes: n}, err
	}), nil
}

// typed performs an operation on items of a datatype.
func (f *file) typed(ctx context.Context, op fileOp, buf []byte, count int, t *datatype.Type) (int, error) {
	start := f.of.enter()
	size, err := t.Span(count, len(buf))
	if err != nil {
		if op.all { // the others wait
			op.bad = err
			_, err = f.do(ctx, op)
		}
		return 0, err
	}
	s := bufpool.Get(size)
	defer s.Put()
	if op.b = s.Bytes(size); op.write {
		t.Pack(op.b, buf, count)
	}
	n, err := f.do(ctx, op)
	if !op.write {
		t.Unpack(buf, op.b[:n], count)
	}
	f.of.leave(start, op.name, NoPeer, 0, n, err)
	return n, err
}

// alone performs an operation of this rank only and returns the bytes done.
func (f *file) alone(ctx context.Context, op fileOp) (int, error) {
	if op.at == atShared {
		pos, err := f.shared.FetchAndOp(ctx, int64(len(op.b)/f.elem.Size), 0, 0, Sum)
		if err != nil {
			return 0, err
		}
		if op.off, err = f.bytes(op.view, pos, len(op.b)); err != nil {
			return 0, err
		}
	}
	if f.atomic.Load() {
		unlock, err := f.lock(ctx, op.write)
		if err != nil {
			return 0, err
		}
		defer unlock()
	}
	return f.access(op.view, op.off, op.b, op.write)
}

// lock keeps operations of other ranks away, in atomic mode.
func (f *file) lock(ctx context.Context, write bool) (unlock func(), err error) {
	if err := f.turn.lock(ctx); err != nil {
		return nil, err
	}
	mode := LockShared
	if write {
		mode = LockExclusive
	}
	if err := f.shared.w.lock(ctx, mode, 0, 0); err != nil {
		f.turn.unlock()
		return nil, err
	}
	return func() {
		// An error here is one of the job: the next operation tells it.
		_ = f.shared.w.unlock(context.WithoutCancel(ctx), 0)
		f.turn.unlock()
	}, nil
}

func (f *file) writeRuns(v *fileView, off int64, b []byte) (int, error) {
	if v.mixed {
		return f.writeMixed(v.list(off, int64(len(b))), b)
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

// writeMixed writes runs whose data is in another order: what has no gaps in the
// file is put together.
func (f *file) writeMixed(runs []fileRun, b []byte) (int, error) {
	piece := f.hints.Load().piece
	var s []byte
	for i := 0; i < len(runs); {
		first := runs[i]
		j, n := i+1, first.n
		for ; j < len(runs) && runs[j].off == first.off+n && n+runs[j].n <= piece; j++ {
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

// sieveShare is for reading with gaps: a piece of the file is read as a whole if
// the data is at least one part in so many.
const sieveShare = 4

func (f *file) readRuns(v *fileView, off int64, b []byte) (int, error) {
	if v.dense() {
		return f.readAt(b, v.offset(off))
	}
	runs := v.list(off, int64(len(b)))
	n, err := f.readSieved(runs, b)
	if v.mixed && err == nil && n < len(b) {
		size, err := f.size()
		return min(n, before(runs, size)), err
	}
	return n, err
}

// readSieved reads runs in groups and returns how much there was before the
// end of the file.
func (f *file) readSieved(runs []fileRun, b []byte) (int, error) {
	done := 0
	piece := f.hints.Load().piece
	for i := 0; i < len(runs); {
		j, data, end := i+1, runs[i].n, runs[i].off+runs[i].n
		for j < len(runs) {
			end = max(end, runs[j].off+runs[j].n)
			span := end - runs[i].off
			if span > piece || (data+runs[j].n)*sieveShare < span {
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

// sieve reads a group of runs.
func (f *file) sieve(runs []fileRun, b []byte) (int, error) {
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
func (f *file) readAt(b []byte, off int64) (int, error) {
	n, err := f.os.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
