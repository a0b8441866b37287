package mpi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// processInfo describes a process to the processes of the other group.
type processInfo struct {
	Job    uint64 // see procName
	Rank   uint32
	Addr   string // for the transport
	Window int64  // bytes of unmatched eager messages that it accepts
	Call   string // see World.launcherName
}

func (m *processInfo) name() procName { return procName{m.Job, m.Rank} }

// processMessage is the message of one process in an exchange.
type processMessage struct {
	Member *processInfo     `json:",omitempty"`
	Links  [][2]uint64      `json:",omitempty"` // links that exist: place in the other group, and linkID
	Err    *mpierr.Portable `json:",omitempty"`
}

// groupMessage is the message of one group in an exchange.
type groupMessage struct {
	Head    *groupHeader     `json:",omitempty"` // in the first exchange
	Reports []processMessage `json:",omitempty"`
	Err     *mpierr.Portable `json:",omitempty"` // set instead of Reports
}

// groupHeader is what all members of a group have in common.
type groupHeader struct {
	Transport string
	Streams   int
	ID        uint64 // of the link setup; chosen by the accepting group
	Key       []byte
}

// groupExchange is the process-group exchange of two groups by way of their roots.
type groupExchange struct {
	c      *Comm
	root   int
	conn   *rootConn // at the root
	cause  error     // at the root: why there is no conn
	others int       // processes of the other group; 0: not known yet
}

// allgather gives all processes of both groups the messages of all. own is the message of the
// group, which the root gives. If a process reports an error or cannot be reached, allgather
// returns that error on all.
func (x *groupExchange) allgather(ctx context.Context, own groupMessage, say processMessage) (mine, theirs *groupMessage, err error) {
	c := x.c
	b, err := json.Marshal(say)
	if err == nil && len(b) > maxProcessMessage {
		b, err = json.Marshal(processMessage{Err: mpierr.MakePortable(fmt.Errorf("%w: message of a process above %d bytes", ErrLimit, maxProcessMessage))})
	}
	if err != nil {
		return nil, nil, err
	}
	var both [2]groupMessage
	if c.rank == x.root {
		both = x.gather(ctx, own, b)
	} else if err := c.send(ctx, slotComm, sendStandard, b, x.root, tagProcessMessage); err != nil {
		return nil, nil, err
	}
	if b, err = json.Marshal(both); err != nil {
		return nil, nil, err
	}
	if b, err = c.bcastFrom(ctx, x.root, b); err != nil {
		return nil, nil, err
	}
	if err = json.Unmarshal(b, &both); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	for i := range both {
		if err = both[i].Err.Err(); err != nil && x.cause != nil {
			err = x.cause
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
	if err = both[1].check(&both[0]); err == nil && x.others != 0 && len(both[1].Reports) != x.others {
		err = fmt.Errorf("%w: the other group had %d processes and has %d now", ErrProtocol, x.others, len(both[1].Reports))
	}
	x.others = len(both[1].Reports)
	return &both[0], &both[1], err
}

// check validates the message of the other group.
func (r *groupMessage) check(mine *groupMessage) error {
	bad := len(r.Reports) == 0 || (r.Head == nil) != (mine.Head == nil)
	for i := range r.Reports {
		bad = bad || mine.Head != nil && r.Reports[i].Member == nil
	}
	switch {
	case bad:
		return fmt.Errorf("%w: empty message of the other group", ErrProtocol)
	case r.Head != nil && (r.Head.Transport != mine.Head.Transport || r.Head.Streams != mine.Head.Streams):
		return fmt.Errorf("%w: the other group uses %.20s with %d streams, this one %s with %d",
			ErrOption, r.Head.Transport, r.Head.Streams, mine.Head.Transport, mine.Head.Streams)
	case len(r.Reports) > MaxConnected:
		return fmt.Errorf("%w: %d processes", ErrLimit, len(r.Reports))
	}
	return nil
}

// gather is the root's part of allgather: it receives the messages of its group and exchanges them
// with the other root. It does the latter whatever has failed before, because the other root waits
// for it.
func (x *groupExchange) gather(ctx context.Context, own groupMessage, b []byte) (both [2]groupMessage) {
	c := x.c
	own.Reports = make([]processMessage, len(c.group))
	buf := make([]byte, maxProcessMessage)
	for r := range c.group {
		said, err := b, error(nil)
		if r != c.rank {
			var st status
			st, err = c.recv(ctx, slotComm, buf, r, tagProcessMessage)
			said = buf[:st.Bytes]
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
	if x.conn == nil {
		return both
	}
	out, err := json.Marshal(both[0])
	if err == nil && len(out) > maxGroupMessage {
		err = fmt.Errorf("%w: too many processes", ErrLimit)
		both[0] = groupMessage{Err: mpierr.MakePortable(err)}
		out, _ = json.Marshal(both[0]) // cannot fail: it was encoded above
	}
	in, serr := x.conn.exchange(ctx, out)
	if serr == nil {
		serr = json.Unmarshal(in, &both[1])
	}
	if serr != nil {
		both[1] = groupMessage{Err: mpierr.MakePortable(fmt.Errorf("%w: the other group: %w", ErrPort, serr))}
	}
	return both
}

// bcastFrom broadcasts the bytes b of the root to all ranks of c.
func (c *Comm) bcastFrom(ctx context.Context, root int, b []byte) ([]byte, error) {
	x := leaders{local: c, leader: root}
	if c.rank != root {
		return x.recvResult(ctx, 4*maxGroupMessage)
	}
	for r := range c.group {
		if r == root {
			continue
		}
		if err := x.sendResult(ctx, r, b, nil); err != nil {
			return nil, err
		}
	}
	return b, nil
}
