package core

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/timer"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

func (p *pair) wantClosed(limit time.Duration) {
	p.t.Helper()
	if !p.driveUntil(limit, func() bool { return p.a.assoc.State() == Closed && p.z.assoc.State() == Closed }) {
		p.t.Fatalf("not closed: A %v, Z %v", p.a.assoc.State(), p.z.assoc.State())
	}
	for _, h := range []*host{p.a, p.z} {
		if h.assoc.NextTimeout() != 0 {
			p.t.Errorf("%s: a timer runs in a closed association", h.name)
		}
	}
}

// RFC 9260, Section 9.2: data of both ends is delivered before the end.
func TestShutdown(t *testing.T) {
	p := newPair(t, 40)
	p.connect()
	p.a.send(0, 200_000)
	p.z.send(0, 200_000)
	p.advance(6 * time.Millisecond)
	p.a.assoc.Shutdown(p.now)
	p.a.wantState(ShutdownPending)
	if err := p.a.assoc.Send(p.now, &tx.Message{Body: []byte("late")}); err != ErrShutdown {
		t.Errorf("Send after Shutdown: %v", err)
	}
	p.wantClosed(time.Minute)
	p.a.flush()
	p.z.flush()
	p.wantDelivered()
	p.z.wantEvent(EventPeerShutdown)
	for _, h := range []*host{p.a, p.z} {
		if e := h.wantEvent(EventDown); e.Err != nil {
			t.Errorf("%s: ended with %v", h.name, e.Err)
		}
	}
	if err := p.z.assoc.Send(p.now, &tx.Message{Body: []byte("late")}); err != ErrClosed {
		t.Errorf("Send after the end: %v", err)
	}
}

// Two ends that shut down at once, each with a message in flight, do not wait for each other's
// delayed SACK: the side that shuts down has nothing to bundle a SACK with, and it acknowledges
// at once what it has received (RFC 9260, Section 6.2: the delay is an upper bound).
func TestShutdownOfBothEndsDoesNotWaitForDelayedSacks(t *testing.T) {
	for _, late := range []bool{false, true} {
		p := newPair(t, 50)
		p.connect()
		p.a.send(0, 10) // the first DATA chunk is acknowledged at once (Section 5.1)
		p.z.send(0, 10)
		p.advance(50 * time.Millisecond)
		p.a.send(0, 10)
		p.z.send(0, 10)
		p.a.flush()
		p.z.flush()
		if late { // the messages have arrived, and their SACKs are pending
			p.advance(20 * time.Millisecond)
		}
		start := p.now
		p.a.assoc.Shutdown(p.now)
		p.z.assoc.Shutdown(p.now)
		p.a.wantState(ShutdownPending)
		p.z.wantState(ShutdownPending)
		p.wantClosed(time.Minute)
		if took := time.Duration(p.now - start); took >= DefaultSackDelay/2 {
			t.Errorf("messages arrived before the shutdown %t: closed after %v, want less than %v", late, took, DefaultSackDelay/2)
		}
		p.wantDelivered()
	}
}

// The association closes at both ends, whichever packets of the shutdown are
// lost and whoever begins.
func TestShutdownLosesAnyPackets(t *testing.T) {
	const n = 6
	for mask := range 1 << n {
		for who := range 3 {
			p := newPair(quiet{t}, uint64(mask), &Config{RTOInitial: 100 * time.Millisecond, RTOMin: 50 * time.Millisecond})
			p.connect()
			p.z.send(0, 1000*(mask%4)+1)
			if mask%2 == 0 {
				p.a.send(0, 1000)
			}
			i := 0
			p.net.drop = func(*host, []byte) bool {
				i++
				return i <= n && mask>>(i-1)&1 != 0
			}
			if who != 1 {
				p.a.assoc.Shutdown(p.now)
			}
			if who != 0 {
				p.z.assoc.Shutdown(p.now)
			}
			p.wantClosed(10 * time.Minute)
			p.a.flush()
			p.z.flush()
			p.wantDelivered()
		}
	}
}

