package sctp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// posts has the second of two ends post a buffer and receive msg. It reports whether the
// message went to the buffer, what it is described as, and the bytes.
func posts(t *testing.T, ends [2]*Association, stream int, room int, msg []byte, opts SendOptions) (RecvInfo, []byte, bool) {
	t.Helper()
	a := ends[1]
	buf := make([]byte, room)
	a.mu.Lock()
	if !a.postBuffer(stream, buf) {
		t.Fatal("cannot post")
	}
	a.mu.Unlock()
	seq := a.seq.Load()
	if err := ends[0].Send(t.Context(), msg, opts); err != nil {
		t.Fatal(err)
	}
	if !a.t.Poll() {
		t.Fatal("nothing came")
	}
	if a.seq.Load() == seq {
		t.Error("waiters are not told")
	}
	var info RecvInfo
	n, ok := a.takePosted(&info)
	if a.posted.state.Load() != bufferNone || a.posted.Dst != nil {
		t.Error("something is left of it")
	}
	return info, buf[:n], ok
}

// A short message goes to the posted buffer of a reader that polls; a message that is not
// eligible stays to be received.
func TestMessagesGoToPostedBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still in the bubble, however long this thread does
		ends := memPair(t)
		alwaysPolled(ends)
		buf := make([]byte, 2000)
		for range 4 {
			for i := range ends { // the first ones are acknowledged at once
				roundTrip(t, ends, buf[:10+i], buf)
			}
		}
		for i, tt := range []struct {
			stream, room int
			opts         SendOptions
			want         bool
		}{
			{anyStream, 100, SendOptions{}, true},
			{3, 100, SendOptions{Stream: 3, PPID: 77}, false}, // the stream is new
			{3, 100, SendOptions{Stream: 3, PPID: 78}, true},
			{anyStream, 100, SendOptions{Stream: 3}, true},
			{2, 100, SendOptions{Stream: 3}, false},
			{3, 5, SendOptions{Stream: 3}, true},
			{3, 4, SendOptions{Stream: 3}, false},
			{3, 100, SendOptions{Stream: 3, Unordered: true}, false},
			{3, 100, SendOptions{Stream: 3, Immediate: true}, false},
		} {
			msg := []byte("hello")
			info, got, ok := posts(t, ends, tt.stream, tt.room, msg, tt.opts)
			if ok != tt.want {
				t.Errorf("%d: the message went to the posted buffer: %v, want %v", i, ok, tt.want)
			}
			if !ok {
				var n int
				var err error
				if n, info, err = ends[1].Recv(t.Context(), buf); err != nil {
					t.Fatal(err)
				}
				got = buf[:n]
			}
			if !bytes.Equal(got, msg) || info.Stream != tt.opts.Stream || info.PPID != tt.opts.PPID || info.Association != ends[1] || !info.EOR || info.Unordered != tt.opts.Unordered {
				t.Errorf("%d: received %q, %+v", i, got, info)
			}
			if n, _, err := ends[1].TryRecv(buf); err != ErrWouldBlock {
				t.Errorf("%d: %d bytes more, %v", i, n, err)
			}
			if err := ends[1].Send(t.Context(), msg, SendOptions{}); err != nil { // which acknowledges
				t.Fatal(err)
			}
			if _, _, err := ends[0].Recv(t.Context(), buf); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// alwaysPolled turns suppression on, and keeps its timer from turning it off.
func alwaysPolled(ends [2]*Association) {
	for _, a := range ends {
		p := &a.t.suppression
		p.mu.Lock()
		p.closed = true
		p.on.Store(true)
		p.mu.Unlock()
	}
}

// Of two readers that poll the first takes the next message.
func TestMessagesAreNotForOneOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still in the bubble, however long this thread does
		ends := memPair(t)
		alwaysPolled(ends)
		buf := make([]byte, 100)
		for range 4 {
			roundTrip(t, ends, buf, buf)
		}
		a := ends[1]
		for _, two := range []bool{true, false} {
			a.mu.Lock()
			posted := a.postBuffer(anyStream, buf)
			if two && a.postBuffer(anyStream, buf) {
				t.Fatal("posted twice")
			}
			a.mu.Unlock()
			if err := ends[0].Send(t.Context(), []byte("hello"), SendOptions{}); !posted || err != nil || !a.t.Poll() {
				t.Fatal(posted, err)
			}
			var info RecvInfo
			if n, ok := a.takePosted(&info); ok == two {
				t.Errorf("two readers %v: the message went to the first: %v, %d bytes", two, ok, n)
			}
			if _, _, err := a.TryRecv(buf); err == nil != two {
				t.Errorf("two readers %v: %v", two, err)
			}
			if err := a.Send(t.Context(), []byte("yes"), SendOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := ends[0].Recv(t.Context(), buf); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A message on the fast path is acknowledged in time, though the SACK in its packet was
// deferred, and processed by a later send.
func TestSmallMessagesAreAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still in the bubble, however long this thread does
		for _, opts := range []SendOptions{{More: true}, {Stream: 60_000}} {
			ends := memPair(t)
			alwaysPolled(ends)
			buf := make([]byte, 2000)
			for range 4 {
				roundTrip(t, ends, buf[:100], buf)
			}
			a := ends[1]
			if _, _, ok := posts(t, ends, anyStream, 100, []byte("answer"), SendOptions{}); !ok || !a.core.HasDeferredSack() {
				t.Fatal("the SACK was not deferred")
			}
			_ = a.TrySend(buf, opts) // which processes it
			if a.core.HasDeferredSack() {
				t.Fatal("it still is")
			}
			a.t.Poll()
			a.mu.Lock()
			if next := a.core.NextTimeout(); a.armed != next || next == 0 {
				t.Errorf("%+v: wakes up at %d for what is due at %d", opts, a.armed, next)
			}
			a.mu.Unlock()
		}
	})
}

