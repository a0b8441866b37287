package fileio

import (
	"context"
	"fmt"
	"io"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Position returns the individual pointer, in elements.
func (f *File) Position() int64 {
	_, pos := f.now()
	return pos
}

// Seek moves the individual pointer: whence is io.SeekStart, io.SeekCurrent or io.SeekEnd, offset counts
// elements. It returns the new place.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	if err := f.Usable(); err != nil {
		return 0, err
	}
	v, pos := f.now()
	to, err := f.seek(v, offset, whence, pos)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	f.pos = to
	f.mu.Unlock()
	return to, nil
}

// SeekShared moves the shared pointer, as Seek does the individual one. All ranks call it with the
// same arguments; it blocks until all have.
func (f *File) SeekShared(ctx context.Context, offset int64, whence int) error {
	if err := f.Usable(); err != nil {
		return err
	}
	return f.InOrder(ctx, func() error {
		var err error
		if f.c.Rank() == 0 {
			var pos int64
			if pos, err = f.pointer.Load(ctx); err == nil {
				v, _ := f.now()
				if pos, err = f.seek(v, offset, whence, pos); err == nil {
					err = f.pointer.Store(ctx, pos)
				}
			}
		}
		return f.agree(ctx, err, offset, whence)
	})
}

// PositionShared returns the shared pointer, in elements.
func (f *File) PositionShared(ctx context.Context) (int64, error) {
	if err := f.Usable(); err != nil {
		return 0, err
	}
	return f.pointer.Load(ctx)
}

func (f *File) seek(v *View, offset int64, whence int, pos int64) (int64, error) {
	if f.mode&Sequential != 0 {
		return 0, sequentialOnly("seeking")
	}
	switch whence {
	case io.SeekStart:
		pos = 0
	case io.SeekCurrent:
	case io.SeekEnd:
		size, err := f.size()
		if err != nil {
			return 0, err
		}
		pos = (v.length(size) + v.unit - 1) / v.unit
	default:
		return 0, fmt.Errorf("%w: whence %d", mpierr.ErrOption, whence)
	}
	if offset <= maxOffset-pos && offset >= -pos {
		return pos + offset, nil
	}
	return 0, fmt.Errorf("%w: place %d%+d", mpierr.ErrView, pos, offset)
}