// shutDown drives A into a state of the shutdown with Z cut off.
func (p *pair) inState(want State) {
	p.t.Helper()
	p.connect()
	switch want {
	case ShutdownPending:
		p.net.drop = func(*host, []byte) bool { return true }
		p.a.send(0, 10)
		p.a.assoc.Shutdown(p.now)
		p.a.flush()
	case ShutdownSent:
		p.a.assoc.Shutdown(p.now)
		p.a.outbox()
	case ShutdownReceived:
		p.net.drop = func(*host, []byte) bool { return true }
		p.a.send(0, 10)
		p.a.flush()
		p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendShutdown(nil, wire.Shutdown{CumTSN: uint32(p.a.assoc.tx.sb.CumTSN())})))
		p.a.flush()
	case ShutdownAckSent:
		p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendShutdown(nil, wire.Shutdown{CumTSN: uint32(p.a.assoc.tx.sb.CumTSN())})))
		p.a.outbox()
	}
	p.net.drop = nil
	p.a.wantState(want)
	p.a.events, p.wire = nil, nil
}

// Every chunk of the shutdown in every state (RFC 9260, Section 9.2).
func TestShutdownChunksByState(t *testing.T) {
	sd := func(a *Assoc) []byte {
		return wire.AppendShutdown(nil, wire.Shutdown{CumTSN: uint32(a.tx.sb.CumTSN())})
	}
	ack := func(*Assoc) []byte { return wire.AppendShutdownAck(nil) }
	done := func(*Assoc) []byte { return wire.AppendShutdownComplete(nil, wire.ShutdownComplete{}) }
	none := wire.ChunkPad
	for _, x := range []struct {
		name  string
		from  State
		chunk func(*Assoc) []byte
		to    State
		reply wire.ChunkType
	}{
		{"SHUTDOWN", Established, sd, ShutdownAckSent, wire.ChunkShutdownAck},
		{"SHUTDOWN", ShutdownPending, sd, ShutdownReceived, none},
		{"SHUTDOWN", ShutdownSent, sd, ShutdownAckSent, wire.ChunkShutdownAck},
		{"SHUTDOWN", ShutdownReceived, sd, ShutdownReceived, none},
		{"SHUTDOWN", ShutdownAckSent, sd, ShutdownAckSent, wire.ChunkShutdownAck},
		{"SHUTDOWN ACK", Established, ack, Established, none},
		{"SHUTDOWN ACK", ShutdownPending, ack, ShutdownPending, none},
		{"SHUTDOWN ACK", ShutdownSent, ack, Closed, wire.ChunkShutdownComplete},
		{"SHUTDOWN ACK", ShutdownReceived, ack, ShutdownReceived, none},
		{"SHUTDOWN ACK", ShutdownAckSent, ack, Closed, wire.ChunkShutdownComplete},
		{"SHUTDOWN COMPLETE", Established, done, Established, none},
		{"SHUTDOWN COMPLETE", ShutdownPending, done, ShutdownPending, none},
		{"SHUTDOWN COMPLETE", ShutdownSent, done, ShutdownSent, none},
		{"SHUTDOWN COMPLETE", ShutdownReceived, done, ShutdownReceived, none},
		{"SHUTDOWN COMPLETE", ShutdownAckSent, done, Closed, none},
	} {
		t.Run(x.name+" in "+x.from.String(), func(t *testing.T) {
			p := newPair(t, 41)
			p.inState(x.from)
			p.a.deliver(p.a.packet(p.a.assoc.Tag(), x.chunk(p.a.assoc)))
			p.a.wantState(x.to)
			got := p.a.outbox()
			if x.reply == none {
				if len(got) > 0 {
					t.Errorf("answered with %s", wire.Describe(got[0]))
				}
				return
			}
			wantChunks(t, only(t, got), x.reply)
		})
	}
}

// RFC 9260, Section 9.2: SHUTDOWN in COOKIE-WAIT and COOKIE-ECHOED is discarded;
// SHUTDOWN ACK is out of the blue there, and T1 goes on.
func TestShutdownChunksInHandshake(t *testing.T) {
	p := newPair(t, 42)
	p.z.listen()
	p.a.dial(p.z)
	for _, state := range []State{CookieWait, CookieEchoed} {
		init := p.a.outbox()
		p.a.wantState(state)
		p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendShutdown(nil, wire.Shutdown{})))
		if got := p.a.outbox(); len(got) > 0 {
			t.Errorf("%v: SHUTDOWN answered with %s", state, wire.Describe(got[0]))
		}
		p.a.deliver(p.a.packet(0xabcd, wire.AppendShutdownAck(nil)))
		pkt := only(t, p.a.outbox())
		h, _ := wire.ParseHeader(pkt)
		it := wire.NewChunks(pkt[wire.HeaderLen:])
		it.Next()
		if x, err := wire.ParseShutdownComplete(it.Chunk()); err != nil || !x.Reflected || h.VTag != 0xabcd {
			t.Errorf("%v: SHUTDOWN ACK answered with %s", state, wire.Describe(pkt))
		}
		p.a.wantState(state)
		if !p.a.assoc.timers.Running(timer.T1) {
			t.Errorf("%v: T1 does not run", state)
		}
		if state == CookieWait {
			r := p.z.listener.HandlePacket(p.now, p.z.to(init[0]), nil)
			p.a.deliver(p.a.to(r.Reply))
		}
	}
}

