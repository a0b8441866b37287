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
// for it or send to it, must take it for dead within the time that WithSilence
// says, and not before half of it.
func TestSilence(t *testing.T) {
	for _, silence := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second} {
		for _, idle := range []bool{false, true} {
			t.Run(fmt.Sprintf("silence=%v/idle=%t", silence, idle), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := sctptest.NewNetwork(7)
					defer net.Close()
					net.SetDefault(sctptest.Link{Delay: time.Millisecond})
					addr := func(rank int) string { return fmt.Sprintf("10.0.0.%d", rank+1) }
					const n, victim = 4, 3
					checkFT(t, n, func(_ context.Context, w *World) error {
						ctx := t.Context()
						c := w.Comm()
						if c.Rank() == victim {
							time.Sleep(time.Hour)
							return errDies
						}
						time.Sleep(5 * time.Second) // idle
						net.Cut(addr(c.Rank()), addr(victim))
						start := time.Now()
						if !idle {
							if err := Send(ctx, c, []int{1}, victim, 0); err != nil {
								return err
							}
						}
						_, err := Recv(ctx, c, []int{0}, victim, 0)
						took := time.Since(start)
						t.Logf("rank %d takes the silent one for dead after %v", c.Rank(), took.Round(time.Millisecond))
						if !errors.Is(err, ErrProcFailed) || took < silence/2 || took > 3*silence+2*time.Second {
							return fmt.Errorf("after %v: %w", took, err)
						}
						return nil
					}, WithTransport(TransportSCTP), WithSpin(0), WithSilence(silence), WithPacketConns(func(rank int) ([]sctp.PacketConn, error) {
						pc, err := net.NewHost(addr(rank)).ListenPacket(addr(rank) + ":9899")
						return []sctp.PacketConn{pc}, err
					}))
				})
			})
		}
	}
	if _, err := buildOptions(TransportInproc, false, []Option{WithSilence(MinSilence - 1)}); !errors.Is(err, ErrOption) {
		t.Errorf("silence below the minimum: %v", err)
	}
}
