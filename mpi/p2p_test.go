package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// testTransports are the transports that the tests of this package run on.
var testTransports = []string{TransportInproc, TransportTCP, TransportSCTP, hybridShared}

// hybridShared is TransportHybrid with memory that ranks share, where there can be.
const hybridShared = "hybrid+shared"

func overTransport(name string) Option {
	if name == hybridShared {
		return func(o *options) error {
			return errors.Join(WithTransport(TransportHybrid)(o), WithSharedMemory(true)(o))
		}
	}
	return WithTransport(name)
}

// A lower limit has tests announce more of their messages.
func init() { defaultEager = 64 << 10 }

// runRanks runs f on n ranks over each transport, and fails the test on errors
// and when it takes too long.
func runRanks(t *testing.T, n int, f func(ctx context.Context, w *World) error, opts ...Option) {
	t.Helper()
	run := func(name string, more ...Option) {
		t.Helper()
		t.Run(fmt.Sprintf("transport=%s/ranks=%d", name, n), func(t *testing.T) {
			t.Helper()
			ctx, cancel := context.WithTimeout(context.Background(), testTime)
			defer cancel()
			if err := RunLocal(ctx, n, f, append(more, opts...)...); err != nil {
				t.Error(err)
			}
		})
	}
	for _, tr := range testTransports {
		run(tr, overTransport(tr))
	}
	for _, m := range rendezvousNames[1:] {
		run(TransportHybrid+"/rendezvous="+m, WithTransport(TransportHybrid), WithRendezvous(m))
	}
}

// pattern fills b with bytes that depend on seed and place.
func pattern(b []byte, seed int) {
	x := uint32(seed)*2654435761 + 12345
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
}

func checkPattern(b []byte, seed int) error {
	x := uint32(seed)*2654435761 + 12345
	for i := range b {
		x = x*1664525 + 1013904223
		if b[i] != byte(x>>24) {
			return fmt.Errorf("byte %d of %d of message %d = %d, want %d", i, len(b), seed, b[i], byte(x>>24))
		}
	}
	return nil
}

var testSizes = []int{0, 1, 7, 64, 127, 128, 129, 1000, 1500, 4096, 65535, 65536, 65537, 100_000, 1 << 20, 8 << 20}

