package interop

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// untilInit makes a path that nothing gets through until one side begins anew.
func untilInit(fromUs bool) faults {
	open := false
	return faults{drop: func(us bool, p []byte) bool {
		if us == fromUs && len(p) > wire.HeaderLen && wire.ChunkType(p[wire.HeaderLen]) == wire.ChunkInit {
			open = true
		}
		return !open
	}}
}

// rowPeerRestarts has the peer forget the association: it aborts while nothing
// gets through and ends, and another one opens it again from the same port.
func rowPeerRestarts(t *testing.T, o setup) {
	o.mode = "echo"
	o.relay = newRelay(t, faults{})
	s := o.open(t)
	s.send(traffic{count: 10, size: 1000})
	s.receive(10)
	s.relay.set(untilInit(false))
	s.peer.do("abort")
	s.peer.want("end")
	s.peer.quit()
	s.peer = s.stack.start(t, s.peer)
	s.configurePeer()
	s.peerDials()
	s.peer.want("up")
	s.wantNote(sctp.NotifyRestart)
	s.next = nil
	s.send(traffic{count: 10, size: 1000})
	s.receive(10)
	s.shutdown()
}

// rowWeRestart is the same with us as the forgetful side.
func rowWeRestart(t *testing.T, o setup) {
	o.relay = newRelay(t, faults{})
	s := o.open(t)
	s.send(traffic{count: 10, size: 1000})
	s.peer.await(patience, 10)
	s.relay.set(untilInit(true))
	s.tr.Close()
	// On another UDP port, which the peer does not see: somebody may have taken
	// the old one.
	s.startTransport(sctp.TransportConfig{LocalAddrs: []netip.AddrPort{netip.MustParseAddrPort(s.stack.ours)}})
	s.relay.between(s.tr.LocalAddrs()[0], netip.MustParseAddrPort(s.stack.udp(s.peer)))
	s.weConnect()
	s.peer.want("event restart")
	s.next = nil
	s.send(traffic{count: 10, size: 1000})
	s.peer.await(patience, 20)
	s.peerSends(traffic{count: 10, size: 1000})
	s.receive(10)
	s.shutdown()
}

func rowHeartbeats(t *testing.T, o setup) {
	o.cfg.HeartbeatInterval = 100 * time.Millisecond
	o.opts = append(o.opts, "heartbeat 100 5")
	s := o.open(t)
	s.until("too few heartbeats", func() bool {
		asked, answered := s.chunks(wire.ChunkHeartbeat)
		back, acked := s.chunks(wire.ChunkHeartbeatAck)
		return asked > 2 && acked > 2 && answered > 2 && back > 2
	})
	s.shutdown()
}

// rowPathFailure cuts the only path: both sides give up. They do so after some
// seconds, since until then a busy machine may keep either of them from answering.
func rowPathFailure(t *testing.T, o setup) {
	t.Parallel()
	o.relay = newRelay(t, faults{})
	o.cfg = sctp.Config{HeartbeatInterval: 200 * time.Millisecond, RTOInitial: 500 * time.Millisecond, RTOMax: time.Second, MaxRetransmits: 7, PathMaxRetransmits: 3}
	o.opts = append(o.opts, "rto 500 200 1000", "maxrtx 7", "heartbeat 200 3")
	s := o.open(t)
	s.send(traffic{count: 10, size: 1000})
	s.peer.await(patience, 10)
	s.relay.cut.Store(true)
	s.wantNote(sctp.NotifyPathDown)
	if err := s.wantEnd(patience); !errors.Is(err, sctp.ErrTimeout) {
		t.Errorf("the association ended with %v, want %v", err, sctp.ErrTimeout)
	}
	s.peer.want("path down")
	s.peer.want("event comm_lost")
	s.peer.want("end")
}

// refusedByPeer connects to a port that nobody listens on.
func refusedByPeer(t *testing.T, o setup) {
	s := o.prepare(t)
	if _, err := s.ep.Connect(s.ctx, s.peerAddr()); !errors.Is(err, sctp.ErrRefused) {
		t.Errorf("connecting to a closed port: %v, want %v", err, sctp.ErrRefused)
	}
}

// refusedByUs has the peer connect to a port that nobody listens on.
func refusedByUs(t *testing.T, o setup) {
	s := o.prepare(t)
	s.ep.Close()
	s.peerDials()
	if got := s.peer.want("error connect"); got != "Connection refused" && got != "Connection reset by peer" {
		t.Errorf("the peer connects to a closed port: %s", got)
	}
}

// collision has both sides connect at once (RFC 9260, Section 5.2.1): nothing gets
// through before both have sent an INIT.
func collision(t *testing.T, o setup) {
	var sent [2]bool
	o.relay = newRelay(t, faults{drop: func(fromUs bool, _ []byte) bool {
		if sent == [2]bool{true, true} {
			return false
		}
		sent[b2u(fromUs)] = true
		return true
	}})
	s := o.prepare(t)
	s.peerDials()
	s.weConnect()
	s.peer.want("up")
	s.send(traffic{count: 10, size: 1000})
	s.receive(10)
	s.shutdown()
}
