package rconn

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
	"github.com/weftstack/weft/verbs"
)

// linked makes a connection between two devices on an emulated network, in a
// synctest bubble.
func linked(t *testing.T, net *sctptest.Network) (a, b *Conn, closeAll func()) {
	t.Helper()
	var devs [2]*verbs.Device
	var trs [2]*sctp.Transport
	for i, addr := range []string{"10.0.0.1", "10.0.0.2"} {
		pc, err := net.NewHost(addr).ListenPacket(addr + ":9899")
		if err != nil {
			t.Fatal(err)
		}
		if trs[i], err = sctp.NewTransport(sctp.TransportConfig{Conns: []sctp.PacketConn{pc}}); err != nil {
			t.Fatal(err)
		}
		if devs[i], err = verbs.Open(verbs.Config{Transport: trs[i]}); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Listen(devs[1], Config{Size: 1000})
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, a: devs[0], b: devs[1], l: l}
	if a, b, err = p.connect(); err != nil {
		t.Fatal(err)
	}
	return a, b, func() {
		for i := range devs {
			// What a Close has left behind is freed in its own time.
			for end := time.Now().Add(time.Hour); devs[i].Close() != nil; time.Sleep(time.Second) {
				if time.Now().After(end) {
					t.Fatal("the device stays busy")
				}
			}
			trs[i].Close()
		}
		net.Close()
	}
}

func TestMessagesOverALossyLink(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(seed)
		net.SetDefault(sctptest.Link{Delay: 2 * time.Millisecond, Loss: 0.03, Duplicate: 0.02, Reorder: 0.2, ReorderDelay: 5 * time.Millisecond})
		a, b, closeAll := linked(t, net)
		defer closeAll()
		go func() {
			for i := range 200 {
				if err := a.Send(t.Context(), bytes.Repeat([]byte{byte(i)}, i*37)); err != nil {
					t.Error(err)
					return
				}
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}()
		for i := range 200 {
			m, err := b.Recv(t.Context(), nil)
			if err != nil || !bytes.Equal(m, bytes.Repeat([]byte{byte(i)}, i*37)) {
				t.Fatalf("message %d: %d bytes, %v", i, len(m), err)
			}
		}
		b.Close()
		if net.Total().Lost == 0 {
			t.Error("nothing was lost")
		}
	})
}

func TestPeerVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := sctptest.NewNetwork(1)
		net.SetDefault(sctptest.Link{Delay: time.Millisecond})
		a, b, closeAll := linked(t, net)
		defer closeAll()
		net.SetDefault(sctptest.Link{Delay: time.Millisecond, Loss: 1})
		if err := a.Send(t.Context(), make([]byte, 5000)); err != nil {
			t.Error(err)
		}
		start := time.Now()
		if err := a.Close(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v", err)
		}
		if d := time.Since(start); d != Linger {
			t.Errorf("Close took %v, want %v", d, Linger)
		}
		// The other side waits until SCTP gives the peer up.
		if _, err := b.Recv(t.Context(), nil); err == nil {
			t.Error("received something")
		}
		b.Close()
	})
}
