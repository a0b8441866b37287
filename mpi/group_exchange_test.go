package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// talks lets two groups of ranks run an exchange over a pipe, one group in each of two
// worlds.
func talks(t *testing.T, ranks int, f func(ctx context.Context, x *groupExchange, side int) error) {
	t.Helper()
	a, b := net.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	errc := make(chan error, 2)
	for side, conn := range []net.Conn{a, b} {
		go func() {
			errc <- RunLocal(ctx, ranks, func(ctx context.Context, w *World) error {
				x := &groupExchange{c: w.Comm()}
				if w.Rank() == 0 {
					x.conn = &rootConn{conn: conn}
				}
				return f(ctx, x, side)
			})
		}()
	}
	for range 2 {
		if err := <-errc; err != nil {
			t.Error(err)
			cancel()
		}
	}
}

// What one process says, and a group, is bounded: the round fails on all of both
// sides.
func TestGroupExchangeLimits(t *testing.T) {
	for _, tt := range []struct {
		name string
		own  groupMessage
		say  processMessage
	}{
		{"process", groupMessage{}, processMessage{Links: make([][2]uint64, maxProcessMessage/4)}},
		{"group", groupMessage{Head: &groupHeader{Key: make([]byte, maxGroupMessage/4*3)}}, processMessage{}}, // base64
	} {
		t.Run(tt.name, func(t *testing.T) {
			talks(t, 2, func(ctx context.Context, x *groupExchange, side int) error {
				own, say := groupMessage{}, processMessage{}
				if side == 0 && x.c.Rank() == 0 {
					own, say = tt.own, tt.say
				}
				if _, _, err := x.allgather(ctx, own, say); !errors.Is(err, ErrLimit) {
					return fmt.Errorf("side %d, rank %d: %w", side, x.c.Rank(), err)
				}
				return nil
			})
		})
	}
	talks(t, 2, func(ctx context.Context, x *groupExchange, side int) error { // just short of it
		links := make([][2]uint64, maxProcessMessage/8)
		mine, theirs, err := x.allgather(ctx, groupMessage{}, processMessage{Links: links})
		if err != nil || len(mine.Reports) != 2 || len(theirs.Reports[1].Links) != len(links) {
			return fmt.Errorf("side %d, rank %d: %w", side, x.c.Rank(), err)
		}
		return nil
	})
}

// A stranger at the other end, or a root gone mad, cannot make a rank take as
// much memory as it says.
func TestGroupExchangeFrames(t *testing.T) {
	frame := func(n uint32) io.Reader {
		return strings.NewReader(string(binary.BigEndian.AppendUint32(nil, n)) + "x")
	}
	if b, err := readFrame(frame(maxGroupMessage+1), maxGroupMessage); !errors.Is(err, ErrProtocol) {
		t.Errorf("frame that is too long: %d bytes, %v", len(b), err)
	}
	if _, err := readFrame(frame(maxGroupMessage), maxGroupMessage); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("frame that ends early: %v", err)
	}
	local(t, 2, func(ctx context.Context, c *Comm) error {
		if c.Rank() == 0 {
			return c.send(ctx, slotComm, sendStandard, binary.BigEndian.AppendUint64(nil, 4*maxGroupMessage+1), 1, tagLeaderResult)
		}
		if _, err := c.bcastFrom(ctx, 0, nil); !errors.Is(err, ErrProtocol) {
			return fmt.Errorf("%d bytes from the root: %w", 4*maxGroupMessage+1, err)
		}
		return nil
	})
}

// Of the deaths in other groups maxDeaths are remembered.
func TestDeathsAreBounded(t *testing.T) {
	local(t, 1, func(_ context.Context, c *Comm) error {
		w := c.World()
		for i := range maxDeaths + 10 {
			w.otherDied(fmt.Sprint("job ", i), 0, "killed")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.deaths) != maxDeaths || w.deaths[fmt.Sprint("job ", maxDeaths-1)] == nil || w.deaths[fmt.Sprint("job ", maxDeaths)] != nil {
			return fmt.Errorf("%d deaths are remembered, want the first %d", len(w.deaths), maxDeaths)
		}
		return nil
	})
}