// The T bit of SHUTDOWN COMPLETE and ABORT (RFC 9260, Section 8.5.1, B and C).
func TestReflectedTag(t *testing.T) {
	for _, x := range []struct {
		name   string
		peers  bool // the peer's tag
		tbit   bool
		accept bool
	}{
		{"own tag, T clear", false, false, true},
		{"own tag, T set", false, true, false},
		{"peer's tag, T clear", true, false, false},
		{"peer's tag, T set", true, true, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, abort := range []bool{true, false} {
				p := newPair(t, 43)
				p.inState(ShutdownAckSent)
				tag := p.a.assoc.Tag()
				if x.peers {
					tag = p.a.assoc.PeerTag()
				}
				chunk := wire.AppendShutdownComplete(nil, wire.ShutdownComplete{Reflected: x.tbit})
				if abort {
					chunk = wire.AppendAbort(nil, wire.Abort{Reflected: x.tbit})
				}
				p.a.deliver(p.a.packet(tag, chunk))
				want := ShutdownAckSent
				if x.accept {
					want = Closed
				}
				p.a.wantState(want)
			}
		})
	}
}

// RFC 9260, Section 9.2: DATA in SHUTDOWN-SENT is answered at once with a
// SHUTDOWN, and with a SACK too if there are gaps.
func TestDataInShutdownSent(t *testing.T) {
	p := newPair(t, 44, &Config{NoInterleaving: true})
	p.inState(ShutdownSent)
	tsn := uint32(p.z.assoc.tsn)
	data := func(tsn uint32) []byte {
		return wire.AppendData(nil, wire.Data{TSN: tsn, Begin: true, End: true, Unordered: true, Payload: []byte("x")})
	}
	p.a.deliver(p.a.packet(p.a.assoc.Tag(), data(tsn)))
	wantChunks(t, only(t, p.a.outbox()), wire.ChunkShutdown)
	p.a.deliver(p.a.packet(p.a.assoc.Tag(), data(tsn+2)))
	wantChunks(t, only(t, p.a.outbox()), wire.ChunkShutdown, wire.ChunkSack)
	p.a.wantState(ShutdownSent)
}

// RFC 9260, Section 9.2: SHUTDOWN and SHUTDOWN ACK are repeated
// Association.Max.Retrans times, and then the peer is unreachable.
func TestShutdownGivesUp(t *testing.T) {
	for _, state := range []State{ShutdownSent, ShutdownAckSent} {
		p := newPair(t, 45, &Config{ShutdownGuard: -1})
		p.inState(state)
		n := 0
		p.net.drop = func(from *host, _ []byte) bool {
			if from == p.a {
				n++
			}
			return true
		}
		p.advance(3 * time.Hour)
		p.a.wantState(Closed)
		if p.a.assoc.Err() != ErrUnreachable || n != DefaultAssocMaxRetrans {
			t.Errorf("%v: %d repetitions, error %v", state, n, p.a.assoc.Err())
		}
	}
}

// RFC 9260, Section 9.2: any packet restarts T2 and clears its count; but not for
// ever, lest a lost SHUTDOWN is never sent again.
func TestPacketsRestartT2(t *testing.T) {
	p := newPair(t, 49)
	p.inState(ShutdownSent)
	start, n := p.now, 0
	for range 40 {
		p.now += clock.Time(900 * time.Millisecond) // RTO.Min is 1 s
		p.a.assoc.HandleTimeout(p.now)
		p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendPad(nil, 8)))
		if got := p.a.outbox(); len(got) > 0 {
			n++
			if p.now-start < maxT2Delay*clock.Time(time.Second) {
				t.Fatalf("sent %s after %v", wire.Describe(got[0]), time.Duration(p.now-start))
			}
		}
	}
	if n == 0 || p.a.assoc.shut.tries != 0 {
		t.Errorf("SHUTDOWN repeated %d times in %v, count %d", n, time.Duration(p.now-start), p.a.assoc.shut.tries)
	}
}

