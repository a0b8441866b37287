package mpi

import (
	"context"
	"maps"
	"strconv"

	"github.com/weftstack/weft/mpi/internal/fileio"
)

// Keys of Info that FileOpen and File.SetInfo read (MPI-4.1, Section 14.2.8; those
// that begin with romio_ or ind_ are from ROMIO). Others are kept. All ranks must
// give the same.
const (
	// InfoNodes is how many ranks read and write for all in collective
	// operations: the default is all ranks, up to DefaultNodes.
	InfoNodes = fileio.InfoNodes
	// InfoBuffer is the bytes that each of them holds at a time; the default
	// is DefaultBuffer.
	InfoBuffer = fileio.InfoBuffer
	// InfoCollective is "enable" to let them do so always, "disable" for
	// never, or "automatic", the default: if what the ranks access lies
	// mixed in the file. "true" and "false" are the first two.
	InfoCollective = fileio.InfoCollective
	// InfoCollectiveRead and InfoCollectiveWrite are the same for one of the two.
	InfoCollectiveRead  = fileio.InfoCollectiveRead
	InfoCollectiveWrite = fileio.InfoCollectiveWrite
	// InfoStripingUnit is how many bytes of the file lie together on a device:
	// the stretches of the ranks that read and write for all begin at multiples
	// of it (default DefaultStriping).
	InfoStripingUnit = fileio.InfoStripingUnit
	// InfoStripingFactor is over how many devices the file is spread: without
	// InfoNodes it is the number of those ranks.
	InfoStripingFactor = fileio.InfoStripingFactor
	// InfoReadBuffer bounds the bytes that one rank reads at once to get at
	// data with gaps (default DefaultReadBuffer).
	InfoReadBuffer = fileio.InfoReadBuffer
	// InfoSieve is "disable" to read data with gaps run by run, "enable" or
	// "automatic", the default.
	InfoSieve = fileio.InfoSieve
	// InfoAccessStyle says how the file is used: a list of "read_once",
	// "write_once", "read_mostly", "write_mostly", "sequential",
	// "reverse_sequential" and "random". On Linux the system is told of
	// sequential and random access.
	InfoAccessStyle = fileio.InfoAccessStyle
	// InfoFilePerm is the permissions of a file that FileOpen creates, in octal
	// (default 0666), less those that the process does not give away.
	InfoFilePerm = fileio.InfoFilePerm
)

// Defaults and limits of file hints.
const (
	DefaultNodes      = fileio.DefaultNodes
	DefaultBuffer     = fileio.DefaultBuffer
	DefaultStriping   = fileio.DefaultStriping
	DefaultReadBuffer = fileio.DefaultReadBuffer
	// MaxBuffer bounds InfoBuffer, InfoReadBuffer and InfoStripingUnit.
	MaxBuffer = fileio.MaxBuffer
)

// setInfo keeps what the program gave as info, with the hints in effect.
func (f *FileHandle) setInfo(h *fileio.Hints, info Info) {
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
// sense, or the ranks do not agree. It blocks until all have. What [Comm.OpenFile] has opened ignores values that
// make no sense.
func (f *FileHandle) SetInfo(ctx context.Context, info Info) error {
	return f.recorded("File.SetInfo", func() error {
		if err := f.io.Usable(); err != nil {
			return err
		}
		return f.io.InOrder(ctx, func() error {
			all := f.Info()
			maps.Copy(all, info)
			h, bad := fileio.ReadHints(all, f.c.Size(), !f.lenient)
			err := f.io.SetHints(ctx, h, bad)
			if err == nil {
				f.setInfo(h, all)
			}
			return err
		})
	})
}

// Info returns the hints, with those in effect (MPI_File_get_info).
func (f *FileHandle) Info() Info {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.info)
}
