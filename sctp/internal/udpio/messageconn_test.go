package udpio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/internal/slab"
)

// scriptConn reads what incoming holds, and keeps what is written.
type scriptConn struct {
	net.Conn // nil: for the methods that nobody calls
	incoming chan any
	gate     chan struct{} // a Write takes one element; nil: none
	closed   chan struct{}
	once     sync.Once

	mu      sync.Mutex
	written [][]byte
}

func newScriptConn(incoming ...any) *scriptConn {
	c := &scriptConn{incoming: make(chan any, len(incoming)+1), closed: make(chan struct{})}
	for _, x := range incoming {
		c.incoming <- x
	}
	return c
}

func (c *scriptConn) Read(b []byte) (int, error) {
	select {
	case x := <-c.incoming:
		if err, ok := x.(error); ok {
			return 0, err
		}
		return copy(b, x.([]byte)), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *scriptConn) Write(b []byte) (int, error) {
	if c.gate != nil {
		select {
		case <-c.gate:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written = append(c.written, bytes.Clone(b))
	return len(b), nil
}

func (c *scriptConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *scriptConn) sent() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.written)
}

// batchScriptConn reads and writes several messages at once.
type batchScriptConn struct {
	*scriptConn
	calls int // of WriteBatch
	err   error
}

func (c *batchScriptConn) ReadBatch(buffers [][]byte, sizes []int) (n int, err error) {
	for n < len(buffers) && (n == 0 || len(c.incoming) > 0) {
		if sizes[n], err = c.Read(buffers[n]); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (c *batchScriptConn) WriteBatch(messages [][]byte) error {
	c.calls++
	for _, m := range messages {
		if _, err := c.Write(m); err != nil {
			return err
		}
	}
	return c.err
}

// readMessages reads once.
func readMessages(t *testing.T, c *MessageConn) (got [][]byte, err error) {
	t.Helper()
	var pool slab.Pool
	bufs, metas := make([]*slab.Buf, c.Batches()), make([]Meta, c.Batches())
	for i := range bufs {
		bufs[i] = pool.Get()
	}
	var mu sync.Mutex
	n, err := c.Read(&mu, bufs, metas)
	if n > 0 {
		mu.Unlock()
	}
	for i := range n {
		if metas[i] != (Meta{SegSize: len(bufs[i].B), Local: ConnLocal.Addr(), Remote: ConnRemote}) {
			t.Errorf("message %d is %+v", i, metas[i])
		}
		got = append(got, bytes.Clone(bufs[i].B))
	}
	return got, err
}

// Messages that are empty or did not fit the buffer are dropped and counted; other errors end a Read.
func TestMessageConnReads(t *testing.T) {
	broken := errors.New("broken")
	c := NewMessageConn(newScriptConn([]byte("one"), []byte{}, fmt.Errorf("a message of 70000 bytes: %w", io.ErrShortBuffer), []byte("two"), broken))
	for _, want := range []string{"one", "two"} {
		if got, err := readMessages(t, c); err != nil || len(got) != 1 || string(got[0]) != want {
			t.Errorf("Read = %q, %v, want %q", got, err, want)
		}
	}
	if _, err := readMessages(t, c); err != broken {
		t.Errorf("Read = %v, want the error of the connection", err)
	}
	if n := c.Info().Drops; n != 2 {
		t.Errorf("%d drops, want 2", n)
	}
}

// A connection that reads several messages at once is asked for up to MaxMessages; empty ones are left out.
func TestMessageConnReadsBatches(t *testing.T) {
	var incoming []any
	for i := range 2 * MaxMessages {
		incoming = append(incoming, bytes.Repeat([]byte{byte(i)}, i%4*100)) // every fourth is empty
	}
	incoming = append(incoming, io.ErrShortBuffer, []byte("last"))
	c := NewMessageConn(&batchScriptConn{scriptConn: newScriptConn(incoming...)})
	if n := c.Batches(); n != MaxMessages {
		t.Fatalf("Batches = %d, want %d", n, MaxMessages)
	}
	var got [][]byte
	for round := 0; len(got) == 0 || string(got[len(got)-1]) != "last"; round++ {
		more, err := readMessages(t, c)
		if err != nil || round < 2 && len(more) != MaxMessages*3/4 {
			t.Fatalf("read %d: %d messages, %v", round, len(more), err)
		}
		got = append(got, more...)
	}
	want := 0
	for _, m := range got[:len(got)-1] {
		if want%4 == 0 {
			want++
		}
		if len(m) != want%4*100 || m[0] != byte(want) {
			t.Errorf("a message of %d bytes of %d, want message %d", len(m), m[0], want)
		}
		want++
	}
	if n := c.Info().Drops; n != 2*MaxMessages/4+1 {
		t.Errorf("%d drops, want %d", n, 2*MaxMessages/4+1)
	}
}

// What waits for a connection is written in its order and sizes, by WriteBatch all at once.
func TestMessageConnWrites(t *testing.T) {
	for _, batch := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newScriptConn()
			s.gate = make(chan struct{}, 1000)
			refused := errors.New("refused")
			b := &batchScriptConn{scriptConn: s, err: refused}
			c := NewMessageConn(s)
			if batch {
				c = NewMessageConn(b)
			}
			var results []error
			c.Start(func() {}, func(err error) { results = append(results, err) })
			var want [][]byte
			write := func(msg []byte, seg int) {
				for at := 0; at < len(msg); at += seg {
					want = append(want, bytes.Clone(msg[at:min(at+seg, len(msg))]))
				}
				if err := c.Write(msg, &Meta{SegSize: seg}); err != nil {
					t.Error(err)
				}
				clear(msg) // Write has copied it
			}
			write(pattern(10), 10)
			synctest.Wait() // the first write waits for the gate
			write(pattern(2500), 1000)
			write(pattern(1000), 500)
			if err := c.WriteGather(make([]byte, 20), []slab.IOVec{{At: 10, B: pattern(10)}}, &Meta{SegSize: 20}); err != nil {
				t.Error(err)
			}
			want = append(want, append(make([]byte, 10), pattern(10)...))
			for range want {
				s.gate <- struct{}{}
			}
			synctest.Wait()
			if got := s.sent(); !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("batch %v: %d messages were written, want %d", batch, len(got), len(want))
			}
			if n := len(results); batch && (b.calls != 2 || n != 2 || results[0] != refused) || !batch && (n != len(want) || results[0] != nil) {
				t.Errorf("batch %v: %d calls, results %v", batch, b.calls, results)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := c.Write([]byte("x"), &Meta{}); !errors.Is(err, ErrClosed) {
				t.Errorf("Write after Close = %v", err)
			}
		})
	}
}

