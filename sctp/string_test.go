package sctp_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
)

// What a program prints to find its faults is one short line, also while the
// association is in use, and from a hook that is called with its lock held.
func TestHandlesPrintShort(t *testing.T) {
	var tapped atomic.Pointer[sctp.Association]
	var seen atomic.Int64
	tc := sctp.TransportConfig{Tap: func(sctp.TapEvent) {
		if a := tapped.Load(); a != nil && len(fmt.Sprint(a)) < 200 {
			seen.Add(1)
		}
	}}
	p := newLoopbackPair(t, tc, nil, nil)
	tapped.Store(p.b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			if err := p.a.Send(context.Background(), make([]byte, 5000), sctp.SendOptions{}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	w, err := p.a.OpenMessage(t.Context(), sctp.SendOptions{Stream: 3})
	if err != nil {
		t.Fatal(err)
	}
	handles := []any{p.ta, p.ea, p.a, sctp.NewConn(p.a), sctp.NewListener(p.ea), w, p.ta.NewWaiter(), p.ta.BeginWait(),
		&sctp.Piece{Data: make([]byte, 1000)}, sctp.Lease{}}
	testenv.CheckHandles(t, handles)
	buf := make([]byte, 10000)
	for range 1000 {
		if _, _, err := p.b.Recv(t.Context(), buf); err != nil {
			t.Fatal(err)
		}
		if s := fmt.Sprint(p.b); !strings.Contains(s, p.ea.Addr().String()) {
			t.Fatalf("%q does not name the peer %v", s, p.ea.Addr())
		}
	}
	<-done
	p.b.Abort("over")
	<-p.a.Done()
	if s := p.a.String(); !strings.Contains(s, "ended") {
		t.Errorf("an association that ended prints as %q", s)
	}
	if seen.Load() == 0 {
		t.Error("the tap printed nothing")
	}
}
