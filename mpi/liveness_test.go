package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// TestSilence cuts one of four ranks off, in virtual time: the others, which wait
// for it or send to it, must take it for dead after the time that WithSilence
// says, and not much later.
func TestSilence(t *testing.T) {
	for _, timeout := range []time.Duration{MinSilence, time.Second, DefaultSilence, 10 * time.Second} {
		for _, idle := range []bool{false, true} {
			for _, paths := range []int{1, 2} {
				t.Run(fmt.Sprintf("timeout=%v/idle=%t/paths=%d", timeout, idle, paths), func(t *testing.T) {
					cutOff(t, timeout, 0, idle, paths)
				})
			}
		}
	}
	if _, err := buildOptions(TransportInproc, []Option{WithSilence(MinSilence - 1)}); !errors.Is(err, ErrOption) {
		t.Errorf("timeout below the minimum: %v", err)
	}
}

// TestStarved is TestSilence for a rank that is back in time: nobody may take it
// for dead, again and again.
func TestStarved(t *testing.T) {
	for _, idle := range []bool{false, true} {
		for _, paths := range []int{1, 2} {
			t.Run(fmt.Sprintf("idle=%t/paths=%d", idle, paths), func(t *testing.T) {
				cutOff(t, DefaultSilence, 2*time.Second, idle, paths)
			})
			t.Run(fmt.Sprintf("local/idle=%t/paths=%d", idle, paths), func(t *testing.T) {
				cutOff(t, 0, LocalSilence*2/3, idle, paths)
			})
		}
	}
}

// cutOff cuts off the last of four ranks, for good or for some time. With no timeout it is
// the default of RunLocal.
func cutOff(t *testing.T, timeout, away time.Duration, idle bool, paths int) {
	t.Helper()
	option := func(*options) error { return nil }
	if timeout != 0 {
		option = WithSilence(timeout)
	}
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(7)
		defer net.Close()
		net.SetDefault(sctptest.Link{Delay: time.Millisecond})
		addr := func(rank, path int) string { return fmt.Sprintf("10.0.%d.%d", path, rank+1) }
		const n, victim, rounds = 4, 3, 10
		each := func(rank int, do func(a, b string)) {
			for p := range paths {
				for q := range paths {
					do(addr(rank, p), addr(victim, q))
				}
			}
		}
		checkFT(t, n, func(_ context.Context, w *World) error {
			ctx := t.Context()
			c := w.Comm()
			if c.Rank() == victim {
				if away == 0 {
					time.Sleep(time.Hour)
					return errDies
				}
				for range rounds {
					for range n - 1 {
						st, err := Recv(ctx, c, []int{0}, AnySource, 0)
						if err != nil {
							return err
						}
						if err := Send(ctx, c, []int{1}, st.Source, 0); err != nil {
							return err
						}
					}
				}
				return nil
			}
			if away == 0 {
				time.Sleep(5 * time.Second) // idle
				each(c.Rank(), net.Cut)
				start := time.Now()
				if !idle {
					if err := Send(ctx, c, []int{1}, victim, 0); err != nil {
						return err
					}
				}
				_, err := Recv(ctx, c, []int{0}, victim, 0)
				took := time.Since(start)
				t.Logf("rank %d takes the one cut off for dead after %v", c.Rank(), took.Round(time.Millisecond))
				// A probe may have been on its way.
				least, most := timeout-10*time.Millisecond, timeout+timeout/2+time.Second
				if paths > 1 {
					least = timeout * 9 / 10
				}
				if !errors.Is(err, ErrProcFailed) || took < least || took > most {
					return fmt.Errorf("after %v: %w", took, err)
				}
				return nil
			}
			for range rounds {
				each(c.Rank(), net.Cut)
				if !idle {
					if err := Send(ctx, c, []int{1}, victim, 0); err != nil {
						return err
					}
				}
				time.Sleep(away)
				each(c.Rank(), net.Restore)
				if idle {
					if err := Send(ctx, c, []int{1}, victim, 0); err != nil {
						return err
					}
				}
				if _, err := Recv(ctx, c, []int{0}, victim, 0); err != nil {
					return fmt.Errorf("a rank that was away for %v: %w", away, err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}, WithTransport(TransportSCTP), WithSpin(0), option, WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
			var names []string
			for p := range paths {
				names = append(names, addr(rank, p))
			}
			h := net.NewHost(names...)
			var out []sctp.PacketConn
			for _, a := range names {
				pc, err := h.ListenPacket(a + ":9899")
				if err != nil {
					return nil, err
				}
				out = append(out, pc)
			}
			return out, nil
		}))
	})
}
