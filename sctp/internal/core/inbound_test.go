package core

import (
	"errors"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/cookie"
	"github.com/weftstack/weft/sctp/internal/core/feature"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// RFC 9260, Section 3.2, Table 2.
func TestUnknownChunks(t *testing.T) {
	for _, x := range []struct {
		name            string
		typ             wire.ChunkType
		stops, reported bool
	}{{"00", 0x3e, true, false}, {"01", 0x7e, true, true}, {"10", 0xbe, false, false}, {"11", 0xfe, false, true}} {
		t.Run(x.name, func(t *testing.T) {
			p := newPair(t, 70)
			p.connect()
			p.z.outbox()
			p.z.deliver(p.z.packet(p.z.assoc.Tag(), wire.AppendChunk(nil, x.typ, 5, []byte("what?")),
				wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("beat")})))
			var want []wire.ChunkType
			if x.reported {
				want = append(want, wire.ChunkError)
			}
			if !x.stops {
				want = append(want, wire.ChunkHeartbeatAck)
			}
			got := p.z.outbox()
			if len(want) == 0 {
				if len(got) > 0 {
					t.Errorf("answered with %s", wire.Describe(got[0]))
				}
				return
			}
			wantChunks(t, only(t, got), want...)
			if x.reported {
				it := wire.NewChunks(got[0][wire.HeaderLen:])
				it.Next()
				e, _ := wire.ParseOpError(it.Chunk())
				cs := wire.NewCauses(e.Causes)
				cs.Next()
				c, err := wire.ParseUnrecognizedChunk(cs.Cause())
				if err != nil || c.Type != x.typ || string(c.Value) != "what?" {
					t.Errorf("reported %v %q, %v", c.Type, c.Value, err)
				}
			}
		})
	}
}

// What an error report echoes is bounded, and so are queued replies.
func TestRepliesAreBounded(t *testing.T) {
	p := newPair(t, 71)
	p.connect()
	p.z.outbox()
	var chunks [][]byte
	for range 200 {
		chunks = append(chunks, wire.AppendChunk(nil, 0xfe, 0, make([]byte, 200)), wire.AppendHeartbeat(nil, wire.Heartbeat{Info: make([]byte, 64)}))
	}
	p.z.deliver(p.z.packet(p.z.assoc.Tag(), chunks...))
	n := 0
	for _, pkt := range p.z.outbox() {
		n += len(pkt)
	}
	if n > maxControlReplies*(maxControlReplyBytes+wire.HeaderLen) || n > 4000 {
		t.Errorf("%d bytes in reply to %d bytes", n, 200*(204+72))
	}
	var large [][]byte
	for range 6 {
		large = append(large, wire.AppendChunk(nil, 0xfe, 0, make([]byte, 400)))
	}
	p.z.deliver(p.z.packet(p.z.assoc.Tag(), large...))
	n = 0
	for _, pkt := range p.z.outbox() {
		n += len(pkt)
	}
	if n > cookie.MaxReported+200 {
		t.Errorf("%d bytes of reports on one packet", n)
	}
	// A HEARTBEAT too large to be answered in one packet is not answered.
	p.z.deliver(p.z.packet(p.z.assoc.Tag(), wire.AppendHeartbeat(nil, wire.Heartbeat{Info: make([]byte, 3000)})))
	p.z.deliver(p.z.packet(p.z.assoc.Tag(), wire.AppendHeartbeat(nil, wire.Heartbeat{Info: make([]byte, 30000)})))
	if got := p.z.outbox(); len(got) > 0 {
		t.Errorf("answered with %d bytes", len(got[0]))
	}
}

