package fileio

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Keys of the info of a file: see package mpi.
const (
	InfoNodes           = "cb_nodes"
	InfoBuffer          = "cb_buffer_size"
	InfoCollective      = "collective_buffering"
	InfoCollectiveRead  = "romio_cb_read"
	InfoCollectiveWrite = "romio_cb_write"
	InfoStripingUnit    = "striping_unit"
	InfoStripingFactor  = "striping_factor"
	InfoReadBuffer      = "ind_rd_buffer_size"
	InfoSieve           = "romio_ds_read"
	InfoAccessStyle     = "access_style"
	InfoFilePerm        = "file_perm"
)

// Defaults and limits of hints.
const (
	DefaultNodes      = 8
	DefaultBuffer     = 4 << 20
	DefaultStriping   = 4096
	DefaultReadBuffer = 1 << 20
	MaxBuffer         = 1 << 30
)

// ReadHints reads the known keys of info for a file of size ranks. A value that makes no sense is
// ErrOption with strict, else it is ignored (MPI-4.1, Section 14.2.8).
func ReadHints(info map[string]string, size int, strict bool) (*Hints, error) {
	h, err := readHints(info, size)
	if err == nil || strict {
		return h, err
	}
	good := make(map[string]string)
	for k, v := range info {
		if _, err := readHints(map[string]string{k: v}, size); err == nil {
			good[k] = v
		}
	}
	return readHints(good, size)
}

func readHints(info map[string]string, size int) (*Hints, error) {
	nodes, unit, piece, factor := min(size, DefaultNodes), DefaultStriping, DefaultReadBuffer, 0
	h := &Hints{Buffer: DefaultBuffer, Perm: 0o666}
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
			return nil, fmt.Errorf("%w: %s=%q", mpierr.ErrOption, n.key, s)
		}
		*n.to = v
		if n.key == InfoStripingFactor {
			nodes = v
		}
	}
	h.Aggregators, h.Align, h.Sieve = min(nodes, size), int64(unit), int64(piece)
	both, sieve := BufferAuto, BufferAuto
	for _, m := range []struct {
		key string
		to  *Buffering
	}{{InfoCollective, &both}, {InfoCollectiveRead, &h.Read}, {InfoCollectiveWrite, &h.Write}, {InfoSieve, &sieve}} {
		if m.key == InfoCollectiveRead {
			h.Read, h.Write = both, both
		}
		switch s := info[m.key]; s {
		case "":
		case "automatic":
			*m.to = BufferAuto
		case "enable", "true":
			*m.to = BufferAlways
		case "disable", "false":
			*m.to = BufferNever
		default:
			return nil, fmt.Errorf("%w: %s=%q", mpierr.ErrOption, m.key, s)
		}
	}
	if sieve == BufferNever {
		h.Sieve = 0
	}
	if s, ok := info[InfoFilePerm]; ok {
		v, err := strconv.ParseUint(s, 8, 32)
		if err != nil || v > 0o777 {
			return nil, fmt.Errorf("%w: %s=%q", mpierr.ErrOption, InfoFilePerm, s)
		}
		h.Perm = fs.FileMode(v)
	}
	return h, readAccessStyle(h, info[InfoAccessStyle])
}

var accessStyles = []string{"read_once", "write_once", "read_mostly", "write_mostly", "sequential", "reverse_sequential", "random"}

// readAccessStyle reads the value of InfoAccessStyle.
func readAccessStyle(h *Hints, list string) error {
	if list == "" {
		return nil
	}
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		if !slices.Contains(accessStyles, s) {
			return fmt.Errorf("%w: %s=%q", mpierr.ErrOption, InfoAccessStyle, list)
		}
		h.Random, h.Seq = h.Random || s == "random", h.Seq || s == "sequential"
	}
	return nil
}
