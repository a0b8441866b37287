package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// A leader that announces too much is not believed, and its group is told.
func TestLeaderAnnouncesTooMuch(t *testing.T) {
	err := RunLocal(context.Background(), 3, func(ctx context.Context, w *World) error {
		color, other := 0, 2
		if w.Rank() == 2 {
			color, other = 1, 0
		}
		local, err := w.Comm().Split(ctx, color, 0)
		if err != nil {
			return err
		}
		c, err := IntercommCreate(ctx, local, 0, w.Comm(), other, 0)
		if err != nil {
			return err
		}
		if w.Rank() == 2 {
			head := binary.BigEndian.AppendUint64(nil, maxLeaderMessage+1)
			if err := c.comm.Send(ctx, p2p.SlotComm, p2p.SendStandard, head, 0, tagLeaders); err != nil {
				return err
			}
			return w.Comm().barrier(ctx)
		}
		if _, err := c.IntercommMerge(ctx, false); !errors.Is(err, ErrProtocol) {
			return fmt.Errorf("merge = %w, want %w", err, ErrProtocol)
		}
		return w.Comm().barrier(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTooManyPartitions(t *testing.T) {
	err := RunLocal(context.Background(), 1, func(_ context.Context, w *World) error {
		b := make([]byte, MaxPartitions+1)
		if _, err := PsendInit(w.Self(), b[:MaxPartitions], MaxPartitions, ProcNull, 0); err != nil {
			return err
		}
		if _, err := PsendInit(w.Self(), b, MaxPartitions+1, ProcNull, 0); !errors.Is(err, ErrPartition) {
			return fmt.Errorf("too many partitions: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
