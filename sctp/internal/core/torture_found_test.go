package core

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// What TestTorture found, one by one. Scripts of the rest are in testdata/fuzz.

// The last messages expire rather than be sent: the shutdown goes on, and the user
// learns that there is nothing left.
func TestShutdownAfterLastMessagesExpired(t *testing.T) {
	p := newPair(t, 900, &Config{Bundle: true, TellDry: true}) // small messages wait for SACKs
	p.connect()
	p.drive()
	p.a.send(0, 1000)
	p.a.flush()
	for range 3 {
		m := &tx.Message{SID: 1, Body: []byte("late"), Lifetime: clock.Time(time.Millisecond), Force: true}
		if err := p.a.assoc.Send(p.now, m); err != nil {
			t.Fatal(err)
		}
	}
	p.a.assoc.Shutdown(p.now)
	closed := func() bool { return p.a.assoc.State() == Closed && p.z.assoc.State() == Closed }
	if !p.driveUntil(time.Minute, closed) {
		t.Fatalf("A is %v, Z %v", p.a.assoc.State(), p.z.assoc.State())
	}
	p.a.flush()
	p.wantOneWay(p.a, p.z)
	p.a.wantEvent(EventDry)
}

// The peer shuts down while our SSN/TSN reset is outstanding: what it sent, which
// is held back until the answer, is delivered. Nor does the answer get lost when
// we shut down ourselves.
func TestShutdownDuringAssocReset(t *testing.T) {
	for seed := range 40 {
		p := connected(quiet{t}, uint64(910+seed))
		p.net.loss = 200
		for range 5 {
			p.z.send(0, 3000)
			p.z.send(1, 10)
		}
		p.z.flush()
		id := p.a.must(p.a.assoc.ResetAssoc(p.now))
		p.advance(time.Duration(seed) * time.Millisecond)
		h := p.z
		if seed%2 == 1 {
			h = p.a
		}
		h.assoc.Shutdown(p.now)
		closed := func() bool { return p.a.assoc.State() == Closed && p.z.assoc.State() == Closed }
		if !p.driveUntil(10*time.Minute, closed) {
			t.Fatalf("seed %d: A is %v, Z %v", seed, p.a.assoc.State(), p.z.assoc.State())
		}
		if a, z := p.a.assoc.Err(), p.z.assoc.Err(); a != nil || z != nil {
			t.Fatalf("seed %d: A: %v; Z: %v", seed, a, z)
		}
		p.a.read()
		p.z.flush()
		p.wantOneWay(p.z, p.a)
		p.a.flush()
		for _, e := range p.a.events {
			if e.Kind == EventRequestDone && e.Request == id {
				id = 0
			}
		}
		if id != 0 {
			t.Fatalf("seed %d: the request has no outcome", seed)
		}
	}
}

// The peer does not answer our SSN/TSN reset and shuts down: that does not keep
// the association for ever, and what was held back can be read.
func TestShutdownGivesUpAssocReset(t *testing.T) {
	p := connected(t, 950)
	p.net.mangle = func(from *host, pkt []byte) []byte {
		for i, c := range chunkTypes(pkt) {
			if from == p.a && c == wire.ChunkReConfig && i == 0 {
				pkt[wire.HeaderLen] = byte(wire.ChunkPad) // of what the peer knows nothing
				wire.SetChecksum(pkt)
			}
		}
		return pkt
	}
	p.z.send(0, 100)
	p.z.flush()
	p.a.must(p.a.assoc.ResetAssoc(p.now))
	p.z.assoc.Shutdown(p.now)
	closed := func() bool { return p.a.assoc.State() == Closed && p.z.assoc.State() == Closed }
	if !p.driveUntil(5*time.Minute, closed) {
		t.Fatalf("A is %v, Z %v", p.a.assoc.State(), p.z.assoc.State())
	}
	p.a.read()
	p.wantOneWay(p.z, p.a)
}