// T5-shutdown-guard bounds the whole shutdown, whatever the peer sends.
func TestShutdownGuard(t *testing.T) {
	p := newPair(t, 46)
	p.inState(ShutdownSent)
	for range 400 { // SHUTDOWN in reply to nothing: the peer is alive and idle
		p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("x")})))
		p.a.outbox()
		p.now += clock.Time(time.Second)
		p.a.assoc.HandleTimeout(p.now)
		if p.a.assoc.State() == Closed {
			break
		}
	}
	p.a.wantState(Closed)
	wantChunks(t, only(t, p.a.outbox()), wire.ChunkAbort)
	var e *AbortError
	if !errors.As(p.a.assoc.Err(), &e) || e.ByPeer {
		t.Errorf("ended with %v", p.a.assoc.Err())
	}
}

// RFC 9260, Section 9.2: an INIT in SHUTDOWN-ACK-SENT makes the SHUTDOWN ACK go
// again; the COOKIE ECHO of a restart brings an ERROR besides (Section 5.2.4, A).
func TestInitInShutdownAckSent(t *testing.T) {
	p := newPair(t, 47)
	p.connect()
	// A cookie with tie-tags, made before the shutdown.
	p.z.deliver(p.z.initPacket(wire.Init{Tag: 99, RWND: 5000, OutStreams: 1, InStreams: 1}))
	ack := parsedInit(t, only(t, p.z.outbox()))
	q, _ := wire.FindParam(ack.Params, wire.ParamStateCookie)
	p.a.assoc.Shutdown(p.now)
	p.z.deliver(p.z.to(only(t, p.a.outbox())))
	p.z.wantState(ShutdownAckSent)
	p.z.outbox()
	p.z.deliver(p.z.initPacket(wire.Init{Tag: 99, RWND: 5000, OutStreams: 1, InStreams: 1}))
	wantChunks(t, only(t, p.z.outbox()), wire.ChunkShutdownAck)
	p.z.deliver(p.z.packet(ack.Tag, wire.AppendCookieEcho(nil, wire.CookieEcho{Cookie: q.Value})))
	wantChunks(t, only(t, p.z.outbox()), wire.ChunkShutdownAck, wire.ChunkError)
	p.z.wantState(ShutdownAckSent)
}

// A user who ends an association for good because the peer has nothing more to
// say may be faster than whoever transmits: the SHUTDOWN ACK goes before the
// ABORT, and the end is a graceful one for the peer.
func TestAbortAfterShutdownWasHeard(t *testing.T) {
	p := newPair(t, 49)
	p.connect()
	p.a.assoc.Shutdown(p.now)
	p.z.deliver(p.z.to(only(t, p.a.outbox())))
	p.z.wantState(ShutdownAckSent)
	p.z.assoc.Abort(p.now, []byte("endpoint closed"))
	out := p.z.outbox()
	if len(out) != 2 {
		t.Fatalf("%d packets, want a SHUTDOWN ACK and an ABORT", len(out))
	}
	wantChunks(t, out[0], wire.ChunkShutdownAck)
	wantChunks(t, out[1], wire.ChunkAbort)
	for _, b := range out {
		p.a.deliver(p.a.to(b))
	}
	if e := p.a.wantEvent(EventDown); e.Err != nil {
		t.Errorf("A ended with %v", e.Err)
	}
}

// A Shutdown before the association is established takes effect then.
func TestShutdownDuringHandshake(t *testing.T) {
	p := newPair(t, 48)
	p.z.listen()
	p.a.dial(p.z)
	p.a.send(0, 5000)
	p.a.assoc.Shutdown(p.now)
	if err := p.a.assoc.Send(p.now, &tx.Message{Body: []byte("late")}); err != ErrShutdown {
		t.Errorf("Send after Shutdown: %v", err)
	}
	p.driveUntil(time.Minute, func() bool { return p.z.assoc != nil })
	p.wantClosed(time.Minute)
	p.a.flush()
	p.wantOneWay(p.a, p.z)
}

