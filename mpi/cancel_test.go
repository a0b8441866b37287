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
		if n, a := w.eng.ids.len(), c.peers[1].announced.Load(); n != 0 || a != 0 {
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
		settle := func(r *Request, id int32) error {
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
				if err := settle(last, ids[len(ids)-1]); err != nil {
					return err
				}
			}
			last, ids = r, append(ids, int32(i))
		}
		if err := settle(last, ids[len(ids)-1]); err != nil {
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

// A peer that says a receive, or a send that was not cancelled, is withdrawn
// breaks the protocol.
func TestWithdrawnUnasked(t *testing.T) {
	o, err := buildOptions(TransportInproc, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(0, 2, o, nil)
	p := w.eng.peers[1]
	for _, r := range []*Request{{eng: w.eng, peer: p}, {eng: w.eng, peer: p, ctx: w.world.ctx[slotUser], canceling: true}} {
		v := envelope{kind: kindWithdrawn, id: w.eng.ids.add(r, p)}
		var hdr [envelopeMaxLen]byte
		if _, err := p.flows[0].feed(v.put(&hdr)); !errors.Is(err, ErrProtocol) || !r.done.Load() {
			t.Errorf("error %v, request done: %v", err, r.done.Load())
		}
		p.flows[0].busy = false
	}
}