// RFC 9260, Section 6.5.
func TestInvalidStream(t *testing.T) {
	p := newPair(t, 72, &Config{NoInterleaving: true, OutStreams: 3, InStreams: 3})
	p.connect()
	p.z.outbox()
	tsn := uint32(p.a.assoc.tsn) + 1
	p.a.send(0, 10) // not the first DATA, whose SACK is never delayed
	p.drive()
	p.z.deliver(p.z.packet(p.z.assoc.Tag(), wire.AppendData(nil, wire.Data{TSN: tsn, SID: 3, Begin: true, End: true, Payload: []byte("x")})))
	pkt := only(t, p.z.outbox())
	wantChunks(t, pkt, wire.ChunkError, wire.ChunkSack)
	it := wire.NewChunks(pkt[wire.HeaderLen:])
	it.Next()
	e, _ := wire.ParseOpError(it.Chunk())
	cs := wire.NewCauses(e.Causes)
	cs.Next()
	if sid, err := wire.ParseInvalidStream(cs.Cause()); err != nil || sid != 3 {
		t.Errorf("reported stream %d, %v", sid, err)
	}
	it.Next()
	if s, _ := wire.ParseSack(it.Chunk()); s.CumTSN != tsn {
		t.Errorf("acknowledged %d, want %d", s.CumTSN, tsn)
	}
	if p.z.assoc.Readable() {
		t.Error("the data was delivered")
	}
	// The sender is told of a stream out of range at once.
	if err := p.a.assoc.Send(p.now, &tx.Message{SID: 3, Body: []byte("x")}); err != tx.ErrStream {
		t.Errorf("Send on stream 3 of 3: %v", err)
	}
	if err := p.a.assoc.Send(p.now, &tx.Message{SID: 1}); err != tx.ErrNoUserData {
		t.Errorf("Send of nothing: %v", err)
	}
}

// wantAborted checks that Z aborted with a cause, and told A so.
func (p *pair) wantAborted(cause wire.CauseCode) {
	p.t.Helper()
	p.z.wantState(Closed)
	var e *AbortError
	if err := p.z.assoc.Err(); !errors.As(err, &e) || e.ByPeer || e.Cause != cause {
		p.t.Errorf("Z ended with %v, want cause %v", err, cause)
	}
	list := p.z.outbox()
	if len(list) == 0 {
		p.t.Fatal("no ABORT")
	}
	pkt := list[len(list)-1]
	if got := chunkTypes(pkt); len(got) != 1 || got[0] != wire.ChunkAbort {
		p.t.Fatalf("Z sent %s", wire.Describe(pkt))
	}
	p.a.deliver(p.a.to(pkt))
	p.a.wantState(Closed)
	if err := p.a.assoc.Err(); !errors.As(err, &e) || !e.ByPeer || e.Cause != cause {
		p.t.Errorf("A ended with %v, want cause %v", err, cause)
	}
	if got := p.a.outbox(); len(got) > 0 {
		p.t.Errorf("A answered the ABORT with %s", wire.Describe(got[0])) // RFC 9260, Section 9.1
	}
}

// What breaks the protocol ends the association, and nothing else does.
func TestViolations(t *testing.T) {
	frag := func(a *Assoc, tsn seq.TSN, begin, end bool) []byte {
		return wire.AppendData(nil, wire.Data{TSN: uint32(a.tsn + tsn), Begin: begin, End: end, Payload: []byte("x")})
	}
	for _, x := range []struct {
		name  string
		idata bool
		chunk func(a, z *Assoc) []byte
		cause wire.CauseCode
	}{
		{"DATA without user data", false, func(a, z *Assoc) []byte {
			return wire.AppendChunk(nil, wire.ChunkData, 3, wire.AppendData(nil, wire.Data{TSN: uint32(a.tsn), Payload: []byte("x")})[4:16])
		}, wire.CauseNoUserData},
		{"SACK of what was not sent", false, func(a, z *Assoc) []byte {
			return wire.AppendSack(nil, uint32(z.tsn+5), 1000, nil, nil)
		}, wire.CauseProtocolViolation},
		{"gap block of what was not sent", false, func(a, z *Assoc) []byte {
			return wire.AppendSack(nil, uint32(z.tsn-1), 1000, []wire.GapBlock{{Start: 5, End: 9}}, nil)
		}, wire.CauseProtocolViolation},
		{"SHUTDOWN that acknowledges what was not sent", false, func(a, z *Assoc) []byte {
			return wire.AppendShutdown(nil, wire.Shutdown{CumTSN: uint32(z.tsn + 5)})
		}, wire.CauseProtocolViolation},
		{"DATA instead of I-DATA", true, func(a, z *Assoc) []byte { return frag(a, 0, true, true) }, wire.CauseProtocolViolation},
		{"FORWARD-TSN instead of I-FORWARD-TSN", true, func(a, z *Assoc) []byte {
			return wire.AppendForwardTSN(nil, uint32(a.tsn), nil)
		}, wire.CauseProtocolViolation},
		{"I-FORWARD-TSN instead of FORWARD-TSN", false, func(a, z *Assoc) []byte {
			return wire.AppendIForwardTSN(nil, uint32(a.tsn), nil)
		}, wire.CauseProtocolViolation},
		{"FORWARD-TSN far away", false, func(a, z *Assoc) []byte {
			return wire.AppendForwardTSN(nil, uint32(a.tsn)+1<<30, nil)
		}, wire.CauseProtocolViolation},
		{"fragment without beginning", false, func(a, z *Assoc) []byte { return frag(a, 0, false, true) }, wire.CauseProtocolViolation},
		{"message begins inside another", false, func(a, z *Assoc) []byte {
			return append(frag(a, 0, true, false), frag(a, 1, true, true)...)
		}, wire.CauseProtocolViolation},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newPair(t, 73, &Config{NoInterleaving: !x.idata})
			p.connect()
			p.z.outbox()
			p.z.deliver(p.z.packet(p.z.assoc.Tag(), x.chunk(p.a.assoc, p.z.assoc)))
			p.wantAborted(x.cause)
		})
	}
}

