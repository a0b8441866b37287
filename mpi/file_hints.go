package mpi

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weftstack/weft/mpi/internal/fileio"
)

// Keys of Info that FileOpen and File.SetInfo read (MPI-4.1, Section 14.2.8; those
// that begin with romio_ or ind_ are from ROMIO). Others are kept. All ranks must
// give the same.
const (
	// InfoNodes is how many ranks read and write for all in collective
	// operations: the default is all ranks, up to DefaultNodes.
	InfoNodes = "cb_nodes"
	// InfoBuffer is the bytes that each of them holds at a time; the default
	// is DefaultBuffer.
	InfoBuffer = "cb_buffer_size"
	// InfoCollective is "enable" to let them do so always, "disable" for
	// never, or "automatic", the default: if what the ranks access lies
	// mixed in the file. "true" and "false" are the first two.
	InfoCollective = "collective_buffering"
	// InfoCollectiveRead and InfoCollectiveWrite are the same for one of the two.
	InfoCollectiveRead  = "romio_cb_read"
	InfoCollectiveWrite = "romio_cb_write"
	// InfoStripingUnit is how many bytes of the file lie together on a device:
	// the stretches of the ranks that read and write for all begin at multiples
	// of it (default DefaultStriping).
	InfoStripingUnit = "striping_unit"
	// InfoStripingFactor is over how many devices the file is spread: without
	// InfoNodes it is the number of those ranks.
	InfoStripingFactor = "striping_factor"
	// InfoReadBuffer bounds the bytes that one rank reads at once to get at
	// data with gaps (default DefaultReadBuffer).
	InfoReadBuffer = "ind_rd_buffer_size"
	// InfoSieve is "disable" to read data with gaps run by run, "enable" or
	// "automatic", the default.
	InfoSieve = "romio_ds_read"
	// InfoAccessStyle says how the file is used: a list of "read_once",
	// "write_once", "read_mostly", "write_mostly", "sequential",
	// "reverse_sequential" and "random". On Linux the system is told of
	// sequential and random access.
	InfoAccessStyle = "access_style"
	// InfoFilePerm is the permissions of a file that FileOpen creates, in octal
	// (default 0666), less those that the process does not give away.
	InfoFilePerm = "file_perm"
)

// Defaults and limits of file hints.
const (
	DefaultNodes      = 8
	DefaultBuffer     = 4 << 20
	DefaultStriping   = 4096
	DefaultReadBuffer = 1 << 20
	// MaxBuffer bounds InfoBuffer, InfoReadBuffer and InfoStripingUnit.
	MaxBuffer = 1 << 30
)

// readFileHints checks the known keys for a file of size ranks.
func readFileHints(info Info, size int) (*fileio.Hints, error) {
	nodes, unit, piece, factor := min(size, DefaultNodes), DefaultStriping, DefaultReadBuffer, 0
	h := &fileio.Hints{Buffer: DefaultBuffer, Perm: 0o666}
	for _, n := range []struct {
		key string
		to  *int
	}{
		{InfoStripingFactor, &factor}, {InfoNodes, &nodes}, {InfoBuffer, &h.Buffer}, {InfoStripingUnit, &unit},
		{InfoReadBuffer, &piece},
	} {
		s, ok := info[n.key]
		if !ok {
			continue
		}
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 || v > MaxBuffer {
			return nil, fmt.Errorf("%w: %s=%q", ErrOption, n.key, s)
		}
		*n.to = v
		if n.key == InfoStripingFactor {
			nodes = v
		}
	}
	h.Aggregators, h.Align, h.Sieve = min(nodes, size), int64(unit), int64(piece)
	both, sieve := fileio.BufferAuto, fileio.BufferAuto
	for _, m := range []struct {
		key string
		to  *fileio.Buffering
	}{{InfoCollective, &both}, {InfoCollectiveRead, &h.Read}, {InfoCollectiveWrite, &h.Write}, {InfoSieve, &sieve}} {
		if m.key == InfoCollectiveRead {
			h.Read, h.Write = both, both
		}
		switch s := info[m.key]; s {
		case "":
		case "automatic":
			*m.to = fileio.BufferAuto
		case "enable", "true":
			*m.to = fileio.BufferAlways
		case "disable", "false":
			*m.to = fileio.BufferNever
		default:
			return nil, fmt.Errorf("%w: %s=%q", ErrOption, m.key, s)
		}
	}
	if sieve == fileio.BufferNever {
		h.Sieve = 0
	}
	if s, ok := info[InfoFilePerm]; ok {
		v, err := strconv.ParseUint(s, 8, 32)
		if err != nil || v > 0o777 {
			return nil, fmt.Errorf("%w: %s=%q", ErrOption, InfoFilePerm, s)
		}
		h.Perm = fs.FileMode(v)
	}
	return h, readAccessStyle(h, info[InfoAccessStyle])
}

var accessStyles = []string{"read_once", "write_once", "read_mostly", "write_mostly", "sequential", "reverse_sequential", "random"}

// readAccessStyle reads the value of InfoAccessStyle.
func readAccessStyle(h *fileio.Hints, list string) error {
	if list == "" {
		return nil
	}
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		if !slices.Contains(accessStyles, s) {
			return fmt.Errorf("%w: %s=%q", ErrOption, InfoAccessStyle, list)
		}
		h.Random, h.Seq = h.Random || s == "random", h.Seq || s == "sequential"
	}
	return nil
}

// setInfo keeps what the program gave as info, with the hints in effect.
func (f *file) setInfo(h *fileio.Hints, info Info) {
	info = maps.Clone(info)
	if info == nil {
		info = Info{}
	}
	info[InfoNodes], info[InfoBuffer] = strconv.Itoa(h.Aggregators), strconv.Itoa(h.Buffer)
	info[InfoStripingUnit] = strconv.FormatInt(h.Align, 10)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.info = info
}

// SetInfo changes the hints in info and keeps the others. All ranks must call it with the same
// hints (MPI-4.1, Section 14.2.8). It returns ErrOption, and changes nothing, if a value makes no
// sense, or the ranks do not agree. It blocks until all have.
func (f *File[T]) SetInfo(ctx context.Context, info Info) error {
	return f.f.recorded("File.SetInfo", func() error {
		if err := f.f.io.Usable(); err != nil {
			return err
		}
		return f.f.io.InOrder(ctx, func() error {
			all := f.Info()
			maps.Copy(all, info)
			h, bad := readFileHints(all, f.f.c.Size())
			err := f.f.io.SetHints(ctx, h, bad)
			if err == nil {
				f.f.setInfo(h, all)
			}
			return err
		})
	})
}

// Info returns the hints, with those in effect (MPI_File_get_info).
func (f *File[T]) Info() Info {
	f.f.mu.Lock()
	defer f.f.mu.Unlock()
	return maps.Clone(f.f.info)
}
