package interop

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// Rows of stream re-configuration (RFC 6525). Streams 3 and 5 are reset, 4 is
// not; the sequence numbers of all of them are looked at on the wire.

func openReconfig(t *testing.T, o setup) (*session, context.Context) {
	o.opts = append(o.opts, "reconfig 1")
	o.cfg.OutStreams = 20
	s := o.open(t)
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	t.Cleanup(cancel)
	return s, ctx
}

var sixToThree = traffic{count: 6, size: 3000, streams: 3, opts: sctp.SendOptions{Stream: 3}, peerOpts: "first=3"}

// wantSSNs checks the numbers of the last messages on streams 3 to 5.
func (s *session) wantSSNs(sent bool, want ...uint16) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.ssnGot
	if sent {
		from = s.ssnSent
	}
	if got := []uint16{from[3], from[4], from[5]}; !slices.Equal(got, want) {
		s.t.Errorf("last sequence numbers of streams 3 to 5 are %v, want %v (ours: %v)", got, want, sent)
	}
}

// roundTrip sends two messages on each of streams 3 to 5 both ways.
func (s *session) roundTrip(peerHas int) {
	s.t.Helper()
	s.send(sixToThree)
	s.peer.await(patience, peerHas+6)
	s.peerSends(sixToThree)
	s.receive(6)
}

func rowResetOut(t *testing.T, o setup) {
	s, ctx := openReconfig(t, o)
	s.roundTrip(0)
	s.wantSSNs(true, 1, 1, 1)
	if err := s.a.ResetStreams(ctx, 3, 5); err != nil {
		t.Fatal(err)
	}
	s.peer.want("reset in 3 5")
	s.send(traffic{count: 2, size: 3000, streams: 1, opts: sctp.SendOptions{Stream: 3}})
	s.send(traffic{count: 1, size: 3000, streams: 1, opts: sctp.SendOptions{Stream: 5}})
	s.peer.await(patience, 9)
	s.wantSSNs(true, 1, 1, 0)
	s.shutdown()
}

// peerReset waits until the peer has said, from a line on, that streams 3 and 5
// are reset: in one event or two.
func (s *session) peerReset(from int, event string) {
	s.t.Helper()
	var seen []string
	for len(seen) < 2 {
		from = s.peer.ever(from, event)
		seen = append(seen, strings.Fields(strings.TrimPrefix(s.peer.said[from-1], event))...)
	}
	slices.Sort(seen)
	if !slices.Equal(seen, []string{"3", "5"}) {
		s.t.Errorf("%s %q, want 3 and 5", event, seen)
	}
}

func rowResetIn(t *testing.T, o setup) {
	s, ctx := openReconfig(t, o)
	s.roundTrip(0)
	mark := len(s.peer.said)
	if err := s.a.ResetIncomingStreams(ctx, 3, 5); err != nil {
		t.Fatal(err)
	}
	s.peerReset(mark, "reset out")
	s.afterIncomingReset()
	s.shutdown()
}

func rowPeerResetsOut(t *testing.T, o setup) {
	s, _ := openReconfig(t, o)
	s.roundTrip(0)
	mark := len(s.peer.said)
	s.peer.ok("reset out 3 5")
	s.peerReset(mark, "reset out")
	s.afterIncomingReset()
	s.shutdown()
}

// afterIncomingReset checks that the peer begins anew on streams 3 and 5.
func (s *session) afterIncomingReset() {
	s.t.Helper()
	var reset []uint16
	for len(reset) < 2 { // in one request or two
		reset = append(reset, s.wantNote(sctp.NotifyStreamsReset).Streams...)
	}
	slices.Sort(reset)
	if !slices.Equal(reset, []uint16{3, 5}) {
		s.t.Errorf("streams %v were reset, want 3 and 5", reset)
	}
	delete(s.next, 3)
	delete(s.next, 5)
	s.peerSends(traffic{count: 2, size: 3000, streams: 1, peerOpts: "first=3"})
	s.peer.want("sent")
	s.peerSends(traffic{count: 1, size: 3000, streams: 1, peerOpts: "first=5"})
	s.receive(3)
	s.wantSSNs(false, 1, 1, 0)
}