// What is not negotiated is answered as if it were not known (RFC 3758, Section
// 3.3.2), but I-DATA is a violation to those who know it (RFC 8260, Section
// 2.2.3).
func TestChunksNotNegotiated(t *testing.T) {
	for _, x := range []struct {
		name   string
		cfg    Config
		chunk  []byte
		state  State
		answer wire.ChunkType
	}{
		{"I-DATA unknown", Config{NoInterleaving: true}, wire.AppendIData(nil, wire.Data{Payload: []byte("x")}), Established, wire.ChunkError},
		{"I-DATA known", Config{}, wire.AppendIData(nil, wire.Data{Payload: []byte("x")}), Closed, wire.ChunkAbort},
		{"FORWARD-TSN", Config{NoPartialReliability: true}, wire.AppendForwardTSN(nil, 1, nil), Established, wire.ChunkError},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newPair(t, 79, &Config{NoInterleaving: true, NoPartialReliability: true}, &x.cfg)
			p.connect()
			p.z.outbox()
			p.z.deliver(p.z.packet(p.z.assoc.Tag(), x.chunk))
			p.z.wantState(x.state)
			wantChunks(t, only(t, p.z.outbox()), x.answer)
		})
	}
}

func TestNegotiate(t *testing.T) {
	all := localFeatures(&Config{})
	for _, x := range []struct{ ours, theirs, want feature.Set }{
		{all, all, all},
		{all, feature.PartialReliability | feature.IData, feature.IData},
		{all, feature.PartialReliability, feature.PartialReliability},
		{localFeatures(&Config{NoInterleaving: true, NoReconfig: true}), all, feature.PartialReliability | feature.ECN | feature.ExtensionList},
	} {
		if got := feature.Negotiate(x.ours, x.theirs); got != x.want {
			t.Errorf("negotiate(%b, %b) = %b, want %b", x.ours, x.theirs, got, x.want)
		}
	}
}

// Malformed chunks and old ones do nothing.
func TestHarmlessChunks(t *testing.T) {
	for _, x := range []struct {
		name  string
		chunk func(a, z *Assoc) []byte
	}{
		{"old SACK", func(a, z *Assoc) []byte { return wire.AppendSack(nil, uint32(z.tsn-100), 1000, nil, nil) }},
		{"SACK with counts beyond its end", func(a, z *Assoc) []byte {
			return wire.AppendChunk(nil, wire.ChunkSack, 0, []byte{0, 0, 0, 1, 0, 0, 9, 9, 0xff, 0xff, 0xff, 0xff})
		}},
		{"old FORWARD-TSN", func(a, z *Assoc) []byte { return wire.AppendIForwardTSN(nil, uint32(a.tsn-1), nil) }},
		{"FORWARD-TSN of 5 bytes", func(a, z *Assoc) []byte { return wire.AppendChunk(nil, wire.ChunkIForwardTSN, 0, []byte{1}) }},
		{"HEARTBEAT ACK with another nonce", func(a, z *Assoc) []byte {
			return wire.AppendHeartbeatAck(nil, wire.Heartbeat{Info: make([]byte, heartbeatInfoLen)})
		}},
		{"HEARTBEAT ACK without info", func(a, z *Assoc) []byte { return wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, nil) }},
		{"ERROR without causes", func(a, z *Assoc) []byte { return wire.AppendChunk(nil, wire.ChunkError, 0, nil) }},
		{"ERROR with a cause of length 0", func(a, z *Assoc) []byte {
			return wire.AppendChunk(nil, wire.ChunkError, 0, []byte{0, 1, 0, 0})
		}},
		{"Stale Cookie", func(a, z *Assoc) []byte {
			return wire.AppendOpError(nil, wire.OpError{Causes: wire.AppendStaleCookie(nil, 5)})
		}},
		{"COOKIE ACK", func(a, z *Assoc) []byte { return wire.AppendCookieAck(nil) }},
		{"SHUTDOWN of 2 bytes", func(a, z *Assoc) []byte { return wire.AppendChunk(nil, wire.ChunkShutdown, 0, []byte{1, 2}) }},
		{"PAD", func(a, z *Assoc) []byte { return wire.AppendPad(nil, 100) }},
		{"ABORT with the T bit behind another chunk", func(a, z *Assoc) []byte {
			return append(wire.AppendCookieAck(nil), wire.AppendAbort(nil, wire.Abort{Reflected: true})...)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newPair(t, 74)
			p.connect()
			p.a.send(0, 3000)
			p.z.send(0, 3000)
			p.drive()
			p.z.deliver(p.z.packet(p.z.assoc.Tag(), x.chunk(p.a.assoc, p.z.assoc)))
			p.z.wantState(Established)
			p.a.send(0, 3000)
			p.z.send(0, 3000)
			p.drive()
			p.wantDelivered()
		})
	}
}