// An ASCONF from an address that we do not know may come behind the COOKIE ACK
// that we wait for, which need not be authenticated as it does.
func TestAsconfBehindCookieAck(t *testing.T) {
	p := newPair(t, 951, mobileConfig())
	p.net.cut = map[netip.AddrPort]bool{}
	p.z.listen()
	p.a.dial(p.z)
	lost := false
	p.net.drop = func(from *host, pkt []byte) bool {
		if from != p.z || !hasChunk(pkt, wire.ChunkCookieAck) || lost {
			return false
		}
		lost = true
		return true
	}
	p.driveUntil(time.Second, func() bool { return lost })
	id := p.z.must(p.z.assoc.ReplaceLocalAddr(p.z.local[0], extra[0]))
	p.net.cut[p.z.local[0]] = false
	if !p.driveUntil(10*time.Second, func() bool { return p.a.assoc.State() == Established }) {
		t.Fatalf("A is %v", p.a.assoc.State())
	}
	p.z.wantDone(id, nil)
	p.a.send(0, 1000)
	p.z.send(0, 1000)
	p.drive()
	p.wantDelivered()
}

// Between two associations of a peer the numbers of messages go on, so that a
// reader in the middle of a message notices.
func TestMessageNumbersGoOnAfterRestart(t *testing.T) {
	p := connected(t, 952)
	p.z.reading = false
	p.a.reading = false
	p.a.send(0, 100)
	p.driveUntil(time.Minute, p.idle)
	var before reasm.RecvInfo
	p.z.assoc.Read(make([]byte, 50), &before)
	p.a.assoc = nil
	p.a.dial(p.z)
	p.driveUntil(time.Minute, func() bool { return p.a.assoc.State() == Established })
	p.z.wantEvent(EventRestart)
	p.a.send(0, 100)
	p.driveUntil(time.Minute, p.idle)
	var after reasm.RecvInfo
	_, ok := p.z.assoc.Read(make([]byte, 50), &after)
	if !ok || after.Message == before.Message || after.Offset != 0 {
		t.Errorf("message %d at %d, then message %d at %d", before.Message, before.Offset, after.Message, after.Offset)
	}
}

// The peer acknowledges data that came with our COOKIE ECHO, forgets everything and
// dials. The SACK, which is late and has our tag, acknowledges nothing to the new
// association, whether or not it ends the handshake with the former one first.
func TestDeferredSackOfFormerPeer(t *testing.T) {
	for _, ended := range []bool{false, true} {
		p := newPair(t, 953)
		p.z.listen()
		p.a.dial(p.z)
		p.a.send(0, 1000)
		p.a.send(1, 3000)
		p.z.deliver(p.z.to(only(t, p.a.outbox())))
		ack := only(t, wireData(p))
		p.a.deliver(p.a.to(ack))
		p.z.deliver(p.z.to(only(t, p.a.outbox())))
		late := only(t, p.z.outbox())
		wantChunks(t, late, wire.ChunkCookieAck, wire.ChunkSack)
		p.z.assoc, p.z.in, p.z.parts = nil, map[uint16]*ledger{}, map[uint16][]byte{}
		p.z.dial(p.a)
		p.a.deliver(p.a.to(only(t, p.z.outbox())))
		p.z.deliver(p.z.to(only(t, p.a.outbox())))
		if ended {
			p.a.deliver(p.a.to(late))
			p.a.outbox()
			p.a.out = map[uint16]*ledger{} // a restart drops what was queued
		}
		p.a.deliver(p.a.to(only(t, p.z.outbox())))
		p.a.wantState(Established)
		if ended {
			p.a.wantEvent(EventRestart)
			p.a.released = map[*body]error{}
		}
		p.a.send(0, 3000)
		p.a.flush()
		p.a.deliver(p.a.to(late))
		if n := p.a.assoc.tx.sb.Stats().OldSacks; n != 1 {
			t.Errorf("handshake ended %v: %d old SACKs, want 1", ended, n)
		}
		p.z.send(0, 3000)
		p.drive()
		p.wantDelivered()
	}
}

// wireData takes what is on the network off it.
func wireData(p *pair) (list [][]byte) {
	for _, f := range p.wire {
		list = append(list, f.p.Data)
	}
	p.wire = nil
	return list
}

