package interop

import (
	"testing"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

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
	if _, in := s.chunks(wire.ChunkForwardTSN); in == 0 {
		t.Error("no FORWARD-TSN was received")
	}
	s.shutdown()
}
