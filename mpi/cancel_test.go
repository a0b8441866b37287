package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// Sends that nobody receives can be cancelled, and leave nothing behind: later
// ones with the same tags are received, in order.
func TestCancelSend(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		const long = 300_000
		if c.Rank() == 1 {
			if err := c.barrier(ctx); err != nil { // nothing is received before
				return err
			}
			for tag := range 4 {
				b := make([]byte, long)
				st, err := Recv(ctx, c, b, 0, AnyTag)
				if err != nil || st.Tag != tag || st.Bytes != 1 || b[0] != byte(10+tag) {
					return fmt.Errorf("received %+v, %d, %w", st, b[0], err)
				}
			}
			return nil
		}
		// The handler would end the job: a cancelled request is no error.
		c.SetErrorHandler(func(_ *Comm, err error) error { return fmt.Errorf("handled: %w", err) })
		bytes, err := TypeOf[byte]()
		if err != nil {
			return err
		}
		vector, err := TypeVector(long/2, 1, 2, bytes)
		if err != nil {
			return err
		}
		var reqs []*Request
		add := func(r *Request, err error) error {
			reqs = append(reqs, r)
			return err
		}
		p, err := SsendInit(c, []byte{3}, 1, 3)
		if err != nil {
			return err
		}
		if err := errors.Join(add(Isend(c, make([]byte, long), 1, 0)), add(Issend(c, []byte{1}, 1, 1)),
			add(IsendType(c, make([]byte, long), 1, vector, 1, 2)), add(p.Start()), add(Issend(c, make([]byte, long), 1, 0)),
			add(Issend(c, []byte{}, 1, 0))); err != nil {
			return err
		}
		for _, r := range reqs {
			r.Cancel()
			r.Cancel() // changes nothing
		}
		for i, r := range reqs {
			if _, err := r.Wait(ctx); err != ErrCanceled { //nolint:errorlint // not handled either
				return fmt.Errorf("cancelled send %d: %w", i, err)
			}
			if r.Cancel() {
				return fmt.Errorf("send %d cancelled twice", i)
			}
		}
		c.SetErrorHandler(nil)
		if n, a := w.eng.IDs.Len(), c.comm.Peers[1].Announced.Load(); n != 0 || a != 0 {
			return fmt.Errorf("%d requests, %d announced messages are left", n, a)
		}
		short, err := Isend(c, []byte{10}, 1, 0)
		if err != nil {
			return err
		}
		if _, err := short.Wait(ctx); err != nil || short.Cancel() {
			return fmt.Errorf("a message that was delivered is cancelled, %w", err)
		}
		for tag := 1; tag < 4; tag++ {
			if err := Send(ctx, c, []byte{byte(10 + tag)}, 1, tag); err != nil {
				return err
			}
		}
		return c.barrier(ctx)
	})
}

// Whatever the race between a cancellation and a receive, a send is either
// withdrawn or received, and what is received is in order.
func TestCancelSendRace(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() == 1 {
			var got []int32
			b := make([]int32, 1000)
			for {
				st, err := Recv(ctx, c, b, AnySource, AnyTag)
				if err != nil {
					return err
				}
				if st.Tag == 7 {
					return Send(ctx, c, got, 0, 0)
				}
				got = append(got, b[0])
			}
		}
		var want []int32
		var last *Request
		var ids []int32
		finishRequest := func(r *Request, id int32) error {
			switch _, err := r.Wait(ctx); {
			case err == nil:
				want = append(want, id)
			case !errors.Is(err, ErrCanceled):
				return err
			}
			return nil
		}
		for i := range rounds {
			b := make([]int32, 1+i%2*999)
			b[0] = int32(i)
			r, err := Issend(c, b, 1, i%3)
			if err != nil {
				return err
			}
			if i%5 != 0 {
				r.Cancel()
			}
			if last != nil {
				if err := finishRequest(last, ids[len(ids)-1]); err != nil {
					return err
				}
			}
			last, ids = r, append(ids, int32(i))
		}
		if err := finishRequest(last, ids[len(ids)-1]); err != nil {
			return err
		}
		if err := Send(ctx, c, []int32{0}, 1, 7); err != nil {
			return err
		}
		got := make([]int32, rounds)
		st, err := Recv(ctx, c, got, 1, 0)
		if err != nil {
			return err
		}
		n, err := Count[int32](st)
		if err != nil || n != len(want) {
			return fmt.Errorf("%d received, %d not cancelled, %w", n, len(want), err)
		}
		for i, x := range want {
			if got[i] != x {
				return fmt.Errorf("message %d is %d, want %d", i, got[i], x)
			}
		}
		return nil
	}, WithEager(2000))
}

