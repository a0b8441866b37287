package sctp_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// Of two goroutines that wait for an association one gives up: the other one still gets
// it. When both have given up nothing is left.
func TestOneOfTwoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := sctptest.NewNetwork(1)
		defer n.Close()
		n.SetDefault(sctptest.Link{Delay: time.Millisecond})
		open := func(addr string) *sctp.Transport {
			pc, err := n.NewHost(addr).ListenPacket(addr + ":9899")
			if err != nil {
				t.Fatal(err)
			}
			tr, err := sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { tr.Close() })
			return tr
		}
		client, err := open("10.0.0.1").Listen(5000, nil)
		if err != nil {
			t.Fatal(err)
		}
		peer, err := sctp.ParseAddr("10.0.0.2:9899/5000")
		if err != nil {
			t.Fatal(err)
		}
		send := func(wait time.Duration) chan error {
			done := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			go func() {
				defer cancel()
				done <- client.SendTo(ctx, peer, []byte("hello"), sctp.SendOptions{})
			}()
			synctest.Wait()
			return done
		}
		short, shorter := send(500*time.Millisecond), send(200*time.Millisecond)
		for _, done := range []chan error{short, shorter} {
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("send to nobody: %v", err)
			}
		}
		if left := client.Associations(); len(left) != 0 {
			t.Errorf("%d associations are left", len(left))
		}
		short, long := send(500*time.Millisecond), send(time.Minute)
		if err := <-short; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("send to nobody: %v", err)
		}
		server, err := open("10.0.0.2").Listen(5000, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-long; err != nil {
			t.Errorf("the other one's send: %v", err)
		}
		var buf [10]byte
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if m, _, err := server.Recv(ctx, buf[:]); err != nil || string(buf[:m]) != "hello" {
			t.Errorf("received %q, %v", buf[:m], err)
		}
	})
}