// The peer restarts while an address of ours is being removed, or has been and is
// the one that it goes on with: it learns all addresses that we have from then on,
// so that packets from each of them and further changes reach it.
func TestRestartAroundRemoval(t *testing.T) {
	for _, done := range []bool{false, true} {
		p := newMultihomed(t, 955, mobileConfig())
		p.net.cut = map[netip.AddrPort]bool{}
		p.connect()
		p.drive()
		p.advance(500 * time.Millisecond)
		old := p.a.local[0]
		id := p.a.must(p.a.assoc.RemoveLocalAddr(old))
		p.net.cut[p.z.local[0]] = !done
		if done {
			p.a.wantDone(id, nil)
		} else {
			p.a.flush()
			clear(p.net.cut)
		}
		p.z.assoc = nil
		p.z.dial(p.a)
		if !p.driveUntil(time.Minute, func() bool { return p.z.assoc.State() == Established }) {
			t.Fatalf("removed %v: Z is %v: %v", done, p.z.assoc.State(), p.z.assoc.Err())
		}
		p.a.wantEvent(EventRestart)
		if n := len(p.a.assoc.local.InUse); n != 2 {
			t.Errorf("removed %v: A has %d addresses", done, n)
		}
		p.z.wantRemotes(p.a.local...)
		p.a.wantDone(p.a.must(p.a.assoc.RemoveLocalAddr(old)), nil)
		p.z.wantRemotes(p.a.local[1])
		p.a.send(0, 1000)
		p.z.send(0, 1000)
		p.drive()
		p.wantDelivered()
	}
}

// While we shut down and no address of the peer is confirmed, that for the rest is
// probed. If another one takes its place, which answers no better, it is probed
// again later.
func TestShutdownProbesInTurns(t *testing.T) {
	p := newMultihomed(t, 956, mobileConfig())
	p.connect()
	p.drive()
	p.advance(500 * time.Millisecond)
	z := p.z.assoc
	p.net.drop = func(from *host, _ []byte) bool { return from == p.z }
	z.Shutdown(p.now)
	p.z.flush()
	z.paths[0].confirmed, z.paths[1].confirmed = false, false
	probed := func(want ...bool) {
		t.Helper()
		p.z.flush()
		for i, want := range want {
			if got := z.paths[i].hb.waiting; got != want {
				t.Fatalf("path %d probed %v", i, got)
			}
		}
	}
	probed(true, false)
	p.now += clock.Time(time.Millisecond)
	z.paths[0].errors = 1
	probed(true, true)
	p.now = z.timers.Path[0][timer.Heartbeat]
	z.HandleTimeout(p.now) // in vain
	probed(false, true)
	z.paths[1].errors = 2
	probed(true, true)
}

// removesWhileAsked has A remove an address, or begin to, and then an ASCONF come to
// that one from an address of the peer that is no path.
func removesWhileAsked(t *testing.T, done bool, params func(p *pair) []byte) *pair {
	t.Helper()
	p := newMultihomed(t, 957, mobileConfig())
	p.connect()
	p.drive()
	p.advance(500 * time.Millisecond)
	old := p.a.local[0]
	id := p.a.must(p.a.assoc.RemoveLocalAddr(old))
	if done {
		p.a.wantDone(id, nil)
	}
	chunk := wire.AppendAsconf(nil, wire.Asconf{Seq: p.a.assoc.asconfIn.Seq() + 1, Addr: p.z.local[0].Addr(), Params: params(p)})
	p.a.outbox()
	pkt := p.a.packet(p.a.assoc.Tag(), authed(&p.z.assoc.auth, chunk))
	pkt.Local, pkt.Remote = old, extra[0]
	p.a.deliver(pkt)
	return p
}

// The peer changes an address while we remove one of ours, or have: what it asks
// comes from its new address to that one, which is not used all the same for
// packets to the new one, the answer first (RFC 5061, Section 5.3, F4).
func TestNoNewPathFromRemovedAddress(t *testing.T) {
	for _, done := range []bool{false, true} {
		p := removesWhileAsked(t, done, func(p *pair) []byte { return request(addIP, 0, extra[0].Addr().String()) })
		n := 0
		for {
			_, tx, ok := p.a.assoc.PollTransmit(p.now, nil, 1)
			if !ok {
				break
			}
			if tx.Remote == extra[0] {
				n++
			}
			if tx.Local != p.a.local[1] {
				t.Errorf("removed %v: A sends to %v from %v", done, tx.Remote, tx.Local)
			}
		}
		if n == 0 {
			t.Errorf("removed %v: no answer", done)
		}
	}
}