// A reader that is torn out of its wait leaves no buffer behind.
func TestPanicLeavesNothingPosted(t *testing.T) {
	ends := memPair(t)
	a := ends[1]
	a.t.waits.Always(time.Minute)
	s := a.t.sockets().list[0]
	posted := false
	onPoll := func() {
		if posted = a.posted.state.Load() == bufferPosted; posted {
			panic("an upcall")
		}
	}
	s.conn.(*memConn).onPoll.Store(&onPoll)
	func() {
		defer s.mu.Unlock() // which upcalls are called without
		defer func() { _ = recover() }()
		_, _, _ = a.Recv(t.Context(), make([]byte, 10))
	}()
	s.conn.(*memConn).onPoll.Store(nil)
	if !posted || a.posted.state.Load() != bufferNone || a.posted.Dst != nil || a.t.spinning.Any() {
		t.Errorf("posted %v, and then in state %d", posted, a.posted.state.Load())
	}
}

// A message is received once and in order, whoever polls, gives up, looks or parks
// meanwhile.
func TestReadersThatPollShareMessages(t *testing.T) {
	const messages = 20_000
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	ends := memPair(t)
	var seen [messages]atomic.Bool
	var left atomic.Int64
	left.Store(messages)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for r := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(r)))
			buf := make([]byte, 64)
			last := -1
			for left.Load() > 0 {
				var n int
				var err error
				switch some, stop := context.WithTimeout(ctx, time.Duration(rng.IntN(300))*time.Microsecond); {
				case rng.IntN(4) == 0:
					n, _, err = ends[1].TryRecv(buf)
					stop()
				default:
					n, _, err = ends[1].Recv(some, buf)
					stop()
				}
				switch {
				case err == nil && n == 8:
				case errors.Is(err, ErrWouldBlock), errors.Is(err, context.DeadlineExceeded):
					if ctx.Err() != nil {
						return
					}
					continue
				default:
					t.Errorf("%d bytes, %v", n, err)
					cancel()
					return
				}
				i := int(binary.BigEndian.Uint64(buf))
				if i >= messages || seen[i].Swap(true) {
					t.Errorf("message %d came twice", i)
				}
				if i < last {
					t.Errorf("message %d after %d", i, last)
				}
				last = i
				left.Add(-1)
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, 99))
	for i := range uint64(messages) {
		for {
			err := ends[0].TrySend(binary.BigEndian.AppendUint64(nil, i), SendOptions{})
			if err == nil {
				break
			}
			if err != ErrWouldBlock {
				t.Fatal(err)
			}
			ends[1].t.Poll() // no reader runs in this network
			ends[0].t.Poll()
		}
		for j := rng.IntN(3); j > 0; j-- {
			ends[0].t.Poll()
		}
	}
	for left.Load() > 0 && ctx.Err() == nil {
		ends[0].t.Poll()
		ends[1].t.Poll()
	}
	wg.Wait()
	if n := left.Load(); n != 0 {
		t.Errorf("%d messages are missing", n)
	}
}

// Who polls learns of the end.
func TestEndOfWhoPolls(t *testing.T) {
	ends := memPair(t)
	ends[1].t.waits.Always(time.Minute) // it does not park
	errs := make(chan error)
	go func() {
		_, _, err := ends[1].Recv(t.Context(), make([]byte, 10))
		errs <- err
	}()
	for begun := time.Now(); ends[1].posted.state.Load() != bufferPosted; time.Sleep(10 * time.Microsecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("it does not poll")
		}
	}
	ends[1].Close()
	if err := ends[0].Send(t.Context(), []byte("late"), SendOptions{}); err != nil && !errors.Is(err, ErrShutdown) {
		t.Fatal(err)
	}
	for {
		ends[0].t.Poll()
		ends[1].t.Poll()
		select {
		case err := <-errs:
			if err != ErrClosed {
				t.Errorf("%v, want %v", err, ErrClosed)
			}
			return
		default:
		}
	}
}
