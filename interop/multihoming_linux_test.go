package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// TestUsrsctpMultihomed has two addresses on each side, usrsctp on the other.
func TestUsrsctpMultihomed(t *testing.T) {
	bounded(t)
	testenv.Slow(t, "all paths of a peer on usrsctp")
	m := newMultinet(t, false)
	runMultihomed(t, usrsctpMulti(t, m), m, multihomedRows)
	m.direct = true
	t.Run("over IP", func(t *testing.T) { runMultihomed(t, usrsctpMulti(t, m), m, directRows) })
}

// TestKernelMultihomed is the same with the Linux kernel.
func TestKernelMultihomed(t *testing.T) {
	bounded(t)
	testenv.Slow(t, "boots a guest")
	m := newMultinet(t, true)
	// Over UDP, usrsctp neither sends nor sees congestion marks.
	s := kernelMulti(t, m)
	runMultihomed(t, s, m, append(multihomedRows, row{"congestion marks", multiECN}))
	m.direct = true
	// Over IP, usrsctp sends from any of its addresses, whatever the way.
	t.Run("over IP", func(t *testing.T) {
		runMultihomed(t, s, m, append(directRows, row{"we change addresses", multiWeChange}))
	})
}

var multihomedRows = []row{
	{"both paths", multiBothPaths},
	{"failover out", multiFailoverOut},
	{"failover in", multiFailoverIn},
	{"primary", multiPrimary},
	{"IPv6", multiIPv6},
	{"IPv4 and IPv6", multiMixed},
	{"we change addresses", multiWeChange},
	{"peer changes addresses", multiPeerChanges},
	{"we move", multiWeMove},
	{"path MTU", multiPathMTU},
}

// directRows are tried without UDP as well.
var directRows = []row{
	{"both paths", multiBothPaths},
	{"failover out", multiFailoverOut},
	{"IPv6", multiIPv6},
	{"path MTU", multiPathMTU},
}

func runMultihomed(t *testing.T, s *stack, m *multinet, rows []row) {
	t.Logf("peer: %s", s.version)
	for _, r := range rows {
		s.row(t, r.name, func(t *testing.T) {
			o := setup{stack: s, net: m, mode: "sink",
				opts: []string{"nodelay 1", "buffer 4194304 4194304", "streams 100 100",
					"rto 300 200 500", "heartbeat 300 2", "maxrtx 20"},
				cfg: sctp.Config{OutStreams: 100, HeartbeatInterval: 300 * time.Millisecond,
					RTOInitial: 300 * time.Millisecond, RTOMax: 500 * time.Millisecond,
					PathMaxRetransmits: 2, MaxRetransmits: 20}}
			s.row(t, "we connect", func(t *testing.T) { r.run(t, o) })
			o.accept = true
			s.row(t, "peer connects", func(t *testing.T) { r.run(t, o) })
		})
	}
}

// confirmed waits until both paths are, at our end.
func (s *session) confirmed() {
	s.t.Helper()
	s.until("the paths are not confirmed", func() bool {
		n := 0
		for _, p := range s.a.Stats().Paths {
			if p.Confirmed && p.Active {
				n++
			}
		}
		return n == 2
	})
}

// wantPathNote waits for a notification about the path on a link. The other one
// may have had its troubles, too, on a busy machine.
func (s *session) wantPathNote(kind sctp.NotificationKind, link int) {
	s.t.Helper()
	s.wantNoteWith(kind, func(n sctp.Notification) bool { return linkOf(n.Addr) == link })
}

func multiBothPaths(t *testing.T, o setup) {
	s := o.open(t)
	remote := s.a.RemoteAddr()
	if len(remote.Addrs) != 2 {
		t.Fatalf("addresses of the peer: %v", remote)
	}
	s.confirmed()
	for _, a := range remote.Addrs {
		if err := s.a.Heartbeat(a); err != nil {
			t.Errorf("heartbeat to %v: %v", a, err)
		}
	}
	for _, ip := range []string{"10.78.0.1", "10.78.1.1"} {
		s.peer.ok("heartbeat %s %d", ip, s.ours)
	}
	s.until("too few heartbeats", func() bool {
		_, asked := s.chunks(wire.ChunkHeartbeat)
		_, back := s.chunks(wire.ChunkHeartbeatAck)
		return asked >= 4 && back >= 4
	})
	s.shutdown()
}

// multiFailoverOut takes the link of the primary path away in the middle of a
// transfer, and brings it back.
func multiFailoverOut(t *testing.T, o setup) {
	s := o.open(t)
	s.confirmed()
	tr := traffic{count: 300, size: 20_000}
	primary := linkOf(s.a.RemoteAddr().Addrs[0])
	s.send(traffic{count: 10, size: 1000})
	s.peer.await(patience, 10)
	o.net.cut(primary)
	defer o.net.mend(primary)
	s.send(traffic{count: tr.count, size: tr.size, opts: sctp.SendOptions{Stream: 1}})
	s.peer.await(sessionTime, 10+tr.count)
	s.wantPathNote(sctp.NotifyPathDown, primary)
	down := s.peer.ever(0, fmt.Sprintf("path down 10.78.%d.1", primary))
	o.net.mend(primary)
	s.wantPathNote(sctp.NotifyPathUp, primary)
	s.peer.ever(down, fmt.Sprintf("path up 10.78.%d.1", primary))
	s.shutdown()
}

func multiFailoverIn(t *testing.T, o setup) {
	s := o.open(t)
	s.confirmed()
	tr := traffic{count: 300, size: 20_000}
	s.peerSends(traffic{count: 10, size: 1000})
	s.receive(10)
	o.net.cut(0)
	defer o.net.mend(0)
	tr.peerOpts = "first=1"
	s.peerSends(tr)
	if got := s.receive(tr.count); got.gaps != 0 {
		t.Errorf("received %+v", got)
	}
	down := s.peer.ever(0, "path down 10.78.0.1")
	o.net.mend(0)
	s.peer.ever(down, "path up 10.78.0.1")
	s.shutdown()
}

// multiPrimary moves the primary path of each side to the second link, and sees
// the data there.
func multiPrimary(t *testing.T, o setup) {
	s := o.open(t)
	s.confirmed()
	second := s.udp[1]
	if err := s.a.SetPrimary(second); err != nil {
		t.Fatal(err)
	}
	tr := traffic{count: 100, size: 10_000}
	s.send(tr)
	s.peer.await(patience, tr.count)
	for _, p := range s.a.Stats().Paths {
		if p.Primary != (p.Remote == second) {
			t.Errorf("primary path: %+v", p)
		}
	}
	// The peer does it as soon as the path is confirmed at its end.
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		done := s.peer.ask("primary 10.78.1.1 %d", s.ours) == "ok"
		s.mu.Lock()
		s.dataFrom = [2]int{}
		s.mu.Unlock()
		s.peerSends(traffic{count: 10, size: 10_000})
		s.receive(10)
		s.peer.want("sent")
		s.mu.Lock()
		got := s.dataFrom
		s.mu.Unlock()
		if done && got[1] > 0 && got[0] == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the peer sent %d packets with data on the first path, %d on the second", got[0], got[1])
		}
	}
	s.shutdown()
}