// The answer to an ASCONF from an address that is no path, which came to an address
// that was removed or is being removed, leaves from another one (RFC 5061, Section
// 5.3, F4).
func TestNoAsconfAckFromRemovedAddress(t *testing.T) {
	for _, done := range []bool{false, true} {
		p := removesWhileAsked(t, done, func(p *pair) []byte { return request(setPrim, 0, p.z.local[1].Addr().String()) })
		n := 0
		for {
			_, tx, ok := p.a.assoc.PollTransmit(p.now, nil, 1)
			if !ok {
				break
			}
			if tx.Remote != extra[0] {
				continue
			}
			if n++; tx.Local != p.a.local[1] {
				t.Errorf("removed %v: A answers %v from %v", done, tx.Remote, tx.Local)
			}
		}
		if n != 1 {
			t.Errorf("removed %v: %d answers", done, n)
		}
	}
}

// Both ends dial, so that the cookies of both have the tags and TSNs of an
// association, and COOKIE ECHOs come late. When that association is gone they set up
// no other with its tags and TSNs, where data of the first would pass for that of
// the second.
func TestCookieOfAssociationThatIsGone(t *testing.T) {
	p := newPair(t, 957)
	p.a.listen()
	p.z.listen()
	p.a.dial(p.z)
	p.z.dial(p.a)
	p.a.send(0, 100)
	inits := [2][]byte{only(t, p.a.outbox()), only(t, p.z.outbox())}
	p.a.deliver(p.a.to(inits[1]))
	p.z.deliver(p.z.to(inits[0]))
	acks := [2][]byte{only(t, p.a.outbox()), only(t, p.z.outbox())}
	p.a.deliver(p.a.to(acks[1]))
	p.z.deliver(p.z.to(acks[0]))
	toZ, toA := only(t, p.a.outbox()), only(t, p.z.outbox())
	wantChunks(t, toZ, wire.ChunkCookieEcho, wire.ChunkIData)
	wantChunks(t, toA, wire.ChunkCookieEcho)
	p.a.deliver(p.a.to(bytes.Clone(toA)))
	p.z.deliver(p.z.to(bytes.Clone(toZ)))
	p.drive()
	p.a.assoc.Shutdown(p.now)
	p.wantClosed(time.Minute)
	p.wantDelivered()
	for _, x := range []struct {
		h    *host
		late []byte
	}{{p.a, toA}, {p.z, toZ}} {
		was := x.h.assoc
		x.h.deliver(x.h.to(x.late))
		if x.h.assoc != was {
			t.Fatalf("%s: a late COOKIE ECHO set up an association with tag %#x again", x.h.name, was.Tag())
		}
		wantChunks(t, only(t, wireData(p)), wire.ChunkError)
	}
}

// An end gives up dialing after it has answered the INIT of the other, which takes
// a new cookie and gets its association at once, with other tags.
func TestCookieOfAttemptThatIsGone(t *testing.T) {
	p := newPair(t, 958)
	p.a.listen()
	p.a.dial(p.z)
	p.z.dial(p.a)
	p.z.send(0, 3000)
	p.a.outbox()
	p.a.deliver(p.a.to(only(t, p.z.outbox())))
	p.z.deliver(p.z.to(only(t, p.a.outbox())))
	former := p.a.assoc.Tag()
	p.a.assoc.Abort(p.now, nil)
	p.a.outbox()
	p.a.assoc = nil
	if !p.driveUntil(time.Second, func() bool { return p.a.assoc != nil && p.z.assoc.State() == Established }) {
		t.Fatalf("Z is %v: %v", p.z.assoc.State(), p.z.assoc.Err())
	}
	if p.a.assoc.Tag() == former {
		t.Errorf("A has tag %#x again", former)
	}
	p.a.send(0, 1000)
	p.drive()
	p.wantDelivered()
}
