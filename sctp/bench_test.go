package sctp_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
)

// BenchmarkThroughput sends messages one way over loopback.
func BenchmarkThroughput(b *testing.B) {
	for _, mtu := range []int{1500, 9000, 0} {
		for _, size := range []int{64, 1 << 10, 16 << 10, 64 << 10, 1 << 20} {
			for _, mode := range []string{"recv", "upcall"} {
				b.Run(fmt.Sprintf("mtu=%d/size=%d/mode=%s", mtu, size, mode), func(b *testing.B) {
					benchThroughput(b, mtu, size, mode == "upcall")
				})
			}
		}
	}
}

func benchThroughput(b *testing.B, mtu, size int, upcall bool) {
	ctx := context.Background()
	cfg := sctp.Config{MTU: mtu}
	server := cfg
	done := make(chan struct{})
	want, got := 0, 0
	target := make(chan int, 1)
	check := func() {
		if want == 0 {
			select {
			case want = <-target:
			default:
			}
		}
		if want > 0 && got >= want {
			close(done)
			want = -1
		}
	}
	if upcall {
		server.OnPiece = func(_ *sctp.Association, p *sctp.Piece) {
			if p.End {
				got++
				check()
			}
		}
	}
	p := newLoopbackPair(b, sctp.TransportConfig{}, &cfg, &server)
	if !upcall {
		go func() {
			buf := make([]byte, size)
			for {
				_, info, err := p.b.Recv(ctx, buf)
				if err != nil {
					return
				}
				if info.EOR {
					got++
					check()
				}
			}
		}()
	}
	msg := pattern(size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := p.a.Send(ctx, msg, sctp.SendOptions{}); err != nil {
			b.Fatal(err)
		}
		n++
	}
	target <- n + 1
	if err := p.a.Send(ctx, msg, sctp.SendOptions{}); err != nil {
		b.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		b.Errorf("%d of %d messages arrived; %+v", got, n+1, p.a.Stats())
	}
	st := p.a.Stats()
	b.ReportMetric(float64(st.Retransmits), "rtx")
	ta, tb := p.ta.Stats(), p.tb.Stats()
	b.ReportMetric(float64(st.ChunksSent)/float64(ta.Writes), "chunks/write")
	b.ReportMetric(float64(st.ChunksSent)/float64(tb.DatagramsSent), "chunks/ack")
	b.ReportMetric(float64(tb.DatagramsReceived)/float64(tb.Reads), "datagrams/read")
}

// BenchmarkPingPong measures round trips of one message each way.
func BenchmarkPingPong(b *testing.B) {
	for _, spin := range []time.Duration{-1, 100 * time.Microsecond} {
		for _, size := range []int{64, 1 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("busypoll=%v/size=%d", spin, size), func(b *testing.B) {
				benchPingPong(b, spin, size)
			})
		}
	}
}

func benchPingPong(b *testing.B, spin time.Duration, size int) {
	ctx := context.Background()
	cfg := &sctp.Config{MTU: 1500}
	p := newLoopbackPair(b, sctp.TransportConfig{BusyPoll: spin}, cfg, cfg)
	go func() {
		buf := make([]byte, size)
		for {
			n, _, err := p.b.Recv(ctx, buf)
			if err != nil {
				return
			}
			if err := p.b.Send(ctx, buf[:n], sctp.SendOptions{}); err != nil {
				return
			}
		}
	}()
	msg := pattern(size)
	buf := make([]byte, size)
	b.SetBytes(int64(2 * size))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.a.Send(ctx, msg, sctp.SendOptions{}); err != nil {
			b.Fatal(err)
		}
		for n := 0; n < size; {
			k, _, err := p.a.Recv(ctx, buf[n:])
			if err != nil {
				b.Fatal(err)
			}
			n += k
		}
	}
}