// A blind attacker who does not know the tag achieves nothing (RFC 9260, Section
// 8.5; compare CVE-2021-3772).
func TestWrongTag(t *testing.T) {
	p := newPair(t, 75)
	p.connect()
	p.z.outbox()
	tag := p.z.assoc.Tag() + 1
	for name, chunk := range map[string][]byte{
		"ABORT":             wire.AppendAbort(nil, wire.Abort{}),
		"ABORT, T set":      wire.AppendAbort(nil, wire.Abort{Reflected: true}),
		"SHUTDOWN":          wire.AppendShutdown(nil, wire.Shutdown{CumTSN: uint32(p.z.assoc.tsn - 1)}),
		"SHUTDOWN ACK":      wire.AppendShutdownAck(nil),
		"SHUTDOWN COMPLETE": wire.AppendShutdownComplete(nil, wire.ShutdownComplete{Reflected: true}),
		"SACK":              wire.AppendSack(nil, 12345, 0, nil, nil),
		"DATA":              wire.AppendIData(nil, wire.Data{TSN: uint32(p.a.assoc.tsn), Begin: true, End: true, Payload: []byte("x")}),
		"DATA, empty":       wire.AppendChunk(nil, wire.ChunkData, 3, make([]byte, 12)),
		"INIT ACK":          wire.AppendInitAck(nil, wire.Init{}),
		"unknown, reported": wire.AppendChunk(nil, 0xfe, 0, nil),
		"INIT with a tag":   wire.AppendInit(nil, wire.Init{Tag: 1, RWND: 1 << 20, OutStreams: 1, InStreams: 1}),
	} {
		if d := p.z.deliver(p.z.packet(tag, chunk)); d == DropNone {
			t.Errorf("%s with a wrong tag was accepted", name)
		}
		p.z.wantState(Established)
		if got := p.z.outbox(); len(got) > 0 {
			t.Errorf("%s with a wrong tag was answered with %s", name, wire.Describe(got[0]))
		}
	}
	// Nor does the right tag do with wrong ports, or from elsewhere.
	abort := p.z.packet(p.z.assoc.Tag(), wire.AppendAbort(nil, wire.Abort{}))
	abort.Data[1] ^= 1
	wire.SetChecksum(abort.Data)
	if d := p.z.assoc.HandlePacket(p.now, abort); d != DropPorts {
		t.Errorf("wrong source port: %v", d)
	}
	abort.Data[0], abort.Data[1] = 0, 0
	wire.SetChecksum(abort.Data)
	if r := HandleOOTB(nil, abort, nil); r.Drop != DropPorts {
		t.Errorf("port 0: %v", r.Drop)
	}
	sack := p.z.packet(p.z.assoc.Tag(), wire.AppendShutdownAck(nil))
	sack.Remote = addrPort("10.77.0.1:9899")
	if d := p.z.assoc.HandlePacket(p.now, sack); d != DropAddr {
		t.Errorf("wrong address: %v", d)
	}
}

