package sctp

import (
	"bytes"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

func TestSenderPollInterval(t *testing.T) {
	const start = clock.Time(1e9)
	a := &Association{senderPolled: start}
	for i, s := range []struct {
		after clock.Time
		bytes int
		want  bool
	}{
		{0, pollEvery, true},
		{maxPollAge, pollEvery, true},
		{2 * maxPollAge, pollEvery - 1, false},
		{2 * maxPollAge, 1, true}, // the one byte that was left
		{3 * maxPollAge, 10 * pollEvery, true},
		{4*maxPollAge + 1, pollEvery, false}, // too late
		{4*maxPollAge + 2, pollEvery, false},
	} {
		if got := a.countUnread(s.bytes, false) && a.maySenderPoll(start+s.after); got != s.want {
			t.Fatalf("step %d: %v, want %v", i, got, s.want)
		}
	}
	a = &Association{senderPolled: start}
	for i := 1; i <= pollEvery/minCounted; i++ {
		if got, want := a.countUnread(1, false) && a.maySenderPoll(start), i == pollEvery/minCounted; got != want {
			t.Fatalf("message %d of 1 byte: %v, want %v", i, got, want)
		}
	}
	a = &Association{senderPolled: start}
	for i := 1; i <= borrowedShare; i++ {
		if got, want := a.countUnread(pollEvery, true) && a.maySenderPoll(start), i == borrowedShare; got != want {
			t.Fatalf("borrowed message %d: %v, want %v", i, got, want)
		}
	}
}

// While one sender polls no other does, such as an upcall that sends.
func TestSenderPollsDoNotNest(t *testing.T) {
	tr, err := NewTransport(TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	polls := func() bool {
		before := tr.suppression.polls.Load()
		tr.pollAsSender()
		return tr.suppression.polls.Load() != before
	}
	want := tr.sockets().canPoll
	for i := range 2 {
		if got := polls(); got != want {
			t.Errorf("time %d: polls %v, want %v", i, got, want)
		}
	}
	tr.senderPolls.Store(true)
	if polls() {
		t.Error("polls while another sender does")
	}
}

// A sender that had to wait for room reads acknowledgements itself, before it sends
// any of a large message: what was held back leaves with that, in full batches.
func TestSenderReads(t *testing.T) {
	ctx := t.Context()
	var looked, early atomic.Bool
	var sent atomic.Int32 // datagrams of this message that have left, and not those for which it waited
	tap := func(e TapEvent) {
		var stack [4096]byte
		trace := stack[:runtime.Stack(stack[:], false)]
		switch look := bytes.Contains(trace, []byte("(*Transport).pollAsSender(")); {
		case look && !e.Sent:
			looked.Store(true)
			early.Store(early.Load() || sent.Load() == 0)
		case !look && e.Sent && bytes.Contains(trace, []byte("(*Association).launch(")):
			sent.Add(1)
		}
	}
	var ends [2]*Endpoint
	for i := range ends {
		tr, err := NewTransport(TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Tap: tap})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		if !tr.sockets().canPoll {
			t.Skip("sockets cannot be polled on this system")
		}
		if ends[i], err = tr.Listen(0, nil); err != nil {
			t.Fatal(err)
		}
	}
	a, err := ends[0].Connect(ctx, ends[1].Addr())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		b, err := ends[1].Accept(ctx)
		for buf := make([]byte, pollEvery); err == nil; {
			_, _, err = b.Recv(ctx, buf)
		}
	}()
	msg := make([]byte, pollEvery)
	for n := 0; !looked.Load(); n++ {
		if n == 100_000 {
			t.Fatalf("none of %d messages read acknowledgements", n)
		}
		a.mu.Lock()
		a.senderPolled = a.t.now() // it has just waited, whatever the machine does
		a.mu.Unlock()
		sent.Store(0)
		if err := a.Send(ctx, msg, SendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if !early.Load() {
		t.Errorf("%d datagrams of a message left before its sender read acknowledgements", sent.Load())
	}
}
