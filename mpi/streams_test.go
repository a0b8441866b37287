package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// runVirtual runs f on n ranks, over SCTP on a simulated network, in virtual
// time.
func runVirtual(t *testing.T, n int, link sctptest.Link, seed uint64, f func(ctx context.Context, w *World) error, opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(seed)
		defer net.Close()
		net.SetDefault(link)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		opts = append([]Option{WithTransport(TransportSCTP), WithSpin(0), WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
			addr := fmt.Sprintf("10.0.%d.%d", rank>>8, rank&255+1)
			pc, err := net.NewHost(addr).ListenPacket(addr + ":9899")
			return []sctp.PacketConn{pc}, err
		})}, opts...)
		if err := RunLocal(ctx, n, f, opts...); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	})
}

// A short message does not wait behind a long one of another tag, nor behind
// the body of a long one of its own tag that has been matched.
func TestShortPassesLong(t *testing.T) {
	const long = 4 << 20 // 1.7 s at 20 Mbit/s
	link := sctptest.Link{Delay: 5 * time.Millisecond, Rate: 20e6}
	runVirtual(t, 2, link, 1, func(ctx context.Context, w *World) error {
		c := w.Comm()
		b := make([]byte, long)
		if c.Rank() == 0 {
			r, err := Isend(c, b, 1, 0)
			if err != nil {
				return err
			}
			if _, err := Recv(ctx, c, []byte{}, 1, 9); err != nil { // some of it has come
				return err
			}
			for _, tag := range []int{1, 0} {
				if err := Send(ctx, c, []byte{1}, 1, tag); err != nil {
					return err
				}
			}
			_, err = r.Wait(ctx)
			return err
		}
		big, err := Irecv(c, b, 0, 0)
		if err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
		start := time.Now()
		if err := Send(ctx, c, []byte{}, 0, 9); err != nil {
			return err
		}
		for _, tag := range []int{1, 0} {
			if _, err := Recv(ctx, c, make([]byte, 1), 0, tag); err != nil {
				return err
			}
			if d := time.Since(start); big.request.Finished.Load() || d > 500*time.Millisecond {
				return fmt.Errorf("message with tag %d came after %v; long one done: %v", tag, d, big.request.Finished.Load())
			}
		}
		_, err = big.Wait(ctx)
		return err
	})
}

// A lost packet holds up only the messages of its stream: with ten streams fewer
// messages are late than with one.
func TestLossHoldsUpOneStream(t *testing.T) {
	const n, tags = 1000, 10
	link := sctptest.Link{Delay: 20 * time.Millisecond, Loss: 0.02}
	late := func(streams int) (count int) {
		runVirtual(t, 2, link, 7, func(ctx context.Context, w *World) error {
			c := w.Comm()
			if c.Rank() == 0 {
				start := make([]byte, 8)
				for i := range n {
					time.Sleep(time.Millisecond)
					binary.BigEndian.PutUint64(start, uint64(time.Now().UnixNano()))
					if err := Send(ctx, c, start, 1, i%tags); err != nil {
						return err
					}
				}
				return nil
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			errs := make([]error, tags)
			for tag := range tags {
				wg.Go(func() {
					b := make([]byte, 8)
					for range n / tags {
						if _, errs[tag] = Recv(ctx, c, b, 0, tag); errs[tag] != nil {
							return
						}
						sent := time.Unix(0, int64(binary.BigEndian.Uint64(b)))
						if time.Since(sent) > 25*time.Millisecond {
							mu.Lock()
							count++
							mu.Unlock()
						}
					}
				})
			}
			wg.Wait()
			return errors.Join(errs...)
		}, WithStreams(streams))
		return count
	}
	one, ten := late(1), late(10)
	t.Logf("late messages: %d with one stream, %d with ten", one, ten)
	if one < 2*ten {
		t.Errorf("%d messages are late with one stream, %d with ten, want at most half of that", one, ten)
	}
}
