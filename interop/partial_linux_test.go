package interop

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// A message that is not given up may arrive before the FORWARD-TSN that tells of
// those that are, on another stream or as it overtakes: the rows look for that
// chunk after the end of the association, which waits for it, or wait for it.

// lossyData makes a path that loses every fifth packet in one direction, but
// no small ones.
func lossyData(fromUs bool) faults {
	n := 0
	return faults{drop: func(us bool, p []byte) bool {
		if us != fromUs || len(p) < 500 {
			return false
		}
		n++
		return n%5 == 0
	}}
}

func rowPROut(t *testing.T, o setup) {
	o.relay = newRelay(t, lossyData(true))
	o.cfg.MTU = 1500
	s := o.open(t)
	s.send(traffic{count: 200, size: 1000, opts: sctp.SendOptions{PR: sctp.LimitedRetransmissions, MaxRetransmits: 0}})
	// The last message is reliable, and small enough for the path: when it is
	// there, the others have come or never will.
	buf := make([]byte, 100)
	fillMessage(buf, 1000)
	if err := s.a.Send(s.ctx, buf, sctp.SendOptions{}); err != nil {
		t.Fatal(err)
	}
	s.peerSends(traffic{count: 1, size: 100})
	s.receive(1)
	s.shutdown()
	s.peer.do("stat")
	got := s.peer.counts(s.peer.want("stat"))
	if got.msgs < 100 || got.msgs > 195 || got.gaps == 0 || got.bad != 0 {
		t.Errorf("peer got %+v, want most of 201 messages", got)
	}
	if sent, _ := s.chunks(wire.ChunkForwardTSN); sent == 0 {
		t.Error("no FORWARD-TSN was sent")
	}
}

func rowPRIn(t *testing.T, o setup) {
	o.relay = newRelay(t, lossyData(false))
	s := o.open(t)
	s.peerSends(traffic{count: 200, size: 1000, peerOpts: "rtx=0"})
	s.peer.want("sent")
	s.peerSends(traffic{count: 1, size: 100})
	var got receipt
	buf := make([]byte, 2000)
	for {
		n, info, err := s.a.Recv(s.ctx, buf)
		if err != nil {
			t.Fatalf("after %+v: %v", got, err)
		}
		got.msgs++
		if seq, err := checkMessage(buf[:n]); err != nil {
			t.Errorf("%v: %+v", err, info)
		} else if seq == 200 {
			break
		}
	}
	if got.msgs < 100 || got.msgs > 195 {
		t.Errorf("received %+v, want most of 201 messages", got)
	}
	s.shutdown()
	if _, in := s.chunks(wire.ChunkForwardTSN); in == 0 {
		t.Error("no FORWARD-TSN was received")
	}
}

// lossyStream makes a path that loses the packets of one direction with data on
// stream 1: all, or until the sender tells that it has given some up.
func lossyStream(fromUs, all bool) faults {
	open := false
	return faults{drop: func(us bool, p []byte) bool {
		if us != fromUs || open || len(p) < wire.HeaderLen {
			return false
		}
		lost := false
		for it := wire.NewChunks(p[wire.HeaderLen:]); it.Next(); {
			if it.Chunk().Type == wire.ChunkForwardTSN {
				open = !all
			}
			d, err := wire.ParseData(it.Chunk())
			lost = lost || err == nil && it.Chunk().Type == wire.ChunkData && d.SID == 1
		}
		return lost
	}}
}

// cutData makes a path that loses large packets of one direction while it says
// so.
func cutData(fromUs bool) (faults, *atomic.Bool) {
	var cut atomic.Bool
	return faults{drop: func(us bool, p []byte) bool { return us == fromUs && len(p) >= 500 && cut.Load() }}, &cut
}

const lifetime = 100 * time.Millisecond

// rowTimedOut sends messages that live for a while and never get through: the
// association ends when all of them have been given up.
func rowTimedOut(t *testing.T, o setup) {
	o.relay = newRelay(t, lossyStream(true, true))
	o.cfg.MTU = 1500
	s := o.open(t)
	tr := traffic{count: 20, size: 1000}
	s.send(tr)
	s.peer.await(patience, tr.count)
	timed := sctp.SendOptions{Stream: 1, PR: sctp.Timed, Lifetime: lifetime}
	s.send(traffic{count: 20, size: 1000, opts: timed})
	s.send(traffic{count: 1, size: 1000, opts: sctp.SendOptions{Stream: 2}})
	s.peer.await(patience, 21)
	s.shutdown()
	s.peer.do("stat")
	if got := s.peer.counts(s.peer.want("stat")); got.msgs != 21 {
		t.Errorf("peer got %+v, want 21 messages", got)
	}
	if sent, _ := s.chunks(wire.ChunkForwardTSN); sent == 0 {
		t.Error("no FORWARD-TSN was sent")
	}
}