// RFC 9260, Section 8.4.
func TestOutOfTheBlue(t *testing.T) {
	stale := wire.AppendOpError(nil, wire.OpError{Causes: wire.AppendStaleCookie(nil, 1)})
	none, abort, done := wire.ChunkPad, wire.ChunkAbort, wire.ChunkShutdownComplete
	for _, x := range []struct {
		name   string
		from   string
		chunks [][]byte
		want   wire.ChunkType
	}{
		{"DATA", "", [][]byte{wire.AppendData(nil, wire.Data{Payload: []byte("x")})}, abort},
		{"SACK", "", [][]byte{wire.AppendSack(nil, 1, 2, nil, nil)}, abort},
		{"DATA to a multicast source", "224.0.0.1:1", [][]byte{wire.AppendData(nil, wire.Data{Payload: []byte("x")})}, none},
		{"ABORT", "", [][]byte{wire.AppendAbort(nil, wire.Abort{})}, none},
		{"DATA and ABORT", "", [][]byte{wire.AppendData(nil, wire.Data{Payload: []byte("x")}), wire.AppendAbort(nil, wire.Abort{})}, none},
		{"SHUTDOWN ACK", "", [][]byte{wire.AppendShutdownAck(nil)}, done},
		{"SHUTDOWN COMPLETE", "", [][]byte{wire.AppendShutdownComplete(nil, wire.ShutdownComplete{})}, none},
		{"COOKIE ACK", "", [][]byte{wire.AppendCookieAck(nil)}, none},
		{"Stale Cookie", "", [][]byte{stale}, none},
		{"other ERROR", "", [][]byte{wire.AppendOpError(nil, wire.OpError{Causes: wire.AppendInvalidStream(nil, 1)})}, abort},
		{"HEARTBEAT", "", [][]byte{wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("x")})}, abort},
		{"unknown", "", [][]byte{wire.AppendChunk(nil, 0x3e, 0, nil)}, abort},
		{"truncated", "", [][]byte{{0, 3, 0, 99, 1, 2, 3, 4}}, none},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newPair(t, 76)
			p.z.listen()
			pkt := p.z.packet(0x1234, x.chunks...)
			if x.from != "" {
				pkt.Remote = addrPort(x.from)
			}
			for _, r := range []Answer{p.z.listener.HandlePacket(p.now, pkt, nil).Answer, HandleOOTB(nil, pkt, nil)} {
				if x.want == none {
					if len(r.Reply) > 0 || r.Drop == DropNone {
						t.Errorf("answered with %s", wire.Describe(r.Reply))
					}
					continue
				}
				wantChunks(t, r.Reply, x.want)
				h, _ := wire.ParseHeader(r.Reply)
				if h.VTag != 0x1234 || r.Reply[wire.HeaderLen+1]&1 != 1 { // the T bit
					t.Errorf("answered with %s", wire.Describe(r.Reply))
				}
			}
		})
	}
}

// Packets that are no SCTP packets are dropped wherever they arrive.
func TestGarbagePackets(t *testing.T) {
	p := newPair(t, 77)
	p.connect()
	good := p.z.packet(p.z.assoc.Tag(), wire.AppendHeartbeat(nil, wire.Heartbeat{Info: []byte("hello")}))
	for n := range good.Data {
		cut := &Packet{Tuple: good.Tuple, Data: good.Data[:n]}
		if d := p.z.assoc.HandlePacket(p.now, cut); d != DropShort && d != DropChecksum {
			t.Errorf("cut to %d bytes: %v", n, d)
		}
	}
	for i := range 8 * len(good.Data) {
		bad := &Packet{Tuple: good.Tuple, Data: append([]byte(nil), good.Data...)}
		bad.Data[i/8] ^= 1 << (i % 8)
		if d := p.z.assoc.HandlePacket(p.now, bad); d != DropChecksum && d != DropPorts {
			t.Errorf("bit %d flipped: %v", i, d)
		}
	}
	p.z.wantState(Established)
}

// The user's reason arrives (RFC 9260, Sections 9.1 and 3.3.10.12).
func TestUserAbort(t *testing.T) {
	p := newPair(t, 78)
	p.connect()
	b := p.a.send(0, 100_000)
	p.advance(6 * time.Millisecond)
	p.a.assoc.Abort(p.now, []byte("because"))
	p.a.wantState(Closed)
	p.a.flush()
	if b.n != 1 || b.err == nil {
		t.Errorf("message released %d times: %v", b.n, b.err)
	}
	p.advance(time.Second)
	p.z.wantState(Closed)
	var e *AbortError
	if err := p.z.assoc.Err(); !errors.As(err, &e) || e.Reason != "because" || e.Cause != wire.CauseUserAbort {
		t.Errorf("Z ended with %v", err)
	}
	p.z.wantEvent(EventDown)
	if e.Error() == "" {
		t.Error("no text")
	}
}