// RFC 9260, Section 6.1: "The sender is in the SHUTDOWN-PENDING state" is a reason
// to set the I bit. A delayed SACK does not delay the end then.
func TestLastDataAsksForItsSack(t *testing.T) {
	p := newPair(t, 780)
	p.connect()
	p.a.send(0, 3000)
	p.a.flush() // fills the window
	for range 20 {
		p.a.send(0, 2000)
	}
	p.a.assoc.Shutdown(p.now)
	immediate := 0
	p.net.sniff = func(from *host, pkt []byte) {
		it := wire.NewChunks(pkt[wire.HeaderLen:])
		for it.Next() {
			if d, err := wire.ParseIData(it.Chunk()); err == nil && d.Immediate {
				immediate++
			}
		}
	}
	start := p.now
	p.driveUntil(time.Minute, func() bool { return p.a.assoc.State() == Closed })
	if d := time.Duration(p.now - start); d > 150*time.Millisecond || immediate != 1 || p.a.assoc.Stats().Retransmits > 0 {
		t.Errorf("closed after %v with %d I bits, %d chunks sent again; want less than SACK.Delay, 1 and 0", d, immediate, p.a.assoc.Stats().Retransmits)
	}
	p.wantDelivered()
}

// A peer that still has data to send may have to be told that the window has opened, while
// we shut down. A SHUTDOWN does not say that, so a SACK goes along with each that answers
// data: the one with the window update may be lost.
func TestWindowOpensDuringShutdown(t *testing.T) {
	for lost := range 3 {
		p := newPair(t, 763, &Config{RecvBuffer: 20_000, HBInterval: -1})
		p.t = quiet{t}
		p.connect()
		p.z.reading = false
		for range 100 {
			p.a.send(0, 1000)
		}
		p.advance(10 * time.Second)
		p.z.assoc.Shutdown(p.now)
		p.advance(100 * time.Millisecond)
		p.a.wantState(ShutdownReceived)
		n := 0
		p.net.drop = func(from *host, pkt []byte) bool {
			if from == p.z && hasChunk(pkt, wire.ChunkSack) {
				n++
				return n <= 1+lost // the update, and SACKs behind it
			}
			return false
		}
		p.z.reading = true
		p.z.read()
		if !p.driveUntil(4*time.Minute, func() bool { return p.a.assoc.State() == Closed }) {
			t.Fatalf("%d more SACKs lost: A is %v with %d bytes to send", lost, p.a.assoc.State(), p.a.assoc.Stats().Queued)
		}
		if err := p.a.assoc.Err(); err != nil {
			t.Errorf("%d more SACKs lost: %v", lost, err)
		}
		p.a.flush()
		p.z.read()
		p.wantDelivered()
	}
}

// A packet that is late, or comes twice, when the peer has ended the association gracefully
// is answered with an ABORT. In SHUTDOWN-ACK-SENT it tells no more than the SHUTDOWN
// COMPLETE that was lost or is overtaken: all data has been acknowledged. An ABORT by the
// peer's user is one in this state, too.
func TestLatePacketDoesNotSpoilShutdown(t *testing.T) {
	for _, byUser := range []bool{false, true} {
		p := newPair(t, 764)
		p.connect()
		p.a.send(0, 5000)
		p.z.send(0, 5000)
		p.drive()
		p.wantDelivered()
		var late []byte
		p.net.drop = func(from *host, pkt []byte) bool {
			if from == p.a && hasChunk(pkt, wire.ChunkHeartbeat) {
				late = bytes.Clone(pkt)
				return true
			}
			return hasChunk(pkt, wire.ChunkShutdownComplete)
		}
		if err := p.a.assoc.RequestHeartbeat(p.now, p.z.local[0]); err != nil {
			t.Fatal(err)
		}
		p.advance(20 * time.Millisecond)
		p.z.assoc.Shutdown(p.now)
		p.advance(50 * time.Millisecond)
		p.a.wantState(ShutdownAckSent)
		p.z.wantState(Closed)
		if byUser {
			p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendAbort(nil, wire.Abort{Causes: wire.AppendUserAbort(nil, []byte("no"))})))
		} else {
			p.z.deliver(p.z.to(late))
			p.advance(20 * time.Millisecond)
		}
		p.a.wantState(Closed)
		if err := p.a.assoc.Err(); (err != nil) != byUser {
			t.Errorf("by user %v: ended with %v", byUser, err)
		}
	}
}
