package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// TestRootAnnouncesTooMuch has a root broadcast a message that is longer than both groups may send.
func TestRootAnnouncesTooMuch(t *testing.T) {
	local(t, 2, func(ctx context.Context, c *Comm) error {
		if c.Rank() == 0 {
			return c.comm.Send(ctx, p2p.SlotComm, p2p.SendStandard, binary.BigEndian.AppendUint64(nil, 4*dynamic.MaxGroupMessage+1), 1, tagLeaderResult)
		}
		if _, err := (exchangeComm{c}).Bcast(ctx, 0, nil); !errors.Is(err, ErrProtocol) {
			return fmt.Errorf("%d bytes from the root: %w", 4*dynamic.MaxGroupMessage+1, err)
		}
		return nil
	})
}