// forwarded waits until the peer tells that it has given up messages.
func (s *session) forwarded() {
	s.t.Helper()
	s.until("no FORWARD-TSN is received", func() bool {
		_, in := s.chunks(wire.ChunkForwardTSN)
		return in > 0
	})
}

// rowTimedIn loses such messages of the peer until it has given up some.
func rowTimedIn(t *testing.T, o setup) {
	o.relay = newRelay(t, lossyStream(false, false))
	s := o.open(t)
	tr := traffic{count: 20, size: 1000}
	s.peerSends(tr)
	s.receive(tr.count)
	s.peer.want("sent")
	s.peerSends(traffic{count: 20, size: 1000, peerOpts: fmt.Sprintf("first=1 ttl=%d", lifetime.Milliseconds())})
	s.peer.want("sent")
	s.forwarded()
	s.peerSends(traffic{count: 1, size: 1000, peerOpts: "first=2"})
	late := 0 // usrsctp gives up what it has sent, and sends the rest late
	for s.receive(1).order[0] != 2 {
		late++
	}
	t.Logf("%d of 20 messages came late", late)
	if late == 20 {
		t.Error("no message was given up")
	}
	s.shutdown()
}

// Two kinds of messages that the next rows tell apart by their length.
var (
	lowly     = traffic{count: 40, size: 1000, opts: sctp.SendOptions{Stream: 1, PR: sctp.Prioritized, Priority: 9}, peerOpts: "first=1 prio=9"}
	important = traffic{count: 40, size: 1001, opts: sctp.SendOptions{Stream: 2, PR: sctp.Prioritized, Priority: 1}, peerOpts: "first=2 prio=1"}
)

// rowPriorityOut fills our send buffer when nothing gets through: important
// messages take the place of others.
func rowPriorityOut(t *testing.T, o setup) {
	f, cut := cutData(true)
	o.relay = newRelay(t, f)
	o.cfg.MTU, o.cfg.SendBuffer = 1500, 50_000
	s := o.open(t)
	cut.Store(true)
	s.send(lowly)
	s.send(important)
	cut.Store(false)
	s.send(traffic{count: 1, size: 100})
	s.shutdown()
	s.peer.do("stat")
	got := s.peer.counts(s.peer.want("stat"))
	high := got.bytes - 100 - (got.msgs-1)*int64(lowly.size)
	t.Logf("peer got %d important messages, %d others", high, got.msgs-1-high)
	if high != int64(important.count) || got.msgs-1-high >= int64(lowly.count) {
		t.Errorf("peer got %+v, want all important messages, and not all others", got)
	}
}

// rowPriorityIn is for Linux: usrsctp has the policy, but gave up no message here.
func rowPriorityIn(t *testing.T, o setup) {
	f, cut := cutData(false)
	o.relay = newRelay(t, f)
	o.opts = append(o.opts, "buffer 55000 4194304") // it takes twice that, and counts more than bytes
	s := o.open(t)
	cut.Store(true)
	s.peerSends(lowly)
	s.peer.want("sent")
	mark := len(s.peer.said)
	s.peerSends(important)
	s.until("the peer does not wait for room", func() bool {
		s.peer.do("sender")
		return s.peer.want("sender") == "S"
	})
	cut.Store(false)
	s.peer.ever(mark, "sent")
	s.peerSends(traffic{count: 1, size: 100})
	buf := make([]byte, 2000)
	var got [3]int
	for got[0] == 0 || got[2] < important.count {
		n, info, err := s.a.Recv(s.ctx, buf)
		if err != nil {
			t.Fatalf("after %d messages of each kind: %v", got, err)
		}
		if _, err := checkMessage(buf[:n]); err != nil {
			t.Errorf("%v: %+v", err, info)
		}
		got[info.Stream]++
	}
	s.shutdown()
	t.Logf("received %d important messages, %d others", got[2], got[1])
	if got[1] >= lowly.count {
		t.Errorf("received %d unimportant messages, want fewer than %d", got[1], lowly.count)
	}
}
