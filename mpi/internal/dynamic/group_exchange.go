package dynamic

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// Comm is the group of the caller as an exchange uses it.
type Comm interface {
	Rank() int
	Size() int
	// Send sends b to a rank of the group; Recv receives a message that was sent so into b, and
	// returns its length.
	Send(ctx context.Context, b []byte, to int) error
	Recv(ctx context.Context, b []byte, from int) (int, error)
	// Bcast returns on all ranks the bytes b that the root gives. All ranks call it.
	Bcast(ctx context.Context, root int, b []byte) ([]byte, error)
}

// An Exchange is the process-group exchange of two groups by way of their roots.
type Exchange struct {
	Comm  Comm
	Root  int
	Conn  *RootConn // at the root
	Cause error     // at the root: why there is no Conn
	Limit int       // greatest number of processes of the other group

	others int // processes of the other group; 0: not known yet
}

// Allgather gives all processes of both groups the messages of all. own is the message of the
// group, which the root gives. If a process reports an error or cannot be reached, Allgather
// returns that error on all.
func (x *Exchange) Allgather(
	ctx context.Context, own GroupMessage, say ProcessMessage,
) (mine, theirs *GroupMessage, err error) {
	c := x.Comm
	b, err := json.Marshal(say)
	if err == nil && len(b) > maxProcessMessage {
		b, err = json.Marshal(ProcessMessage{Err: mpierr.MakePortable(fmt.Errorf("%w: message of a process above %d bytes",
			mpierr.ErrLimit, maxProcessMessage))})
	}
	if err != nil {
		return nil, nil, err
	}
	var both [2]GroupMessage
	if c.Rank() == x.Root {
		both = x.gather(ctx, own, b)
	} else if err := c.Send(ctx, b, x.Root); err != nil {
		return nil, nil, err
	}
	if b, err = json.Marshal(both); err != nil {
		return nil, nil, err
	}
	if b, err = c.Bcast(ctx, x.Root, b); err != nil {
		return nil, nil, err
	}
	if err = json.Unmarshal(b, &both); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", mpierr.ErrProtocol, err)
	}
	for i := range both {
		if err = both[i].Err.Err(); err != nil && x.Cause != nil {
			err = x.Cause
		}
		for j := range both[i].Reports {
			if err == nil {
				err = both[i].Reports[j].Err.Err()
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if err = both[1].check(&both[0], x.Limit); err == nil && x.others != 0 && len(both[1].Reports) != x.others {
		err = fmt.Errorf("%w: the other group had %d processes and has %d now", mpierr.ErrProtocol, x.others, len(both[1].Reports))
	}
	x.others = len(both[1].Reports)
	return &both[0], &both[1], err
}

// gather is the root's part of Allgather: it receives the messages of its group and exchanges them
// with the other root. It does the latter whatever has failed before, because the other root waits
// for it.
func (x *Exchange) gather(ctx context.Context, own GroupMessage, b []byte) (both [2]GroupMessage) {
	c := x.Comm
	own.Reports = make([]ProcessMessage, c.Size())
	buf := make([]byte, maxProcessMessage)
	for r := range c.Size() {
		said, err := b, error(nil)
		if r != c.Rank() {
			var n int
			n, err = c.Recv(ctx, buf, r)
			said = buf[:n]
		}
		if err == nil {
			err = json.Unmarshal(said, &own.Reports[r])
		}
		if err != nil && own.Err == nil {
			own.Err = mpierr.MakePortable(err)
		}
	}
	both[0] = own
	if own.Err != nil {
		both[0].Reports = nil
	}
	if x.Conn == nil {
		return both
	}
	out, err := json.Marshal(both[0])
	if err == nil && len(out) > MaxGroupMessage {
		err = fmt.Errorf("%w: too many processes", mpierr.ErrLimit)
		both[0] = GroupMessage{Err: mpierr.MakePortable(err)}
		out, _ = json.Marshal(both[0]) // cannot fail: it was encoded above
	}
	in, serr := x.Conn.exchange(ctx, out)
	if serr == nil {
		serr = json.Unmarshal(in, &both[1])
	}
	if serr != nil {
		both[1] = GroupMessage{Err: mpierr.MakePortable(fmt.Errorf("%w: the other group: %w", mpierr.ErrPort, serr))}
	}
	return both
}