// What waits is bounded, and there is a flush when there is room.
func TestMessageConnBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptConn()
		s.gate = make(chan struct{}, 1000)
		c := NewMessageConn(s)
		flushes := 0
		c.Start(func() { flushes++ }, func(error) {})
		msg := make([]byte, 1000)
		c.Write(msg, &Meta{SegSize: len(msg)})
		synctest.Wait() // it is being written
		waiting := 0
		for ; !c.Full(); waiting += len(msg) {
			c.Write(msg, &Meta{SegSize: len(msg)})
		}
		if waiting < maxWaiting || waiting > maxWaiting+len(msg) {
			t.Errorf("full with %d bytes, want about %d", waiting, maxWaiting)
		}
		for range 200 { // of those that do not ask
			c.Write(msg, &Meta{SegSize: len(msg)})
		}
		if n, most := len(c.waiting.mem), maxWaiting+MaxBatchBytes+len(msg); n > most || c.Info().Drops == 0 {
			t.Errorf("%d bytes wait, %d drops, want at most %d bytes", n, c.Info().Drops, most)
		}
		if flushes != 0 {
			t.Errorf("%d flushes while there was no room", flushes)
		}
		s.gate <- struct{}{}
		synctest.Wait()
		if flushes != 1 || c.Full() {
			t.Errorf("%d flushes, full %v once there is room", flushes, c.Full())
		}
		start := time.Now()
		c.Close() // the connection takes nothing more
		if d := time.Since(start); d != drainWait {
			t.Errorf("Close took %v, want %v", d, drainWait)
		}
	})
}

// Receives share a flush, up to maxDeferred of them, while the writer has other things to do.
func TestMessageConnDefersFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptConn()
		s.gate = make(chan struct{}, 10)
		c := NewMessageConn(s)
		flushes := 0
		c.Start(func() { flushes++ }, func(error) {})
		if !c.DeferFlush() {
			t.Error("the first receive was to flush by itself")
		}
		synctest.Wait()
		if flushes != 1 {
			t.Errorf("%d flushes after one receive", flushes)
		}
		c.Write([]byte("x"), &Meta{SegSize: 1})
		synctest.Wait() // it is being written
		for i := range 3 * (maxDeferred + 1) {
			if got, want := c.DeferFlush(), (i+1)%(maxDeferred+1) != 0; got != want {
				t.Errorf("receive %d: deferred %v, want %v", i, got, want)
			}
		}
		if flushes != 1 {
			t.Errorf("%d flushes during a write", flushes)
		}
		s.gate <- struct{}{}
		synctest.Wait()
		if flushes != 2 {
			t.Errorf("%d flushes, want one for all receives", flushes)
		}
		for range maxDeferred { // the count has begun again
			if !c.DeferFlush() {
				t.Error("a receive was to flush by itself")
			}
			synctest.Wait()
		}
		if flushes != 2+maxDeferred {
			t.Errorf("%d flushes, want one for each receive while the writer is idle", flushes)
		}
		c.Close()
		if c.DeferFlush() {
			t.Error("a flush was deferred to a writer that has ended")
		}
	})
}
