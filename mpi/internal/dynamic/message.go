package dynamic

import (
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

const (
	// maxProcessMessage bounds the message of one process in an exchange, in bytes.
	maxProcessMessage = 64 << 10
	// MaxGroupMessage bounds the message of one group in an exchange, in bytes.
	MaxGroupMessage = 64 << 20
)

// A ProcessInfo describes a process to the processes of the other group.
type ProcessInfo struct {
	Job    uint64 // as other ranks know it
	Rank   uint32
	Addr   string // for the transport
	Window int64  // bytes of unmatched eager messages that it accepts
	Call   string // how its launcher names it
	Site   string `json:",omitempty"` // where it is
}

// A ProcessMessage is the message of one process in an exchange.
type ProcessMessage struct {
	Member *ProcessInfo     `json:",omitempty"`
	Links  [][2]uint64      `json:",omitempty"` // links that exist: place in the other group, and number of the link
	Err    *mpierr.Portable `json:",omitempty"`
}

// A GroupMessage is the message of one group in an exchange.
type GroupMessage struct {
	Head    *GroupHeader     `json:",omitempty"` // in the first exchange
	Reports []ProcessMessage `json:",omitempty"`
	Err     *mpierr.Portable `json:",omitempty"` // set instead of Reports
}

// A GroupHeader is what all members of a group have in common.
type GroupHeader struct {
	Transport string
	Streams   int
	ID        uint64 // of the link setup; chosen by the accepting group
	Key       []byte
}

// check validates the message of the other group, which has at most limit processes.
func (r *GroupMessage) check(mine *GroupMessage, limit int) error {
	bad := len(r.Reports) == 0 || (r.Head == nil) != (mine.Head == nil)
	for i := range r.Reports {
		bad = bad || mine.Head != nil && r.Reports[i].Member == nil
	}
	switch {
	case bad:
		return fmt.Errorf("%w: empty message of the other group", mpierr.ErrProtocol)
	case r.Head != nil && (r.Head.Transport != mine.Head.Transport || r.Head.Streams != mine.Head.Streams):
		return fmt.Errorf("%w: the other group uses %.20s with %d streams, this one %s with %d",
			mpierr.ErrOption, r.Head.Transport, r.Head.Streams, mine.Head.Transport, mine.Head.Streams)
	case len(r.Reports) > limit:
		return fmt.Errorf("%w: %d processes", mpierr.ErrLimit, len(r.Reports))
	}
	return nil
}
