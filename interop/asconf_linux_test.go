package interop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp"
	"github.com/weftstack/weft/sctp/wire"
)

// Rows of IPv6, and of changes of addresses while an association lives (RFC
// 5061), authenticated.

func multiIPv6(t *testing.T, o setup) {
	o.at = [2]addrList{{linkAddr6(0, ours)}, {linkAddr6(0, theirs)}}
	s := o.open(t)
	s.bothWays()
	s.shutdown()
}

// multiMixed has one IPv4 and one IPv6 address at each end, and sends by IPv4
// first and then by IPv6.
func multiMixed(t *testing.T, o setup) {
	o.at = [2]addrList{{linkAddr(0, ours), linkAddr6(1, ours)}, {linkAddr(0, theirs), linkAddr6(1, theirs)}}
	s := o.open(t)
	s.confirmed()
	for _, ap := range s.udp {
		if err := s.a.SetPrimary(ap); err != nil {
			t.Fatal(err)
		}
		s.bothWaysUntil("too little was sent to "+ap.String(), func() bool {
			return slices.ContainsFunc(s.a.Stats().Paths, func(p sctp.PathStats) bool { return p.Remote == ap && p.BytesSent >= 100_000 })
		})
	}
	s.shutdown()
}

// bothWays sends a hundred messages in each direction.
func (s *session) bothWays() {
	s.t.Helper()
	tr := traffic{count: 100, size: 3000, opts: sctp.SendOptions{Stream: s.round}}
	s.round++
	s.peerSends(traffic{count: tr.count, size: tr.size, peerOpts: fmt.Sprintf("first=%d", tr.opts.Stream)})
	s.send(tr)
	s.peer.await(sessionTime, int(s.round)*tr.count)
	if got := s.receive(tr.count); got.gaps != 0 {
		s.t.Errorf("received %+v", got)
	}
}

// bothWaysUntil sends both ways until ok says so, which at first it may not: what
// is not answered for a moment, on a busy machine, goes by another path.
func (s *session) bothWaysUntil(what string, ok func() bool) {
	s.t.Helper()
	const tries = 20
	for range tries {
		if s.bothWays(); ok() {
			return
		}
	}
	s.t.Errorf("%s: %+v", what, s.a.Stats())
}

// dataCame returns how many packets with data came by each link.
func (s *session) dataCame() [2]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dataFrom
}

// openChanging opens an association of which one end has one address only.
func openChanging(t *testing.T, o setup, end int) (*session, context.Context) {
	o.at[end] = addrList{linkAddr(0, end)}
	o.opts = append(o.opts, "auth 1", "asconf 1")
	o.cfg.ChangeAddrs = true
	s := o.open(t)
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	t.Cleanup(cancel)
	s.bothWays()
	return s, ctx
}

// addSocket adds our address of the second link to the transport.
func (s *session) addSocket() netip.AddrPort {
	s.t.Helper()
	ap, err := s.tr.AddConn(s.net.conns(addrList{linkAddr(1, ours)})[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return ap
}

func (s *session) wantAsconf() {
	s.t.Helper()
	sent, got := s.chunks(wire.ChunkAsconf)
	back, acked := s.chunks(wire.ChunkAsconfAck)
	s.t.Logf("ASCONF: %d sent, %d answered; %d received, %d answered", sent, acked, got, back)
	if acked == 0 && back == 0 {
		s.t.Error("no ASCONF-ACK")
	}
	s.wantChunks(wire.ChunkAuth, true)
}

// goesOnWithoutFirst cuts the first link, over which nothing may need to go any
// more, and ends the association.
func (s *session) goesOnWithoutFirst() {
	s.t.Helper()
	s.net.cut(0)
	defer s.net.mend(0)
	s.bothWays()
	s.net.mend(0)
	s.wantAsconf()
	s.shutdown()
}

// multiWeChange moves our end from one link to the other, step by step.
func multiWeChange(t *testing.T, o setup) {
	s, ctx := openChanging(t, o, ours)
	old := s.tr.LocalAddrs()[0]
	second := s.addSocket()
	if err := s.a.AddAddr(ctx, second); err != nil {
		t.Fatal("AddAddr: ", err)
	}
	s.peer.ever(0, "path confirmed 10.78.1.1")
	if err := s.a.SetPeerPrimary(ctx, second); err != nil {
		t.Fatal("SetPeerPrimary: ", err)
	}
	s.peer.ever(0, "path primary 10.78.1.1")
	before := s.dataCame()
	s.bothWaysUntil("the second link does not carry more", func() bool {
		was, after := before, s.dataCame()
		before = after
		return after[1]-was[1] > 10*(after[0]-was[0]) // something may be under way
	})
	if err := s.a.RemoveAddr(ctx, old); err != nil {
		t.Fatal("RemoveAddr: ", err)
	}
	s.peer.ever(0, "path removed 10.78.0.1")
	if err := s.tr.RemoveAddr(old); err != nil {
		t.Error(err)
	}
	s.goesOnWithoutFirst()
}

// multiPeerChanges has the peer do the same.
func multiPeerChanges(t *testing.T, o setup) {
	s, _ := openChanging(t, o, theirs)
	old, second := s.udp[0], netip.AddrPortFrom(linkAddr(1, theirs), s.net.port())
	s.peer.ok("addaddr %v", second.Addr())
	if n := s.wantNote(sctp.NotifyPathAdded); n.Addr != second {
		t.Errorf("%v was added, want %v", n.Addr, second)
	}
	if n := s.wantNote(sctp.NotifyPathConfirmed); n.Addr != second {
		t.Errorf("%v was confirmed, want %v", n.Addr, second)
	}
	for deadline := time.Now().Add(patience); s.peer.ask("primary %v %d", linkAddr(1, ours), s.ours) != "ok"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the peer does not confirm our second address")
		}
	}
	s.peer.ok("peerprimary %v %d", second.Addr(), s.theirs)
	if n := s.wantNote(sctp.NotifyPrimary); n.Addr != second {
		t.Errorf("%v is the primary address, want %v", n.Addr, second)
	}
	s.bothWays()
	s.peer.ok("deladdr %v", old.Addr())
	if n := s.wantNote(sctp.NotifyPathRemoved); n.Addr != old {
		t.Errorf("%v was removed, want %v", n.Addr, old)
	}
	s.goesOnWithoutFirst()
}

// multiWeMove replaces our only address when it does not work any more.
func multiWeMove(t *testing.T, o setup) {
	s, ctx := openChanging(t, o, ours)
	old := s.tr.LocalAddrs()[0]
	second := s.addSocket()
	o.net.cut(0)
	defer o.net.mend(0)
	var err error
	if o.stack.kernel {
		err = s.a.ReplaceAddr(ctx, old, second)
	} else {
		// usrsctp frees an address twice, and ends, when a request removes the one
		// that it found the association by.
		err = s.a.AddAddr(ctx, second)
	}
	if !o.stack.kernel && err == nil || o.stack.kernel && errors.Is(err, sctp.ErrDenied) {
		// Linux adds the new address but does not remove that one either, which RFC
		// 5061, Section 5.3.2, has be the old one.
		err = s.a.RemoveAddr(ctx, old)
	}
	if err != nil {
		t.Fatal("change of the address: ", err)
	}
	s.bothWays()
	o.net.mend(0)
	s.wantAsconf()
	s.shutdown()
}
