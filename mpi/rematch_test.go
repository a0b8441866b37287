package mpi

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

// rematchJob is a job of three ranks whose messages the test delivers.
func rematchJob(t *testing.T) *chaos {
	t.Helper()
	seed := testSeed(t)
	return newChaos(t, 3, rand.New(rand.NewPCG(seed, 1)), WithEager(100))
}

// deliverAll delivers all that is under way from rank a to b.
func (k *chaos) deliverAll(a, b int) {
	k.t.Helper()
	l := k.link(a, b)
	for l.waiting > 0 {
		for s := range l.streams {
			for len(l.streams[s]) > 0 {
				l.deliver(k.t, s)
			}
		}
	}
}

// post begins a receive at rank 0.
func rematchRecv(t *testing.T, k *chaos, b []byte, src, tag int) *Request {
	t.Helper()
	r, err := Irecv(k.worlds[0].Comm(), b, src, tag)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// announce begins to send a long message from a rank, which has begun with first.
func announce(t *testing.T, k *chaos, from, tag int, first byte) *Request {
	t.Helper()
	b := make([]byte, 1000)
	b[0] = first
	r, err := Isend(k.worlds[from].Comm(), b, 0, tag)
	if err != nil {
		t.Fatal(err)
	}
	k.deliverAll(from, 0)
	return r
}

// wantDone checks that r is done with a message that begins with first.
func wantDone(t *testing.T, name string, r *Request, b []byte, first byte, src int) {
	t.Helper()
	if st, done, err := r.Test(); !done || err != nil || st.Source != src || b[0] != first {
		t.Errorf("%s: done %v, %+v, %v, begins with %d; want message %d from rank %d", name, done, st, err, b[0], first, src)
	}
}

// A receive whose sender dies before the body is there goes on to the message that it
// would have got without the dead one, whether that is there already or comes later;
// then it is before younger receives. One that is given up takes none.
func TestRematchSenderDies(t *testing.T) {
	k := rematchJob(t)
	bufs := make([][]byte, 4)
	for i := range bufs {
		bufs[i] = make([]byte, 1000)
	}
	r0 := rematchRecv(t, k, bufs[0], AnySource, 5)
	r1 := rematchRecv(t, k, bufs[1], AnySource, 5)
	r2 := rematchRecv(t, k, bufs[2], AnySource, 5)
	for i := range 3 {
		announce(t, k, 1, 5, byte(10+i)) // r0, r1 and r2 get these
	}
	r3 := rematchRecv(t, k, bufs[3], AnySource, 5)
	if err := Bsend(k.worlds[2].Comm(), []byte{20}, 0, 6); err != nil {
		t.Fatal(err)
	}
	k.deliverAll(2, 0)
	if r2.Cancel() {
		t.Error("a receive that has matched can be cancelled")
	}
	k.worlds[0].eng.Peers[1].Down(errors.New("died"))
	if _, done, err := r2.Test(); !done || err != ErrCanceled {
		t.Errorf("receive that was cancelled when it had matched: done %v, %v", done, err)
	}
	for i, r := range []*Request{r0, r1, r3} {
		if r.request.Finished.Load() {
			t.Fatalf("receive %d is done: %v", i, r.request.Err)
		}
	}
	for i := range 3 {
		if err := Bsend(k.worlds[2].Comm(), []byte{byte(21 + i)}, 0, 5); err != nil {
			t.Fatal(err)
		}
	}
	k.deliverAll(2, 0)
	wantDone(t, "oldest receive", r0, bufs[0], 21, 2)
	wantDone(t, "next receive", r1, bufs[1], 22, 2)
	wantDone(t, "receive posted after the match", r3, bufs[3], 23, 2)
	wantDone(t, "receive for another tag", rematchRecv(t, k, bufs[2], 2, 6), bufs[2], 20, 2)
}

// The next message of the dead rank is there: a receive for that rank gets it. The one
// after that reports the failure.
func TestRematchNextOfTheDead(t *testing.T) {
	k := rematchJob(t)
	b, b2 := make([]byte, 1000), make([]byte, 1000)
	r := rematchRecv(t, k, b, 1, 5)
	r2 := rematchRecv(t, k, b2, 1, 5)
	announce(t, k, 1, 5, 10)
	announce(t, k, 1, 5, 11)
	announce(t, k, 1, 5, 12) // waits for a receive
	if err := Bsend(k.worlds[1].Comm(), []byte{13}, 0, 5); err != nil {
		t.Fatal(err)
	}
	k.deliverAll(1, 0)
	k.worlds[0].eng.Peers[1].Down(errors.New("died"))
	// The order of the two is not that of their posting: both have lost their messages.
	_, done, err := r.Test()
	_, done2, err2 := r2.Test()
	errs := []error{err, err2}
	if i := slices.Index(errs, nil); !done || !done2 || i < 0 || !errors.Is(errs[1-i], ErrProcFailed) || [][]byte{b, b2}[i][0] != 13 {
		t.Errorf("done %v and %v, with %v and %v: want one with the last message", done, done2, err, err2)
	}
	if n := k.worlds[0].eng.Peers[1].Ready.Load(); n != 0 {
		t.Errorf("%d announced messages of the dead rank are left", n)
	}
}

// The part of a short message that is there when its sender dies is no message.
func TestRematchCutShort(t *testing.T) {
	k := rematchJob(t)
	b := make([]byte, 1000)
	r := rematchRecv(t, k, b, AnySource, 5)
	if err := Bsend(k.worlds[1].Comm(), make([]byte, 90), 0, 5); err != nil {
		t.Fatal(err)
	}
	l := k.link(1, 0)
	for s := range l.streams {
		for _, fr := range l.streams[s] {
			if _, err := l.to.Parsers[s].Parse(fr.data[:len(fr.data)-1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r.request.Posted() {
		t.Fatal("the message has not matched")
	}
	k.worlds[0].eng.Peers[1].Down(errors.New("died"))
	if err := Bsend(k.worlds[2].Comm(), []byte{20}, 0, 5); err != nil {
		t.Fatal(err)
	}
	k.deliverAll(2, 0)
	wantDone(t, "receive", r, b, 20, 2)
}

// A send that was given up because of a failure is asked for its body: the receive goes
// on to the next message.
func TestRematchSendGivenUp(t *testing.T) {
	k := rematchJob(t)
	b := make([]byte, 1000)
	r := rematchRecv(t, k, b, 1, 5)
	s := announce(t, k, 1, 5, 10)
	e := k.worlds[1].eng
	e.InterruptSends(func(x *p2p.Context) bool { return x == s.request.Sent }, errTestOver)
	if _, done, err := s.Test(); !done || err != errTestOver {
		t.Fatalf("send: done %v, %v", done, err)
	}
	k.deliverAll(0, 1) // asks for the body
	k.deliverAll(1, 0) // there is none
	if r.request.Finished.Load() {
		t.Fatalf("receive is done: %v", r.request.Err)
	}
	s = announce(t, k, 1, 5, 11)
	k.deliverAll(0, 1)
	k.deliverAll(1, 0)
	wantDone(t, "receive", r, b, 11, 1)
	if _, done, err := s.Test(); !done || err != nil {
		t.Errorf("send: done %v, %v", done, err)
	}
}

// A send whose context has ended is withdrawn by the receiver's word alone: when a
// receive has matched the message, or Mprobe has taken it, the send succeeds.
func TestSendGivenUpTooLate(t *testing.T) {
	for _, size := range []int{8, 5000} {
		for _, probe := range []bool{false, true} {
			runRanks(t, 2, func(ctx context.Context, w *World) error {
				c := w.Comm()
				b := make([]byte, size)
				if c.Rank() == 1 {
					if probe {
						m, err := Mprobe(ctx, c, 0, 1)
						if err != nil {
							return err
						}
						if err := c.barrier(ctx); err != nil {
							return err
						}
						if _, err := Mrecv(ended, m, b); err != nil {
							return err
						}
						return checkPattern(b, 3)
					}
					r, err := Irecv(c, b, 0, 1)
					if err != nil {
						return err
					}
					if err := c.barrier(ctx); err != nil {
						return err
					}
					if _, err := r.Wait(ctx); err != nil {
						return err
					}
					return checkPattern(b, 3)
				}
				pattern(b, 3)
				r, err := Issend(c, b, 1, 1)
				if err != nil {
					return err
				}
				if err := c.barrier(ctx); err != nil {
					return err
				}
				return w.eng.AwaitSend(ended, &r.request)
			}, WithEager(1000))
		}
	}
}
