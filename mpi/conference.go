package mpi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// member is what a process says about itself.
type member struct {
	Job    uint64 // see procName
	Rank   uint32
	Addr   string // for the transport
	Window int64  // bytes of eager messages it takes
	Call   string // see World.launcherName
}

func (m *member) name() procName { return procName{m.Job, m.Rank} }

// report is what a process says in one round.
type report struct {
	Member *member          `json:",omitempty"`
	Links  [][2]uint64      `json:",omitempty"` // present ones: place in the other group, and name
	Err    *mpierr.Portable `json:",omitempty"`
}

// round is what a group says in one round.
type round struct {
	Head    *head            `json:",omitempty"` // in the first
	Reports []report         `json:",omitempty"`
	Err     *mpierr.Portable `json:",omitempty"` // instead
}

// head is what is the same for all members of a group.
type head struct {
	Transport string
	Streams   int
	ID        uint64 // of the meeting; from the side that accepts
	Key       []byte
}

// conference is how a group talks to the other one.
type conference struct {
	c      *Comm
	root   int
	parley *parley // at the root
	cause  error   // why there is none
	others int     // processes of the other group; 0: not known yet
}

// confer gives all processes of both groups what all of them say. Only the
// root's own counts. It fails alike on all, if one of them says so or cannot be
// heard.
func (x *conference) confer(ctx context.Context, own round, say report) (mine, theirs *round, err error) {
	c := x.c
	b, err := json.Marshal(say)
	if err == nil && len(b) > maxReport {
		b, err = json.Marshal(report{Err: mpierr.MakePortable(fmt.Errorf("%w: too much to say for a process", ErrLimit))})
	}
	if err != nil {
		return nil, nil, err
	}
	var both [2]round
	if c.rank == x.root {
		both = x.collect(ctx, own, b)
	} else if err := c.send(ctx, slotComm, sendStandard, b, x.root, tagReport); err != nil {
		return nil, nil, err
	}
	if b, err = json.Marshal(both); err != nil {
		return nil, nil, err
	}
	if b, err = c.proclaim(ctx, x.root, b); err != nil {
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

// check finds out whether the other group says what can be.
func (r *round) check(mine *round) error {
	bad := len(r.Reports) == 0 || (r.Head == nil) != (mine.Head == nil)
	for i := range r.Reports {
		bad = bad || mine.Head != nil && r.Reports[i].Member == nil
	}
	switch {
	case bad:
		return fmt.Errorf("%w: the other group says nothing", ErrProtocol)
	case r.Head != nil && (r.Head.Transport != mine.Head.Transport || r.Head.Streams != mine.Head.Streams):
		return fmt.Errorf("%w: the other group uses %.20s with %d streams, this one %s with %d",
			ErrOption, r.Head.Transport, r.Head.Streams, mine.Head.Transport, mine.Head.Streams)
	case len(r.Reports) > MaxConnected:
		return fmt.Errorf("%w: %d processes", ErrLimit, len(r.Reports))
	}
	return nil
}

// collect is the root's part of confer. Whatever happens it tells the other one.
func (x *conference) collect(ctx context.Context, own round, b []byte) (both [2]round) {
	c := x.c
	own.Reports = make([]report, len(c.group))
	buf := make([]byte, maxReport)
	for r := range c.group {
		said, err := b, error(nil)
		if r != c.rank {
			var st Status
			st, err = c.recv(ctx, slotComm, buf, r, tagReport)
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
	if x.parley == nil {
		return both
	}
	out, err := json.Marshal(both[0])
	if err == nil && len(out) > maxRound {
		err = fmt.Errorf("%w: too many processes", ErrLimit)
		both[0] = round{Err: mpierr.MakePortable(err)}
		out, _ = json.Marshal(both[0]) // has been done above
	}
	in, serr := x.parley.swap(ctx, out)
	if serr == nil {
		serr = json.Unmarshal(in, &both[1])
	}
	if serr != nil {
		both[1] = round{Err: mpierr.MakePortable(fmt.Errorf("%w: the other group: %w", ErrPort, serr))}
	}
	return both
}

// proclaim gives all ranks of c what the root says.
func (c *Comm) proclaim(ctx context.Context, root int, b []byte) ([]byte, error) {
	x := leaders{local: c, leader: root}
	if c.rank != root {
		return x.hear(ctx, 4*maxRound)
	}
	for r := range c.group {
		if r == root {
			continue
		}
		if err := x.tell(ctx, r, b, nil); err != nil {
			return nil, err
		}
	}
	return b, nil
}
