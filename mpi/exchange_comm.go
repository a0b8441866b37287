package mpi

import (
	"context"

	"github.com/weftstack/weft/mpi/internal/dynamic"
	"github.com/weftstack/weft/mpi/internal/p2p"
)

// exchangeComm is a communicator as exchanges of process groups use it.
type exchangeComm struct{ c *Comm }

// Rank implements dynamic.Comm.
func (x exchangeComm) Rank() int { return x.c.comm.Rank }

// Size implements dynamic.Comm.
func (x exchangeComm) Size() int { return len(x.c.group) }

// Send implements dynamic.Comm.
func (x exchangeComm) Send(ctx context.Context, b []byte, to int) error {
	return x.c.comm.Send(ctx, p2p.SlotComm, p2p.SendStandard, b, to, tagProcessMessage)
}

// Recv implements dynamic.Comm.
func (x exchangeComm) Recv(ctx context.Context, b []byte, from int) (int, error) {
	st, err := x.c.comm.Recv(ctx, p2p.SlotComm, b, from, tagProcessMessage)
	return st.Bytes, err
}

// Bcast implements dynamic.Comm.
func (x exchangeComm) Bcast(ctx context.Context, root int, b []byte) ([]byte, error) {
	l := leaders{local: x.c, leader: root}
	if x.c.comm.Rank != root {
		return l.recvResult(ctx, 4*dynamic.MaxGroupMessage)
	}
	for r := range x.c.group {
		if r == root {
			continue
		}
		if err := l.sendResult(ctx, r, b, nil); err != nil {
			return nil, err
		}
	}
	return b, nil
}
