package rconn

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/verbs"
)

// fill writes to s until nothing more is taken.
func fill(t *testing.T, s *Stream) (n int) {
	t.Helper()
	s.SetWriteDeadline(time.Now().Add(10 * time.Second))
	defer s.SetWriteDeadline(time.Time{})
	for {
		k, err := s.Write(make([]byte, 500))
		n += k
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Close ends all calls that block, those that wait for another one of their kind too,
// before it waits itself.
func TestCloseEndsBlockedCalls(t *testing.T) {
	for _, tc := range []struct {
		name  string
		full  bool
		block func(s *Stream) error
	}{
		{"Stream.Write", true, func(s *Stream) error { _, err := s.Write(make([]byte, 5000)); return err }},
		{"Stream.Read", false, func(s *Stream) error { _, err := s.Read(make([]byte, 5000)); return err }},
		{"Conn.Send", true, func(s *Stream) error { return s.Send(context.Background(), make([]byte, 5000)) }},
		{"Conn.Recv", false, func(s *Stream) error { _, err := s.Recv(context.Background(), nil); return err }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := sctptest.NewNetwork(1)
				n.SetDefault(sctptest.Link{Delay: time.Millisecond})
				a, b, closeAll := linked(t, n)
				defer closeAll()
				s := a.Stream()
				if tc.full {
					fill(t, s)
				}
				const calls = 3
				done := make(chan error, calls)
				for range calls {
					go func() { done <- tc.block(s) }()
				}
				synctest.Wait()
				if len(done) > 0 {
					t.Fatalf("it returned %v before", <-done)
				}
				go a.Close()
				synctest.Wait()
				if len(done) != calls {
					t.Errorf("%d of %d calls have returned", len(done), calls)
				}
				for range calls {
					if err := <-done; !errors.Is(err, net.ErrClosed) {
						t.Errorf("it returned %v", err)
					}
				}
				b.Close()
			})
		})
	}
}

// A deadline counts for Writes that wait for room, at the peer or in the send queue, and
// what they say was written arrives.
func TestWriteDeadlines(t *testing.T) {
	for _, tc := range []struct {
		name  string
		queue bool // it is the send queue that is full
	}{{"peer", false}, {"send queue", true}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := sctptest.NewNetwork(1)
				n.SetDefault(sctptest.Link{Delay: time.Millisecond})
				a, b, closeAll := linked(t, n)
				defer closeAll()
				s, written := a.Stream(), 0
				if tc.queue {
					n.Cut("10.0.0.1", "10.0.0.2")
					var empty [headerLen]byte
					for err := error(nil); !errors.Is(err, verbs.ErrQueueFull); {
						err = a.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, Inline: empty[:]})
						if err != nil && !errors.Is(err, verbs.ErrQueueFull) {
							t.Fatal(err)
						}
					}
				} else {
					written = fill(t, s)
				}
				began := time.Now()
				s.SetWriteDeadline(began.Add(time.Second))
				results := make(chan int, 3)
				for range 3 {
					go func() {
						n, err := s.Write(make([]byte, 300))
						if !errors.Is(err, os.ErrDeadlineExceeded) {
							t.Errorf("Write = %v", err)
						}
						results <- n
					}()
				}
				for range 3 {
					written += <-results
				}
				if d := time.Since(began); d != time.Second {
					t.Errorf("the Writes ended after %v", d)
				}
				if tc.queue {
					// The peer has no receives for so many messages.
					a.qp.Close()
					b.qp.Close()
					a.Close()
					b.Close()
					return
				}
				s.SetWriteDeadline(time.Time{})
				go func() {
					s.Write(make([]byte, 3000))
					a.Close()
				}()
				got, err := io.Copy(io.Discard, b.Stream())
				if err != nil || got != int64(written+3000) {
					t.Errorf("%d bytes arrived, %v; %d were written", got, err, written+3000)
				}
				b.Close()
			})
		})
	}
}