func rowPeerResetsIn(t *testing.T, o setup) {
	s, _ := openReconfig(t, o)
	s.roundTrip(0)
	mark := len(s.peer.said)
	s.peer.ok("reset in 3 5")
	s.peerReset(mark, "reset in")
	s.send(traffic{count: 1, size: 3000, streams: 1, opts: sctp.SendOptions{Stream: 3}})
	s.peer.await(patience, 7)
	s.wantSSNs(true, 0, 1, 1)
	s.shutdown()
}

func rowResetAll(t *testing.T, o setup) {
	s, ctx := openReconfig(t, o)
	s.roundTrip(0)
	if err := s.a.ResetAll(ctx); err != nil {
		t.Fatal(err)
	}
	s.peer.want("resetassoc flags=0")
	s.afterResetAll()
}

func rowPeerResetsAll(t *testing.T, o setup) {
	s, _ := openReconfig(t, o)
	s.roundTrip(0)
	mark := len(s.peer.said)
	s.peer.ok("resetassoc")
	s.peer.ever(mark, "resetassoc flags=0")
	s.wantNote(sctp.NotifyStreamsReset)
	if s.stack.kernel {
		s.afterResetAll()
		return
	}
	// usrsctp takes its own data for acknowledged up to our TSN, not its own,
	// and so every second time takes our SACKs for old ones: it can receive, but
	// not send more than its window.
	s.send(sixToThree)
	s.peer.await(patience, 12)
	s.wantSSNs(true, 1, 1, 1)
}

// afterResetAll checks that all streams begin anew both ways.
func (s *session) afterResetAll() {
	s.t.Helper()
	s.next = nil
	s.roundTrip(6)
	s.wantSSNs(true, 1, 1, 1)
	s.wantSSNs(false, 1, 1, 1)
	s.shutdown()
}

func rowAddStreams(t *testing.T, o setup) {
	o.opts = append(o.opts, "streams 20 100")
	s, ctx := openReconfig(t, o)
	if err := s.a.AddStreams(ctx, 10, 0); err != nil {
		t.Fatal(err)
	}
	added := s.peer.ever(0, "streams")
	if out, _ := s.a.Streams(); out != 30 {
		t.Errorf("%d outgoing streams, want 30", out)
	}
	s.send(traffic{count: 10, size: 3000, streams: 10, opts: sctp.SendOptions{Stream: 20}})
	s.peer.await(patience, 10)
	if err := s.a.AddStreams(ctx, 0, 5); err != nil {
		t.Fatal(err)
	}
	s.peer.ever(added, "streams")
	s.afterTheyAdd()
}

func rowPeerAddsStreams(t *testing.T, o setup) {
	o.opts = append(o.opts, "streams 20 100")
	s, _ := openReconfig(t, o)
	mark := len(s.peer.said)
	s.peer.ok("add 5 0")
	s.peer.ever(mark, "streams")
	s.wantNote(sctp.NotifyStreamsAdded)
	s.afterTheyAdd()
}

// afterTheyAdd checks that the peer can send on five more streams than 20.
func (s *session) afterTheyAdd() {
	s.t.Helper()
	s.until("not 25 incoming streams", func() bool {
		_, in := s.a.Streams()
		return in == 25
	})
	s.peerSends(traffic{count: 5, size: 3000, streams: 5, peerOpts: "first=20"})
	s.receive(5)
	if sent, got := s.chunks(wire.ChunkReConfig); sent == 0 || got == 0 {
		s.t.Errorf("%d RE-CONFIG chunks sent, %d received", sent, got)
	}
	s.shutdown()
}
