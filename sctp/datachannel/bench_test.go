package datachannel_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel"
)

// loopback connects two sessions over UDP sockets.
func loopback(tb testing.TB) (a, b *datachannel.Session) {
	tb.Helper()
	sessions := make(chan *datachannel.Session, 1)
	listen := func(role datachannel.Role, sessions chan<- *datachannel.Session) *sctp.Endpoint {
		tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { tr.Close() })
		e := end{dc: datachannel.Config{Role: role}}
		return e.endpoint(tb, tr, sessions)
	}
	server := listen(datachannel.Server, sessions)
	client := listen(datachannel.Client, make(chan *datachannel.Session, 1))
	assoc, err := client.Connect(tb.Context(), server.Addr())
	if err != nil {
		tb.Fatal(err)
	}
	return datachannel.From(assoc), <-sessions
}

// echoChannel opens a channel whose other end sends back what it gets.
func echoChannel(tb testing.TB) *datachannel.Channel {
	tb.Helper()
	a, b := loopback(tb)
	c, err := a.Open(tb.Context(), "echo", datachannel.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	d, err := b.Accept(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	ctx := tb.Context()
	go func() {
		buf := make([]byte, 64<<10)
		for {
			m, err := d.Recv(ctx, buf)
			if err != nil || d.Send(ctx, m.Data) != nil {
				return
			}
		}
	}()
	return c
}

func roundTrip(tb testing.TB, c *datachannel.Channel, msg, buf []byte) {
	if err := c.Send(tb.Context(), msg); err != nil {
		tb.Fatal(err)
	}
	if m, err := c.Recv(tb.Context(), buf); err != nil || len(m.Data) != len(msg) {
		tb.Fatal(len(m.Data), err)
	}
}

// In steady state messages of all lengths come and go without allocations.
func TestMessagesAllocateNothing(t *testing.T) {
	c := echoChannel(t)
	buf := make([]byte, 64<<10)
	for _, n := range []int{0, 64, 1000, 16 << 10, 64 << 10} {
		msg := make([]byte, n)
		for range 200 {
			roundTrip(t, c, msg, buf)
		}
		// The pools are emptied by the garbage collector, and a packet may be lost: not all
		// round trips are in steady state.
		if got := testing.AllocsPerRun(300, func() { roundTrip(t, c, msg, buf) }); got > 0.5 && !testenv.Race {
			t.Errorf("%d bytes: %v allocations for a round trip", n, got)
		}
	}
}

func BenchmarkEcho(b *testing.B) {
	for _, n := range []int{64, 16 << 10} {
		b.Run(fmt.Sprintf("size=%d", n), func(b *testing.B) {
			c := echoChannel(b)
			msg, buf := make([]byte, n), make([]byte, n)
			b.ReportAllocs()
			for b.Loop() {
				roundTrip(b, c, msg, buf)
			}
		})
	}
}

func BenchmarkBulk(b *testing.B) {
	for _, n := range []int{1 << 10, 16 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("size=%d", n), func(b *testing.B) {
			from, to := loopback(b)
			c, err := from.Open(b.Context(), "bulk", datachannel.Options{})
			if err != nil {
				b.Fatal(err)
			}
			d, err := to.Accept(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			ctx := b.Context()
			go func() {
				msg := make([]byte, n)
				for c.Send(ctx, msg) == nil {
				}
			}()
			buf := make([]byte, n)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Recv(ctx, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
