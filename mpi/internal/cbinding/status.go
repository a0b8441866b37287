package cbinding

import (
	"github.com/weftstack/weft/mpi"
	"github.com/weftstack/weft/mpi/internal/abi"
)

// The bytes of a message are in the first two words that the ABI leaves to the library, the flag of
// MPI_Test_cancelled in the third. MPI_ERROR is set only by calls that return several statuses.

// SetStatus stores the status of a message at p, unless that is MPI_STATUS_IGNORE.
func SetStatus(p uintptr, st mpi.Status) {
	if p == abi.StatusIgnore {
		return
	}
	s := At[abi.Status](p)
	s.Source, s.Tag = int32(RankToC(st.Source)), int32(tagToC(st.Tag))
	SetStatusBytes(s, st.Bytes)
	s.Internal[2] = 0
}

// EmptyStatus stores the status of no message (MPI-4.1, Section 3.7.3: empty status).
func EmptyStatus(p uintptr) {
	if p == abi.StatusIgnore {
		return
	}
	s := At[abi.Status](p)
	s.Source, s.Tag, s.Error = abi.AnySource, abi.AnyTag, abi.Success
	SetStatusBytes(s, 0)
	s.Internal[2] = 0
}

// SetStatusError stores the error code of one of several operations.
func SetStatusError(p uintptr, code int) {
	if p != abi.StatusIgnore {
		At[abi.Status](p).Error = int32(code)
	}
}

// StatusBytes returns the bytes of the message of a status.
func StatusBytes(s *abi.Status) int {
	return int(uint64(uint32(s.Internal[0])) | uint64(uint32(s.Internal[1]))<<32)
}

// SetStatusBytes stores the bytes of a message in its status.
func SetStatusBytes(s *abi.Status, n int) {
	s.Internal[0], s.Internal[1] = int32(uint32(n)), int32(uint32(uint64(n)>>32))
}

// StatusCancelled reports whether the operation of a status was cancelled.
func StatusCancelled(s *abi.Status) bool { return s.Internal[2] != 0 }

// SetCancelled says that the operation of the status at p was cancelled, or not.
func SetCancelled(p uintptr, cancelled bool) {
	if p == abi.StatusIgnore {
		return
	}
	s := At[abi.Status](p)
	s.Internal[2] = 0
	if cancelled {
		s.Internal[2] = 1
	}
}
