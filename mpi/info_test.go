package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/weftstack/weft/mpi/internal/p2p"
)

func TestInfo(t *testing.T) {
	if got := (Info{"b": "1", "a": "2"}).Keys(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("keys %v", got)
	}
	env := EnvInfo()
	if env["command"] != os.Args[0] || env["thread_level"] != "MPI_THREAD_MULTIPLE" || env["wdir"] == "" {
		t.Errorf("environment %v", env)
	}
}

// TestAssertions checks that what breaks a promise fails.
func TestAssertions(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		dup := func(keys ...string) *Comm {
			info := Info{}
			for _, k := range keys {
				info[k] = "true"
			}
			c, err := w.Comm().DupWithInfo(ctx, info)
			if err != nil {
				panic(err)
			}
			return c
		}
		x := make([]int, 4)
		noTag, noSource, exact := dup(InfoNoAnyTag), dup(InfoNoAnySource), dup(InfoExactLength)
		for _, tt := range []struct {
			name string
			err  error
			want error
		}{
			{"receive", second(Recv(ctx, noTag, x, 0, AnyTag)), ErrTag},
			{"nonblocking", second(Irecv(noTag, x, AnySource, AnyTag)), ErrTag},
			{"probe", second(Probe(ctx, noTag, 0, AnyTag)), ErrTag},
			{"persistent", second(RecvInit(noTag, x, 0, AnyTag)), ErrTag},
			{"exchange", second(Sendrecv(ctx, noTag, x, 0, 0, x, 0, AnyTag)), ErrTag},
			{"replace", second(SendrecvReplace(ctx, noTag, x, 0, 0, 0, AnyTag)), ErrTag},
			{"source", second(Recv(ctx, noSource, x, AnySource, 0)), ErrRank},
			{"source and tag", second(Mprobe(ctx, noSource, AnySource, AnyTag)), ErrRank},
		} {
			if !errors.Is(tt.err, tt.want) {
				return fmt.Errorf("%s: %w, want %w", tt.name, tt.err, tt.want)
			}
		}
		other := 1 - w.Rank()
		for _, c := range []*Comm{noTag, noSource, exact} {
			src := AnySource
			if c == noSource {
				src = other
			}
			if _, err := Sendrecv(ctx, c, x, other, 3, make([]int, 4), src, 3); err != nil {
				return err
			}
			if err := Allreduce(ctx, c, x, x, Sum[int]); err != nil {
				return err
			}
		}
		// Short ones, long ones, and those that wait for their receives.
		for _, n := range []int{1, 100_000} {
			if st, err := Sendrecv(ctx, exact, make([]int, n), other, 0, make([]int, n+1), other, 0); !errors.Is(err, ErrCount) {
				return fmt.Errorf("short message: %+v, %w", st, err)
			}
		}
		exact.SetInfo(Info{InfoExactLength: "false"})
		if err := Barrier(ctx, exact); err != nil {
			return err
		}
		_, err := Sendrecv(ctx, exact, x, other, 0, make([]int, 5), other, 0)
		return err
	})
}

// TestHints checks that eager limit and streams are those of the communicator.
func TestHints(t *testing.T) {
	runRanks(t, 2, func(ctx context.Context, w *World) error {
		for _, tt := range []struct {
			info    Info
			eager   int
			streams uint32
		}{
			{nil, 2000, 7},
			{Info{InfoEager: "0", InfoStreams: "1"}, 0, 1},
			{Info{InfoEager: "100K", InfoStreams: "7"}, 100 << 10, 7},
			{Info{InfoEager: "-1", InfoStreams: "8"}, 2000, 7},
			{Info{InfoEager: "many", InfoStreams: "0"}, 2000, 7},
		} {
			c, err := w.Comm().DupWithInfo(ctx, tt.info)
			if err != nil {
				return err
			}
			h := c.comm.Hints.Load()
			if h.Eager != tt.eager || h.Streams != tt.streams {
				return fmt.Errorf("%v: eager limit %d, %d streams", tt.info, h.Eager, h.Streams)
			}
			used := map[uint16]bool{}
			for tag := range int32(50) {
				used[h.StreamOf(c.comm.Contexts[p2p.SlotUser], tag)] = true
			}
			if len(used) != int(tt.streams) {
				return fmt.Errorf("%v: %d streams used", tt.info, len(used))
			}
			// An eager message is sent without a receive, one that is not is not.
			if w.Rank() == 0 {
				r, err := Isend(c, make([]byte, 1000), 1, 0)
				if err != nil {
					return err
				}
				if err := Ssend(ctx, c, []byte{}, 1, 1); err != nil {
					return err
				}
				if tt.eager == 0 && r.request.Finished.Load() {
					return errors.New("a message longer than the eager limit was sent at once")
				}
				if err := Send(ctx, c, []byte{}, 1, 2); err != nil {
					return err
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
				continue
			}
			for _, tag := range []int{1, 2, 0} {
				if _, err := Recv(ctx, c, make([]byte, 1000), 0, tag); err != nil {
					return err
				}
			}
		}
		return nil
	}, WithEager(2000), WithStreams(7))
}

// Whatever the memory for unexpected messages, all arrive in order.
func TestUnexpectedTiny(t *testing.T) {
	for _, bound := range []int{0, 1, 2 * p2p.MessageCost, 2*p2p.MessageCost + 2, 2*p2p.MessageCost + 200, 5000} {
		t.Run(fmt.Sprintf("bytes=%d", bound), func(t *testing.T) {
			runRanks(t, 2, func(ctx context.Context, w *World) error {
				const n = 300
				c := w.Comm()
				other := 1 - w.Rank()
				sends := make([]*Request, n)
				for i := range sends {
					b := make([]byte, i%120)
					pattern(b, i)
					var err error
					if sends[i], err = Isend(c, b, other, i%3); err != nil {
						return err
					}
				}
				if err := Barrier(ctx, c); err != nil {
					return err
				}
				p := w.eng.Peers[other]
				if used := p.Used.Load(); used > int64(bound)/2 {
					return fmt.Errorf("%d bytes of memory used of %d", used, bound/2)
				}
				for i := range n {
					b := make([]byte, 120)
					st, err := Recv(ctx, c, b, other, AnyTag)
					if err != nil || st.Tag != i%3 || st.Bytes != i%120 {
						return fmt.Errorf("receive %d = %+v, %w", i, st, err)
					}
					if err := checkPattern(b[:st.Bytes], i); err != nil {
						return err
					}
				}
				_, err := Waitall(ctx, sends...)
				return err
			}, WithUnexpected(bound))
		})
	}
}
