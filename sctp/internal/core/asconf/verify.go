package asconf

import (
	"fmt"

	"github.com/weftstack/weft/sctp/wire"
)

// Verify checks the invariants of a Sender.
func (s *Sender) Verify() error {
	leaving := 0
	for _, c := range s.changes {
		if c.kind == wire.ParamDeleteIP {
			if leaving++; !s.local.Leaving(c.addr.Addr()) {
				return fmt.Errorf("%v is to be removed, but not leaving", c.addr)
			}
		}
	}
	switch {
	case len(s.queue) > MaxQueue || len(s.changes) > MaxChanges:
		return fmt.Errorf("%d and %d changes of addresses", len(s.queue), len(s.changes))
	case len(s.chunk) == 0 != (len(s.changes) == 0):
		return fmt.Errorf("a chunk of %d bytes for %d changes", len(s.chunk), len(s.changes))
	case len(s.chunk) == 0 && (s.send || s.mute):
		return fmt.Errorf("without a chunk to be sent: due %v, muted %v", s.send, s.mute)
	}
	return nil
}
