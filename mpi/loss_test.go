package mpi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Three ranks exchange messages of all sizes over networks that lose,
// duplicate, reorder and corrupt packets, in virtual time.
func TestLossyNetwork(t *testing.T) {
	for _, tt := range []struct {
		name string
		link sctptest.Link
	}{
		{"clean", sctptest.Link{Delay: time.Millisecond}},
		{"loss=5%", sctptest.Link{Delay: time.Millisecond, Loss: 0.05}},
		{"mixed", sctptest.Link{Delay: 2 * time.Millisecond, Loss: 0.01, Duplicate: 0.02, Reorder: 0.05, Corrupt: 0.01}},
	} {
		for _, method := range rendezvousNames {
			t.Run(tt.name+"/rendezvous="+method, func(t *testing.T) {
				tr := TransportHybrid
				if method == RendezvousMessage {
					tr = TransportSCTP
				}
				seed := rand.Uint64()
				synctest.Test(t, func(t *testing.T) {
					net := sctptest.NewNetwork(seed)
					defer net.Close()
					net.SetDefault(tt.link)
					const n = 3
					ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
					defer cancel()
					err := RunLocal(ctx, n, func(ctx context.Context, w *World) error {
						return lossyRank(ctx, w, seed)
					}, WithTransport(tr), WithRendezvous(method), WithSpin(0), WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
						pc, err := net.NewHost(fmt.Sprintf("10.0.0.%d", rank+1)).ListenPacket(fmt.Sprintf("10.0.0.%d:9899", rank+1))
						return []sctp.PacketConn{pc}, err
					}))
					if err != nil {
						t.Errorf("seed %d: %v", seed, err)
					}
				})
			})
		}
	}
}

// lossyRank sends numbered messages with changing tags to all ranks, and
// receives with wildcards: the numbers must come in order. The buffers of sends that
// are done are overwritten: nothing may be sent again from there.
func lossyRank(ctx context.Context, w *World, seed uint64) error {
	c := w.Comm()
	n := c.Size()
	const each = 60
	rng := rand.New(rand.NewPCG(seed, uint64(c.Rank())))
	var sends []*Request
	var bufs [][]byte
	for k := range each {
		for to := range n {
			size := []int{8, 500, 3000, 50_000, 100_000}[rng.IntN(5)]
			b := make([]byte, 8+size)
			b[0] = byte(k)
			pattern(b[8:], 1000*c.Rank()+k)
			r, err := Isend(c, b, to, rng.IntN(20))
			if err != nil {
				return err
			}
			sends, bufs = append(sends, r), append(bufs, b)
		}
	}
	next := make([]int, n)
	b := make([]byte, 200_000)
	for range n * each {
		st, err := Recv(ctx, c, b, AnySource, AnyTag)
		if err != nil {
			return err
		}
		if int(b[0]) != next[st.Source] {
			return fmt.Errorf("message %d of rank %d came, want %d", b[0], st.Source, next[st.Source])
		}
		if err := checkPattern(b[8:st.Bytes], 1000*st.Source+int(b[0])); err != nil {
			return err
		}
		next[st.Source]++
		for i, r := range sends {
			if r.request.Finished.Load() {
				clear(bufs[i])
			}
		}
	}
	_, err := Waitall(ctx, sends...)
	return err
}

// A rank whose network goes silent is given up within a minute, whether
// something was sent to it or not.
func TestSilentRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(1)
		defer net.Close()
		net.SetDefault(sctptest.Link{Delay: time.Millisecond})
		addr := func(rank int) string { return fmt.Sprintf("10.0.0.%d", rank+1) }
		var all sync.WaitGroup
		all.Add(3)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		err := RunLocal(ctx, 3, func(ctx context.Context, w *World) error {
			c := w.Comm()
			err := func() error {
				var x [1]int
				if err := c.barrier(ctx); err != nil {
					return err
				}
				if c.Rank() == 1 {
					time.Sleep(time.Second)
					net.Cut(addr(1), addr(0))
					net.Cut(addr(1), addr(2))
					return nil
				}
				time.Sleep(2 * time.Second)
				if c.Rank() == 0 {
					if _, err := Isend(c, x[:], 1, 0); err != nil {
						return err
					}
				}
				start := time.Now()
				_, err := Recv(ctx, c, x[:], 1, 0)
				var re *RankError
				if !errors.As(err, &re) || re.Rank != 1 {
					return fmt.Errorf("receive = %w", err)
				}
				if d := time.Since(start); d > time.Minute {
					return fmt.Errorf("noticed after %v", d)
				}
				other := 2 - c.Rank()
				_, err = Sendrecv(ctx, c, []int{1}, other, 1, x[:], other, 1)
				return err
			}()
			all.Done()
			all.Wait()
			if err != nil {
				return err
			}
			return errTestOver
		}, WithTransport(TransportSCTP), WithSpin(0), WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
			pc, err := net.NewHost(addr(rank)).ListenPacket(addr(rank) + ":9899")
			return []sctp.PacketConn{pc}, err
		}))
		if err == nil || strings.Count(err.Error(), errTestOver.Error()) < 3 {
			t.Error(err)
		}
	})
}
