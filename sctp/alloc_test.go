package sctp_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
)

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx := context.Background()
	for _, tt := range []struct{ size, mtu int }{{64, 1500}, {1000, 1500}, {65536, 1500}, {3000, 9000}, {4000, 9000}} {
		size := tt.size
		for _, spin := range []time.Duration{-1, 50 * time.Microsecond} {
			for _, upcall := range []bool{false, true} {
				t.Run(fmt.Sprintf("size=%d/busypoll=%v/upcall=%v", size, spin, upcall), func(t *testing.T) {
					cfg := &sctp.Config{MTU: tt.mtu}
					server := *cfg
					if upcall {
						server.OnPiece = func(a *sctp.Association, p *sctp.Piece) {
							if p.End {
								if err := a.TrySend(p.Data[:1], sctp.SendOptions{}); err != nil {
									t.Error(err)
								}
							}
						}
					}
					p := newLoopbackPair(t, sctp.TransportConfig{BusyPoll: spin}, cfg, &server)
					if !upcall {
						go func() {
							buf := make([]byte, size)
							for {
								_, info, err := p.b.Recv(ctx, buf)
								if err != nil {
									return
								}
								if info.EOR && p.b.Send(ctx, buf[:1], sctp.SendOptions{}) != nil {
									return
								}
							}
						}()
					}
					msg, buf := pattern(size), make([]byte, 1)
					round := func() {
						if err := p.a.Send(ctx, msg, sctp.SendOptions{}); err != nil {
							t.Fatal(err)
						}
						if _, _, err := p.a.Recv(ctx, buf); err != nil {
							t.Fatal(err)
						}
					}
					for range 500 {
						round()
					}
					if n := testing.AllocsPerRun(500, round); n >= 1 {
						t.Errorf("%v allocations per round trip, want 0", n)
					}
				})
			}
		}
	}
}

// Neither does a message for which there is no room.
func TestRefusedSendsDoNotAllocate(t *testing.T) {
	if sctp.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	p := newLoopbackPair(t, sctp.TransportConfig{}, &sctp.Config{SendBuffer: 10_000, MTU: 1 << 16}, nil)
	msg := pattern(1000)
	if err := p.a.TrySend(make([]byte, 10_000), sctp.SendOptions{Force: true, More: true}); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if err := p.a.TrySend(msg, sctp.SendOptions{More: true}); err != sctp.ErrWouldBlock {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A reader takes over when polling stops, however it stopped.
func TestReadersWakeAfterPolling(t *testing.T) {
	var got atomic.Int32
	server := &sctp.Config{OnPiece: func(*sctp.Association, *sctp.Piece) { got.Add(1) }}
	p := newLoopbackPair(t, sctp.TransportConfig{}, nil, server)
	for i := range int32(50) {
		for range int(i) {
			p.tb.Poll()
		}
		if err := p.a.Send(context.Background(), []byte("x"), sctp.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(5 * time.Minute)
		for got.Load() <= i {
			if time.Now().After(deadline) {
				t.Fatalf("message %d was not received", i)
			}
			<-time.After(10 * time.Microsecond)
		}
	}
}
