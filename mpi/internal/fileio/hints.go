package fileio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Hints is the decoded info of a file. It is not changed once a file uses it.
type Hints struct {
	Aggregators int   // ranks that read and write for all in collective operations (cb_nodes)
	Buffer      int   // bytes that an aggregator holds at a time (cb_buffer_size)
	Align       int64 // the domains of aggregators begin at multiples of it (striping_unit)
	Sieve       int64 // bytes of one read that includes gaps; 0: gaps are not read
	// Read and Write say when collective operations work in two phases.
	Read, Write Buffering
	Perm        fs.FileMode // of a file that is created
	Random, Seq bool        // the expected access, passed to the system
}

// Buffering says when a collective operation works in two phases (collective_buffering).
type Buffering int64

const (
	BufferAuto   Buffering = iota // if what the ranks access is interleaved in the file
	BufferAlways                  // "enable"
	BufferNever                   // "disable"
)

// buffering returns when to work in two phases.
func (h *Hints) buffering(write bool) Buffering {
	if write {
		return h.Write
	}
	return h.Read
}

// agreeHints checks that all ranks have the same hints; bad is what is wrong with those of this rank.
// All ranks call it.
func (f *File) agreeHints(ctx context.Context, h *Hints, bad error) error {
	if bad != nil {
		h = &Hints{}
	}
	err := f.agree(ctx, bad, h.Aggregators, h.Buffer, h.Align, h.Read, h.Write)
	if errors.Is(err, mpierr.ErrNotSame) {
		err = fmt.Errorf("%w: hints: %w", mpierr.ErrOption, err)
	}
	return err
}

// SetHints puts hints into effect if all ranks have the same; bad is what is wrong with those of this
// rank. It is called by a function that InOrder runs.
func (f *File) SetHints(ctx context.Context, h *Hints, bad error) error {
	if err := f.agreeHints(ctx, h, bad); err != nil {
		return err
	}
	f.hints.Store(h)
	advise(f.os, h)
	return nil
}