// Sendrecv whose context ends withdraws what nobody has matched, and says so if that is
// only one of its two messages.
func TestSendrecvGivenUp(t *testing.T) {
	const long = 100_000
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if c.Rank() == 1 {
			var x [1]byte
			if _, err := Recv(ctx, c, x[:], 0, 1); err != nil || x[0] != 1 {
				return fmt.Errorf("the message that was sent: %d, %w", x[0], err)
			}
			if err := Send(ctx, c, []byte{2}, 0, 2); err != nil {
				return err
			}
			if err := c.barrier(ctx); err != nil {
				return err
			}
			if st, found, err := Iprobe(c, AnySource, AnyTag); found || err != nil {
				return fmt.Errorf("a withdrawn message is there: %+v, %w", st, err)
			}
			return nil
		}
		try := func(n, stag, rtag int, b []byte) (Status, *SendrecvError, error) {
			short, cancel := context.WithCancel(ctx)
			defer cancel()
			r, err := Irecv(c, []byte{}, 1, 99)
			if err != nil {
				return Status{}, nil, err
			}
			go func() { // cancels some time after the call has begun, mostly
				for range 100 {
					_, _, _ = r.Test()
				}
				cancel()
				r.Cancel()
			}()
			out := make([]byte, n)
			out[0] = 1
			st, err := Sendrecv(short, c, out, 1, stag, b, 1, rtag)
			if !errors.Is(err, context.Canceled) {
				return st, nil, fmt.Errorf("Sendrecv = %+v, %w, want %w", st, err, context.Canceled)
			}
			var half *SendrecvError
			errors.As(err, &half)
			return st, half, nil
		}
		b := make([]byte, 10)
		if _, half, err := try(long, 5, 5, b); err != nil || half != nil {
			return fmt.Errorf("neither message: %+v, %w", half, err)
		}
		// A call whose context has ended before it begins does neither.
		until := func(n, stag, rtag int, b []byte) (st Status, half *SendrecvError, err error) {
			for half == nil && err == nil {
				st, half, err = try(n, stag, rtag, b)
			}
			return st, half, err
		}
		if st, half, err := until(1, 1, 5, b); err != nil || half == nil || !half.Sent || half.Received || st != (Status{}) {
			return fmt.Errorf("only sent: %+v, %+v, %w", st, half, err)
		}
		if _, err := Probe(ctx, c, 1, 2); err != nil {
			return err
		}
		if st, half, err := until(long, 5, 2, b); err != nil || half == nil || half.Sent || !half.Received || st != (Status{Source: 1, Tag: 2, Bytes: 1}) || b[0] != 2 {
			return fmt.Errorf("only received: %+v, %+v, %w", st, half, err)
		}
		// With arguments that are wrong nothing is received.
		if err := Send(ctx, c, []byte{3}, 0, 3); err != nil {
			return err
		}
		if _, err := Sendrecv(ctx, c, b, 7, 3, b, 0, 3); !errors.Is(err, ErrRank) {
			return fmt.Errorf("Sendrecv to rank 7: %w, want %w", err, ErrRank)
		}
		if _, err := Sendrecv(ended, c, b, 1, 5, b, 0, 3); err != context.Canceled {
			return fmt.Errorf("Sendrecv with an ended context: %w", err)
		}
		if _, err := Isendrecv(c, b, 7, 3, b, 0, 3); !errors.Is(err, ErrRank) {
			return fmt.Errorf("Isendrecv to rank 7: %w, want %w", err, ErrRank)
		}
		if _, err := Recv(ctx, c, b, 0, 3); err != nil || b[0] != 3 {
			return fmt.Errorf("message to itself: %d, %w", b[0], err)
		}
		return c.barrier(ctx)
	})
}

// A message for a communicator that its receiver has freed is received by nobody: a
// send that waits for that fails.
func TestSendToFreed(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		defer d.Free()
		var early *Request
		if c.Rank() == 0 {
			if early, err = Isend(d, make([]byte, 100_000), 1, 1); err != nil {
				return err
			}
		} else if _, err = Probe(ctx, d, 0, 1); err != nil {
			return err
		}
		if c.Rank() == 1 {
			d.Free()
		}
		if err := c.barrier(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			if _, err := early.Wait(ctx); !errors.Is(err, ErrFreed) {
				return fmt.Errorf("send before Free: %w, want %w", err, ErrFreed)
			}
			if err := Send(ctx, d, make([]byte, 100_000), 1, 1); !errors.Is(err, ErrFreed) {
				return fmt.Errorf("long send: %w, want %w", err, ErrFreed)
			}
			if err := Ssend(ctx, d, make([]byte, 10), 1, 1); !errors.Is(err, ErrFreed) {
				return fmt.Errorf("short synchronous send: %w, want %w", err, ErrFreed)
			}
		}
		return c.barrier(ctx)
	})
}

// A message of Mprobe is received once.
func TestMrecvTwice(t *testing.T) {
	runRanks(t, 1, func(ctx context.Context, w *World) error {
		c := w.Comm()
		if err := Bsend(c, []byte{7}, 0, 1); err != nil {
			return err
		}
		m, err := Mprobe(ctx, c, 0, 1)
		if err != nil {
			return err
		}
		var x [1]byte
		if _, err := Mrecv(ctx, m, x[:]); err != nil || x[0] != 7 {
			return fmt.Errorf("received %d, %w", x[0], err)
		}
		if _, err := Mrecv(ctx, m, x[:]); !errors.Is(err, ErrMessage) {
			return fmt.Errorf("received twice: %w, want %w", err, ErrMessage)
		}
		if r, err := Imrecv(m, x[:]); err == nil {
			if _, err = r.Wait(ctx); !errors.Is(err, ErrMessage) {
				return fmt.Errorf("received twice: %w, want %w", err, ErrMessage)
			}
		}
		return nil
	})
}

// ended is a context that is over.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
