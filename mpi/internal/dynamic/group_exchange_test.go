package dynamic

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weftstack/weft/mpi/internal/mpierr"
)

// testTime bounds a test.
const testTime = time.Minute

// fakeComm is a communicator that passes messages in memory, as one rank of it has it.
type fakeComm struct {
	rank  int
	boxes [][]chan []byte // by receiver and sender
}

// newGroup makes the ranks of a group.
func newGroup(n int) []*fakeComm {
	boxes := make([][]chan []byte, n)
	for i := range boxes {
		boxes[i] = make([]chan []byte, n)
		for j := range boxes[i] {
			boxes[i][j] = make(chan []byte, 1)
		}
	}
	group := make([]*fakeComm, n)
	for i := range group {
		group[i] = &fakeComm{i, boxes}
	}
	return group
}

func (c *fakeComm) Rank() int { return c.rank }
func (c *fakeComm) Size() int { return len(c.boxes) }

func (c *fakeComm) Send(ctx context.Context, b []byte, to int) error {
	select {
	case c.boxes[to][c.rank] <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *fakeComm) receive(ctx context.Context, from int) ([]byte, error) {
	select {
	case b := <-c.boxes[c.rank][from]:
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *fakeComm) Recv(ctx context.Context, b []byte, from int) (int, error) {
	in, err := c.receive(ctx, from)
	return copy(b, in), err
}

func (c *fakeComm) Bcast(ctx context.Context, root int, b []byte) ([]byte, error) {
	if c.rank != root {
		return c.receive(ctx, root)
	}
	for r := range c.boxes {
		if r != root {
			if err := c.Send(ctx, b, r); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// exchanges lets two groups of ranks run an exchange over a pipe.
func exchanges(t *testing.T, ranks int, f func(ctx context.Context, x *Exchange, side int) error) {
	t.Helper()
	a, b := net.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	errc := make(chan error, 2*ranks)
	for side, conn := range []net.Conn{a, b} {
		for _, c := range newGroup(ranks) {
			x := &Exchange{Comm: c, Limit: 1000}
			if c.rank == 0 {
				x.Conn = &RootConn{conn: conn}
			}
			go func() { errc <- f(ctx, x, side) }()
		}
	}
	for range 2 * ranks {
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
		own  GroupMessage
		say  ProcessMessage
	}{
		{"process", GroupMessage{}, ProcessMessage{Links: make([][2]uint64, maxProcessMessage/4)}},
		{"group", GroupMessage{Head: &GroupHeader{Key: make([]byte, MaxGroupMessage/4*3)}}, ProcessMessage{}}, // base64
	} {
		t.Run(tt.name, func(t *testing.T) {
			exchanges(t, 2, func(ctx context.Context, x *Exchange, side int) error {
				own, say := GroupMessage{}, ProcessMessage{}
				if side == 0 && x.Comm.Rank() == 0 {
					own, say = tt.own, tt.say
				}
				if _, _, err := x.Allgather(ctx, own, say); !errors.Is(err, mpierr.ErrLimit) {
					return fmt.Errorf("side %d, rank %d: %w", side, x.Comm.Rank(), err)
				}
				return nil
			})
		})
	}
	exchanges(t, 2, func(ctx context.Context, x *Exchange, side int) error { // just short of it
		links := make([][2]uint64, maxProcessMessage/8)
		mine, theirs, err := x.Allgather(ctx, GroupMessage{}, ProcessMessage{Links: links})
		if err != nil || len(mine.Reports) != 2 || len(theirs.Reports[1].Links) != len(links) {
			return fmt.Errorf("side %d, rank %d: %w", side, x.Comm.Rank(), err)
		}
		return nil
	})
}

// TestGroupSizeChanges has another group that loses a process between rounds.
func TestGroupSizeChanges(t *testing.T) {
	one := ProcessMessage{Member: &ProcessInfo{Job: 1, Addr: "nowhere"}}
	h := &GroupHeader{Transport: "inproc", Streams: 1}
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	a, b := net.Pipe()
	defer a.Close()
	go func() {
		defer b.Close()
		for _, r := range []GroupMessage{{Head: h, Reports: []ProcessMessage{one, one}}, {Reports: []ProcessMessage{{}, {}}}, {Reports: []ProcessMessage{{}}}} {
			out, _ := json.Marshal(r)
			if _, err := (&RootConn{conn: b}).exchange(ctx, out); err != nil {
				return
			}
		}
	}()
	x := &Exchange{Comm: newGroup(1)[0], Conn: &RootConn{conn: a}, Limit: 2}
	if _, theirs, err := x.Allgather(ctx, GroupMessage{Head: h}, one); err != nil || len(theirs.Reports) != 2 {
		t.Fatalf("the first round: %v", err)
	}
	if _, _, err := x.Allgather(ctx, GroupMessage{}, ProcessMessage{}); err != nil {
		t.Fatalf("the second round: %v", err)
	}
	if _, _, err := x.Allgather(ctx, GroupMessage{}, ProcessMessage{}); !errors.Is(err, mpierr.ErrProtocol) {
		t.Errorf("the round with one process less: %v", err)
	}
}

// A stranger at the other end, or a root gone mad, cannot make a rank take as
// much memory as it says.
func TestGroupExchangeFrames(t *testing.T) {
	frame := func(n uint32) io.Reader {
		return strings.NewReader(string(binary.BigEndian.AppendUint32(nil, n)) + "x")
	}
	if b, err := readFrame(frame(MaxGroupMessage+1), MaxGroupMessage); !errors.Is(err, mpierr.ErrProtocol) {
		t.Errorf("frame that is too long: %d bytes, %v", len(b), err)
	}
	if _, err := readFrame(frame(MaxGroupMessage), MaxGroupMessage); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("frame that ends early: %v", err)
	}
}