// The receiver posts first, or after the messages have come, by turns.
func TestSendRecvSizes(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		for i, n := range testSizes {
			b := make([]byte, n)
			if c.Rank() == 0 {
				pattern(b, i)
				if err := Send(ctx, c, b, 1, i); err != nil {
					return err
				}
				continue
			}
			if i%2 == 0 {
				if _, err := Probe(ctx, c, 0, i); err != nil {
					return err
				}
			}
			st, err := Recv(ctx, c, b, 0, i)
			if err != nil {
				return err
			}
			if want := (Status{Source: 0, Tag: i, Bytes: n}); st != want {
				return fmt.Errorf("status = %+v, want %+v", st, want)
			}
			if err := checkPattern(b, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// All ranks send to all, nonblocking, and wait in a random order.
func TestAllPairs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, n := range []int{1, 2, 3, 5, 8} {
		runRanks(t, n, func(ctx context.Context, w *World) error {
			c := w.Comm()
			rng := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
			var reqs []*Request
			var bufs [][]byte
			const each = 6
			size := func(src, dst, k int) int { return (src*31 + dst*17 + k*k*k*977) % 150_000 }
			for peer := range n {
				for k := range each {
					b := make([]byte, size(peer, c.Rank(), k))
					r, err := Irecv(c, b, peer, k)
					if err != nil {
						return err
					}
					reqs, bufs = append(reqs, r), append(bufs, b)
				}
			}
			for peer := range n {
				for k := range each {
					b := make([]byte, size(c.Rank(), peer, k))
					pattern(b, c.Rank()*1000+k)
					r, err := Isend(c, b, peer, k)
					if err != nil {
						return err
					}
					reqs = append(reqs, r)
				}
			}
			for _, i := range rng.Perm(len(reqs)) {
				if _, err := reqs[i].Wait(ctx); err != nil {
					return fmt.Errorf("request %d: %w", i, err)
				}
			}
			for i, b := range bufs {
				if err := checkPattern(b, i/each*1000+i%each); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// MPI-4.1, Section 3.2.2: a message longer than the buffer is an overflow error; here
// the job stays usable.
func TestTruncation(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		c := w.Comm()
		for i, n := range []int{1, 100, 5000, 200_000} {
			for _, room := range []int{0, n / 2} {
				b := make([]byte, n+1)
				if c.Rank() == 0 {
					pattern(b, i)
					if err := Send(ctx, c, b, 1, 3); err != nil {
						return err
					}
					if err := Ssend(ctx, c, []int32{int32(i)}, 1, 4); err != nil {
						return err
					}
					continue
				}
				st, err := Recv(ctx, c, b[:room], 0, 3)
				if !errors.Is(err, ErrTruncate) || st.Bytes != room || st.Tag != 3 {
					return fmt.Errorf("short receive = %+v, %v, want %d bytes and ErrTruncate", st, err, room)
				}
				if err := checkPattern(b[:room], i); err != nil {
					return err
				}
				for _, v := range b[room:] {
					if v != 0 {
						return errors.New("bytes written beyond the buffer")
					}
				}
				var x [1]int32
				if _, err := Recv(ctx, c, x[:], 0, 4); err != nil || x[0] != int32(i) {
					return fmt.Errorf("message after truncation = %d, %v, want %d", x[0], err, i)
				}
			}
		}
		return nil
	})
}

// The limits change how messages travel, not what arrives.
func TestExtremeOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts []Option
	}{
		{"eager=0", []Option{WithEager(0)}},
		{"unexpected=0", []Option{WithUnexpected(0)}},
		{"eager=1M", []Option{WithEager(1 << 20)}},
		{"streams=1", []Option{WithStreams(1), WithSpin(0)}},
		{"streams=200", []Option{WithStreams(200), WithSpin(time.Millisecond)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runRanks(t, 3, func(ctx context.Context, w *World) error {
				c := w.Comm()
				right, left := (c.Rank()+1)%3, (c.Rank()+2)%3
				for i, n := range []int{0, 1, 1000, 64 << 10, 300_000, 3 << 20} {
					out, in := make([]byte, n), make([]byte, n)
					pattern(out, 10*i+c.Rank())
					s, err := Isend(c, out, right, i)
					if err != nil {
						return err
					}
					st, err := Recv(ctx, c, in, AnySource, AnyTag)
					if want := (Status{Source: left, Tag: i, Bytes: n}); err != nil || st != want {
						return fmt.Errorf("receive = %+v, %v, want %+v", st, err, want)
					}
					if err := checkPattern(in, 10*i+left); err != nil {
						return err
					}
					if _, err := s.Wait(ctx); err != nil {
						return err
					}
				}
				return nil
			}, tt.opts...)
		})
	}
}

// Sixteen ranks on few processors set up, talk and leave.
func TestManyRanks(t *testing.T) {
	const n = 16
	runRanks(t, n, func(ctx context.Context, w *World) error {
		c := w.Comm()
		reqs := make([]*Request, 0, 2*n)
		in := make([]int32, n)
		for r := range n {
			s, err := Isend(c, []int32{int32(c.Rank())}, r, 0)
			if err != nil {
				return err
			}
			q, err := Irecv(c, in[r:r+1], r, 0)
			if err != nil {
				return err
			}
			reqs = append(reqs, s, q)
		}
		if _, err := Waitall(ctx, reqs...); err != nil {
			return err
		}
		for r, v := range in {
			if int(v) != r {
				return fmt.Errorf("rank %d sent %d", r, v)
			}
		}
		return c.barrier(ctx)
	})
}
