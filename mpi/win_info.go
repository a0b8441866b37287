package mpi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/weftstack/weft/mpi/internal/datatype"
)

// Info keys of windows (MPI-4.1, Section 12.2), for WithInfo and Win.SetInfo.
// All ranks must give the same.
const (
	// InfoNoLocks is "true" if the window is never locked: Lock and LockAll
	// then return ErrEpoch.
	InfoNoLocks = "no_locks"
	// InfoAccumulateOrdering says which updates of one rank to one place keep
	// their order: a list of "rar", "raw", "war" and "waw", or "none". All do
	// at first. With "none", FetchAndOp and CompareAndSwap are RDMA atomics
	// also while an Accumulate is on its way.
	InfoAccumulateOrdering = "accumulate_ordering"
	// InfoAccumulateOps is "same_op" or "same_op_no_op", the default, if
	// concurrent updates of one place use the same operator. Here they need not.
	InfoAccumulateOps = "accumulate_ops"
	// InfoGranularity is how many bytes the program updates together at least
	// (default 0, which says nothing). Updates are atomic for each element anyway.
	InfoGranularity = "mpi_accumulate_granularity"
	// InfoSameSize is "true" if all ranks give the same number of elements.
	// WinCreate and its relatives return ErrWindow if they do not.
	InfoSameSize = "same_size"
	// InfoSameDispUnit is "true" if displacements count the same on all ranks:
	// here they always do.
	InfoSameDispUnit = "same_disp_unit"
	// InfoNoncontig is "true" if WinAllocateShared may leave gaps between the
	// parts of the ranks. Each then begins on a cache line of its own.
	InfoNoncontig = "alloc_shared_noncontig"
	// InfoAlignment is the least alignment, in bytes, of the memory that
	// WinAllocate makes: a power of two, at most MaxAlignment.
	InfoAlignment = "mpi_minimum_memory_alignment"
	// InfoConnect says when a rank gets a queue pair to another one, where RDMA is
	// in use: "first_use", the default, with the first operation on it, or "all",
	// when the window is made, so that no operation waits for it.
	InfoConnect = "weft_connect"
)

// MaxAlignment bounds InfoAlignment.
const MaxAlignment = 1 << 20

// cacheLine is what parts of shared memory begin on if there may be gaps.
const cacheLine = 64

// WithInfo gives a window hints (MPI_Win_set_info). Keys that are not known are
// kept; a value that makes no sense gives ErrOption.
func WithInfo(info Info) WinOption { return func(o *winOptions) { o.info = maps.Clone(info) } }

// winHints is what the info of a window says, ready for use.
type winHints struct {
	noLocks   bool
	sameSize  bool
	noncontig bool
	unordered bool // an atomic need not come after updates before it
	connect   bool // to all ranks at once
	align     int
}

// Values of InfoConnect.
const (
	connectFirstUse = "first_use"
	connectAll      = "all"
)

// winDefaults are the hints in effect without others, as Win.Info tells them.
func winDefaults() Info {
	return Info{InfoNoLocks: "false", InfoAccumulateOrdering: "rar,raw,war,waw", InfoAccumulateOps: "same_op_no_op",
		InfoGranularity: "0", InfoSameSize: "false", InfoSameDispUnit: "true", InfoNoncontig: "false",
		InfoConnect: connectFirstUse}
}

// readWinHints checks the known keys.
func readWinHints(info Info) (h winHints, err error) {
	bad := func(key string) error { return fmt.Errorf("%w: %s=%q", ErrOption, key, info[key]) }
	for key, to := range map[string]*bool{InfoNoLocks: &h.noLocks, InfoSameSize: &h.sameSize,
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
		h.unordered = true
	}
	switch info[InfoAccumulateOps] {
	case "same_op", "same_op_no_op", "":
	default:
		return h, bad(InfoAccumulateOps)
	}
	switch info[InfoConnect] {
	case connectAll:
		h.connect = true
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

// setInfo puts hints into effect.
func (w *window) setInfo(info Info, h winHints) {
	w.hints.Store(&h)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.info == nil {
		w.info = winDefaults()
	}
	maps.Copy(w.info, info)
}

// SetInfo gives the window other hints, those in info in addition to the present
// ones (MPI_Win_set_info). What concerns the making of the window has no effect
// any more. All ranks must call it with the same hints; it does not communicate.
// It returns ErrOption, and changes nothing, if a value makes no sense.
func (w *Win[T]) SetInfo(info Info) error {
	all := w.Info()
	maps.Copy(all, info)
	h, err := readWinHints(all)
	if err != nil {
		return err
	}
	w.w.setInfo(info, h)
	return nil
}

// Info returns the hints of the window, with those in effect by default
// (MPI_Win_get_info).
func (w *Win[T]) Info() Info {
	w.w.mu.Lock()
	defer w.w.mu.Unlock()
	return maps.Clone(w.w.info)
}

// Group returns the ranks of the window (MPI_Win_get_group).
func (w *Win[T]) Group() Group { return w.w.of.Group() }

// alignedBytes returns n new bytes that begin at a multiple of align, and of 8.
func alignedBytes(n, align int) []byte {
	align = max(align, 8)
	all := datatype.Bytes(make([]uint64, (n+align+7)/8))
	skip := 0
	if over := int(uintptr(unsafe.Pointer(unsafe.SliceData(all))) % uintptr(align)); over > 0 {
		skip = align - over
	}
	return all[skip : skip+n : skip+n]
}
