package datachannel_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/datachannel"
	"github.com/weftstack/weft/sctp/sctptest"
)

var delay = sctptest.Link{Delay: 10 * time.Millisecond}

func TestEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, delay, end{}, end{})
		a, err := p.a.Open(t.Context(), "chat", datachannel.Options{Protocol: "v1", Priority: datachannel.PriorityHigh})
		if err != nil {
			t.Fatal(err)
		}
		if a.State() != datachannel.Connecting || a.ID() != 0 {
			t.Errorf("opened: %v", a)
		}
		send(t, a, "before the acknowledgement")
		b, err := p.b.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if o := b.Options(); b.Label() != "chat" || o.Protocol != "v1" || o.Priority != datachannel.PriorityHigh ||
			b.ID() != 0 || b.State() != datachannel.Open {
			t.Errorf("accepted: %v, %+v", b, o)
		}
		wantText(t, b, "before the acknowledgement")
		if err := a.WaitOpen(t.Context()); err != nil || a.State() != datachannel.Open {
			t.Errorf("%v: %v", a, err)
		}
		send(t, b, "back")
		wantText(t, a, "back")
		second, err := p.b.Open(t.Context(), "of the server", datachannel.Options{})
		if err != nil || second.ID() != 1 {
			t.Errorf("%v, %v; want an odd number", second, err)
		}
	})
}

// Messages of all lengths and both kinds, also empty ones (RFC 8831, Section 6.6), in the three
// kinds of reliability, in order and not, with and without interleaving, also with losses.
func TestMessages(t *testing.T) {
	for _, o := range []datachannel.Options{
		{}, {Unordered: true}, {Negotiated: true, ID: 77},
		{PR: sctp.LimitedRetransmissions, MaxRetransmits: 1000},
		{PR: sctp.Timed, Lifetime: time.Hour, Unordered: true},
	} {
		for _, noInterleaving := range []bool{false, true} {
			for _, loss := range []float64{0, 0.02} {
				bubble(t, fmt.Sprintf("Unordered=%v/PR=%d/Negotiated=%v/NoInterleaving=%v/loss=%v", o.Unordered, o.PR, o.Negotiated, noInterleaving, loss), func(t *testing.T) {
					link := delay
					link.Loss = loss
					e := end{datachannel.Config{PeerMaxMessageSize: 256 << 10}, sctp.Config{NoInterleaving: noInterleaving}}
					p := newPair(t, link, e, e)
					a, b := p.open(t, o)
					testMessages(t, a, b, 256<<10)
					testMessages(t, b, a, 256<<10)
				})
			}
		}
	}
}

func testMessages(t *testing.T, from, to *datachannel.Channel, longest int) {
	sizes := []int{0, 1, 2, 255, 256, 1000, 1200, 5000, 16 << 10, 65535, 65536, 256 << 10}
	buf := make([]byte, 0, 300)
	for _, n := range sizes {
		if n > longest {
			break
		}
		msg := bytes.Repeat([]byte{byte(n), byte(n >> 8), 3}, n/3+1)[:n]
		if err := from.Send(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
		m, err := to.Recv(t.Context(), buf)
		if err != nil || m.Kind != datachannel.Binary || !bytes.Equal(m.Data, msg) {
			t.Fatalf("binary message of %d bytes: %d bytes, kind %d, %v", n, len(m.Data), m.Kind, err)
		}
		if n > 0 && n <= cap(buf) && &m.Data[0] != &buf[:1][0] {
			t.Errorf("a message of %d bytes is not in a buffer of %d", n, cap(buf))
		}
		send(t, from, string(msg))
		wantText(t, to, string(msg))
	}
}

func TestTooLongMessageIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, delay, end{}, end{})
		a, b := p.open(t, datachannel.Options{})
		wantErr(t, "too long", a.Send(t.Context(), make([]byte, datachannel.DefaultPeerMaxMessageSize+1)), datachannel.ErrMessageTooLong)
		send(t, a, "goes on")
		wantText(t, b, "goes on")
	})
}

// A message that is longer than the receiver takes closes the channel, in either way of carrying
// it; others go on.
func TestTooLongMessageClosesTheChannel(t *testing.T) {
	for _, size := range []int{1001, 5000, 1 << 20} {
		bubble(t, fmt.Sprint(size), func(t *testing.T) {
			p := newPair(t, delay, end{dc: datachannel.Config{PeerMaxMessageSize: -1}}, end{dc: datachannel.Config{MaxMessageSize: 1000}})
			a, b := p.open(t, datachannel.Options{})
			other, otherB := p.open(t, datachannel.Options{})
			send(t, a, "short")
			if err := a.Send(t.Context(), make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			wantText(t, b, "short")
			_, err := b.Recv(t.Context(), nil)
			wantErr(t, "receive", err, datachannel.ErrMessageTooLong)
			wantClosed(t, b, datachannel.ErrMessageTooLong)
			wantEOF(t, a)
			wantClosed(t, a, nil)
			send(t, other, "goes on")
			wantText(t, otherB, "goes on")
			if s := p.b.Stats(); s.AssemblyBytes != 0 || s.Violations != 1 || s.Channels != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}
