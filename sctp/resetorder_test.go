package sctp_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/sctptest"
)

// In upcall mode the notification of a reset comes between the last message of before the
// reset and the first one after it, also where the callbacks are far behind the network.
func TestResetIsToldBetweenTheMessagesAroundIt(t *testing.T) {
	for _, noInterleaving := range []bool{false, true} {
		for _, unordered := range []bool{false, true} {
			t.Run(fmt.Sprintf("NoInterleaving=%v/Unordered=%v", noInterleaving, unordered), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testResetOrder(t, noInterleaving, unordered) })
			})
		}
	}
}

func testResetOrder(t *testing.T, noInterleaving, unordered bool) {
	const old, later, other = 200, 5, 20
	var mu sync.Mutex
	var got []string
	var b *sctp.Association
	add := func(s string) {
		mu.Lock()
		got = append(got, s)
		mu.Unlock()
		time.Sleep(time.Millisecond) // the callbacks are slow
	}
	p := newPair(t, 1, sctptest.Link{Delay: time.Millisecond}, nil, &sctp.Config{NoInterleaving: noInterleaving,
		OnAssociation: func(a *sctp.Association) { b = a },
		OnPiece: func(a *sctp.Association, p *sctp.Piece) {
			if p.Stream == 1 {
				add(string(p.Data))
			}
		},
		OnNotify: func(a *sctp.Association, n sctp.Notification) {
			if n.Kind == sctp.NotifyStreamsReset {
				add("reset")
			}
		}})
	send := func(stream uint16, text string) {
		t.Helper()
		if err := p.a.Send(t.Context(), []byte(text), sctp.SendOptions{Stream: stream, Unordered: unordered}); err != nil {
			t.Fatal(err)
		}
	}
	send(2, "up")
	synctest.Wait()
	b.PauseStream(1, true)
	for range old {
		send(1, "old")
	}
	time.Sleep(time.Second) // all is acknowledged
	reset := make(chan error)
	go func() { reset <- p.a.ResetStreams(t.Context(), 1) }()
	time.Sleep(10 * time.Second) // the peer's answers are "in progress"
	mu.Lock()
	if len(got) != 0 {
		t.Errorf("%v came from a stream that is held back", got)
	}
	mu.Unlock()
	for range later {
		send(1, "new")
	}
	for range other {
		send(2, "other")
	}
	b.PauseStream(1, false)
	began := time.Now()
	if err := <-reset; err != nil {
		t.Fatal(err)
	}
	// The answer follows the last message of before, and waits for no repetition of the request.
	if took := time.Since(began); took > (old+20)*time.Millisecond {
		t.Errorf("the reset took %v", took)
	}
	time.Sleep(10 * time.Second)
	want := slices.Concat(slices.Repeat([]string{"old"}, old), []string{"reset"}, slices.Repeat([]string{"new"}, later))
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v", got)
	}
}
