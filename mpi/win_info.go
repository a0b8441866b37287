package mpi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weftstack/weft/mpi/internal/rma"
)

// Info keys of windows (MPI-4.1, Section 12.2), for [WithInfo] and [Win.SetInfo]. All ranks must
// give the same values.
const (
	// InfoNoLocks is "true" if the window is never locked: Lock and LockAll then return ErrEpoch.
	InfoNoLocks = "no_locks"
	// InfoAccumulateOrdering says which updates of one rank to one place keep their order: a list
	// of "rar", "raw", "war" and "waw", or "none". The default is all four. With "none", FetchAndOp
	// and CompareAndSwap are RDMA atomics even while an Accumulate is in flight.
	InfoAccumulateOrdering = "accumulate_ordering"
	// InfoAccumulateOps is "same_op" or "same_op_no_op", the default, if concurrent updates of one
	// place use the same operator. It has no effect: operators may differ.
	InfoAccumulateOps = "accumulate_ops"
	// InfoGranularity is the least number of bytes that the program updates together (default 0:
	// unknown). It has no effect: updates are atomic for each element.
	InfoGranularity = "mpi_accumulate_granularity"
	// InfoSameSize is "true" if all ranks give the same number of elements. WinCreate and its
	// relatives return ErrWindow if they do not.
	InfoSameSize = "same_size"
	// InfoSameDispUnit is "true" if all ranks use the same displacement unit, as those of a Win always do. It has no
	// effect.
	InfoSameDispUnit = "same_disp_unit"
	// InfoNoncontig is "true" if WinAllocateShared may leave gaps between the parts of the ranks.
	// Each part then begins on a cache line of its own.
	InfoNoncontig = "alloc_shared_noncontig"
	// InfoAlignment is the least alignment, in bytes, of the memory that WinAllocate makes: a power
	// of two, at most MaxAlignment.
	InfoAlignment = "mpi_minimum_memory_alignment"
	// InfoConnect says when a rank connects a queue pair to another one, if the window uses RDMA:
	// "first_use", the default, with the first operation on it, or "all", when the window is made,
	// so that no operation waits for a connection.
	InfoConnect = "weft_connect"
)

// MaxAlignment bounds InfoAlignment.
const MaxAlignment = 1 << 20

// WithInfo gives a window hints (MPI_Win_set_info). Unknown keys are kept; a value that makes no
// sense gives ErrOption.
func WithInfo(info Info) WinOption { return func(o *winOptions) { o.info = maps.Clone(info) } }

// winHints is the decoded info of a window.
type winHints struct {
	rma.Hints
	noncontig bool
	align     int
}

// Values of InfoConnect.
const (
	connectFirstUse = "first_use"
	connectAll      = "all"
)

// winDefaults returns the hints of a window to which the program gives none.
func winDefaults() Info {
	return Info{InfoNoLocks: "false", InfoAccumulateOrdering: "rar,raw,war,waw", InfoAccumulateOps: "same_op_no_op",
		InfoGranularity: "0", InfoSameSize: "false", InfoNoncontig: "false",
		InfoConnect: connectFirstUse}
}

// readWinHints checks and decodes the known keys.
func readWinHints(info Info) (h winHints, err error) {
	bad := func(key string) error { return fmt.Errorf("%w: %s=%q", ErrOption, key, info[key]) }
	for key, to := range map[string]*bool{InfoNoLocks: &h.NoLocks, InfoSameSize: &h.SameSize,
		InfoNoncontig: &h.noncontig, InfoSameDispUnit: new(bool)} {
		switch info[key] {
		case "true":
			*to = true
		case "false", "":
		default:
			return h, bad(key)
		}
	}
	if s, ok := info[InfoAccumulateOrdering]; ok && s != "none" {
		for o := range strings.SplitSeq(s, ",") {
			if !slices.Contains([]string{"rar", "raw", "war", "waw"}, strings.TrimSpace(o)) {
				return h, bad(InfoAccumulateOrdering)
			}
		}
	} else if ok {
		h.Unordered = true
	}
	switch info[InfoAccumulateOps] {
	case "same_op", "same_op_no_op", "":
	default:
		return h, bad(InfoAccumulateOps)
	}
	switch info[InfoConnect] {
	case connectAll:
		h.Connect = true
	case connectFirstUse, "":
	default:
		return h, bad(InfoConnect)
	}
	if s, ok := info[InfoGranularity]; ok {
		if n, err := strconv.Atoi(s); err != nil || n < 0 {
			return h, bad(InfoGranularity)
		}
	}
	h.align = 1
	if s, ok := info[InfoAlignment]; ok {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > MaxAlignment || n&(n-1) != 0 {
			return h, bad(InfoAlignment)
		}
		h.align = n
	}
	return h, nil
}

// setInfo keeps hints that are in effect.
func (w *Window) setInfo(info Info) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.info == nil {
		w.info = winDefaults()
		w.info[InfoSameDispUnit] = strconv.FormatBool(w.typ != nil)
	}
	maps.Copy(w.info, info)
}

// SetInfo changes the hints in info and keeps the others (MPI_Win_set_info). Hints about how the
// window is made have no effect any more. All ranks must call it with the same hints; it does not
// communicate. It returns ErrOption, and changes nothing, if a value makes no sense.
func (w *Win[T]) SetInfo(info Info) error { return w.w.SetInfo(info) }

// SetInfo changes the hints in info and keeps the others: see [Win.SetInfo] (MPI_Win_set_info).
func (w *Window) SetInfo(info Info) error {
	all := w.Info()
	maps.Copy(all, info)
	h, err := readWinHints(all)
	if err != nil {
		return err
	}
	w.rma.SetHints(h.Hints)
	w.setInfo(info)
	return nil
}

// Info returns the hints of the window, including defaults (MPI_Win_get_info).
func (w *Win[T]) Info() Info { return w.w.Info() }

// Info returns the hints of the window, including defaults (MPI_Win_get_info).
func (w *Window) Info() Info {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.info)
}

// Group returns the ranks of the window (MPI_Win_get_group).
func (w *Win[T]) Group() Group { return w.w.Group() }

// Group returns the ranks of the window (MPI_Win_get_group).
func (w *Window) Group() Group { return w.of.Group() }
