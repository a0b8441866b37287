package rconn

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/verbs"
)

// benchPair connects two devices over loopback.
func benchPair(b *testing.B) (x, y *Conn) {
	b.Helper()
	var devs [2]*verbs.Device
	for i := range devs {
		tr, err := sctp.NewTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { tr.Close() })
		if devs[i], err = verbs.Open(verbs.Config{Transport: tr}); err != nil {
			b.Fatal(err)
		}
	}
	l, err := Listen(devs[1], Config{})
	if err != nil {
		b.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		var err error
		y, err = l.Accept(context.Background())
		accepted <- err
	}()
	if x, err = Dial(context.Background(), devs[0], l.Addr(), Config{}); err != nil {
		b.Fatal(err)
	}
	if err := <-accepted; err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.Close(); y.Close() })
	return x, y
}

func BenchmarkSend(b *testing.B) {
	for _, size := range []int{64, 4096, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			x, y := benchPair(b)
			msg := make([]byte, size)
			done := make(chan error, 1)
			go func() {
				var buf []byte
				for {
					var err error
					if buf, err = y.Recv(context.Background(), buf[:0]); err != nil || len(buf) == 1 {
						done <- err
						return
					}
				}
			}()
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := x.Send(context.Background(), msg); err != nil {
					b.Fatal(err)
				}
			}
			x.Send(context.Background(), msg[:1])
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkPingPong(b *testing.B) {
	x, y := benchPair(b)
	go func() {
		var buf []byte
		for {
			var err error
			if buf, err = y.Recv(context.Background(), buf[:0]); err == nil {
				err = y.Send(context.Background(), buf)
			}
			if err != nil {
				return
			}
		}
	}()
	msg := make([]byte, 64)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		if err := x.Send(context.Background(), msg); err != nil {
			b.Fatal(err)
		}
		var err error
		if buf, err = x.Recv(context.Background(), buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
