package core

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/pmtu"
	"github.com/weftstack/weft/sctp/internal/core/reasm"
	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// wantDone lets time pass until request id is done, and checks its outcome.
func (h *host) wantDone(id uint32, want error) {
	h.p.t.Helper()
	var got *Event
	if !h.p.driveUntil(10*time.Minute, func() bool {
		h.flush()
		for i, e := range h.events {
			if e.Kind == EventRequestDone && e.Request == id {
				got = &h.events[i]
			}
		}
		return got != nil
	}) {
		h.p.t.Fatalf("%s: request %d is not done after ten minutes", h.name, id)
	}
	if !errors.Is(got.Err, want) {
		h.p.t.Fatalf("%s: request %d: %v, want %v", h.name, id, got.Err, want)
	}
}

// must fails the test on the error of a request.
func (h *host) must(id uint32, err error) uint32 {
	h.p.t.Helper()
	if err != nil {
		h.p.t.Fatalf("%s: request: %v", h.name, err)
	}
	return id
}

// reconfigs returns the parameters of the RE-CONFIG chunks in packets.
func reconfigs(pkts ...[]byte) (list []wire.Param) {
	for _, pkt := range pkts {
		it := wire.NewChunks(pkt[wire.HeaderLen:])
		for it.Next() {
			if x, err := wire.ParseReConfig(it.Chunk()); err == nil {
				for ps := wire.NewParams(x.Params); ps.Next(); {
					list = append(list, ps.Param())
				}
			}
		}
	}
	return list
}

// response returns the only Re-configuration Response in packets.
func response(t testing.TB, pkts ...[]byte) wire.ReConfigResponse {
	t.Helper()
	list := reconfigs(pkts...)
	if len(list) != 1 {
		t.Fatalf("%d RE-CONFIG parameters, want one response", len(list))
	}
	x, err := wire.ParseReConfigResponse(list[0])
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// ask makes a RE-CONFIG chunk with the given parameters arrive at h.
func (h *host) ask(params ...[]byte) [][]byte {
	h.p.t.Helper()
	h.outbox()
	h.deliver(h.packet(h.assoc.Tag(), wire.AppendReConfig(nil, wire.ReConfig{Params: slices.Concat(params...)})))
	return h.outbox()
}

// nextSeq is the request sequence number h expects.
func (h *host) nextSeq() uint32 { return h.assoc.rc.PeerSeq() }

func connected(t testing.TB, seed uint64, cfg ...*Config) *pair {
	t.Helper()
	p := newPair(t, seed, cfg...)
	p.connect()
	p.drive()
	return p
}

// numbers returns the message numbers that h's next message on a stream will
// have, by sending one.
func (h *host) numberOf(sid uint16) uint32 {
	h.p.t.Helper()
	peer := h.p.z
	if h == peer {
		peer = h.p.a
	}
	h.p.drive()
	peer.reading = false
	h.send(sid, 4)
	h.p.drive0()
	defer func() { peer.reading = true; h.p.drive() }()
	var buf [8]byte
	var info reasm.RecvInfo
	n, ok := peer.assoc.Read(buf[:], &info)
	if !ok || info.SID != sid {
		h.p.t.Fatalf("nothing of stream %d arrived", sid)
	}
	l := ledgerOf(peer.in, sid)
	l.ordered = append(l.ordered, slices.Clone(buf[:n]))
	if peer.assoc.Interleaving() {
		return uint32(info.MID)
	}
	return uint32(info.SSN)
}

// drive0 is drive that does not read.
func (p *pair) drive0() {
	p.t.Helper()
	if !p.driveUntil(time.Hour, p.idle) {
		p.t.Fatal("not everything was delivered within an hour")
	}
}

// RFC 6525, Section 5.2.2, E3: "If specific stream numbers are listed, then only
// these specific streams MUST be reset to 0, and all other non-listed SSNs
// remain unchanged."
func TestResetOutgoingStreams(t *testing.T) {
	for _, cfg := range []*Config{{}, {NoInterleaving: true}} {
		p := connected(t, 200, cfg)
		for range 3 {
			p.a.send(1, 100)
			p.a.send(2, 100)
		}
		id := p.a.must(p.a.assoc.ResetStreams(p.now, []uint16{2, 2}))
		p.a.send(2, 100) // waits for the reset
		p.a.wantDone(id, nil)
		p.drive()
		if e := p.z.wantEvent(EventStreamsReset); !slices.Equal(e.Streams, []uint16{2}) {
			t.Errorf("streams reset at the peer: %v", e.Streams)
		}
		if e := p.a.wantEvent(EventOutStreamsReset); !slices.Equal(e.Streams, []uint16{2}) || e.Err != nil {
			t.Errorf("outgoing streams reset: %+v", e)
		}
		if n := p.a.numberOf(1); n != 3 {
			t.Errorf("next message on stream 1 has number %d, want 3", n)
		}
		if n := p.a.numberOf(2); n != 1 {
			t.Errorf("next message on stream 2 has number %d, want 1", n)
		}
		p.wantDelivered()
	}
}

// RFC 6525, Section 5.1.2, A1: "The sender MUST stop assigning new SSNs to new
// user data provided by the upper layer for the affected streams and queue it."
// What was queued before is still sent.
func TestMessagesAroundAReset(t *testing.T) {
	p := connected(t, 202, &Config{NoInterleaving: true})
	var ssns []uint16
	seen := map[uint32]bool{}
	p.net.drop = func(from *host, pkt []byte) bool {
		it := wire.NewChunks(pkt[wire.HeaderLen:])
		for it.Next() {
			if d, err := wire.ParseData(it.Chunk()); err == nil && d.Begin && !seen[d.TSN] {
				seen[d.TSN] = true
				ssns = append(ssns, d.SSN)
			}
		}
		return false
	}
	p.a.send(0, 5000)
	p.a.send(0, 100)
	id := p.a.must(p.a.assoc.ResetStreams(p.now, []uint16{0}))
	p.a.send(0, 5000)
	p.a.send(0, 100)
	id2 := p.a.must(p.a.assoc.ResetStreams(p.now, []uint16{0}))
	p.a.send(0, 100)
	p.a.wantDone(id, nil)
	p.a.wantDone(id2, nil)
	p.drive()
	if want := []uint16{0, 1, 0, 1, 0}; !slices.Equal(ssns, want) {
		t.Errorf("SSNs %v, want %v", ssns, want)
	}
	p.wantDelivered()
}

// RFC 6525, Section 5.2.2, E2: "If the endpoint enters 'deferred reset
// processing', it MUST put a Re-configuration Response Parameter into a
// RE-CONFIG chunk indicating 'In progress'"; E4, E5: "Any queued TSNs (queued at
// step E2) MUST now be released and processed normally", and success is told.
func TestDeferredReset(t *testing.T) {
	p := connected(t, 203, &Config{NoInterleaving: true})
	z := p.z.assoc
	tsn := uint32(z.rx.tsns.CumTSN())
	data := func(n, sid, ssn uint16, s string) []byte {
		return wire.AppendData(nil, wire.Data{TSN: tsn + uint32(n), SID: sid, SSN: ssn, Begin: true, End: true, Payload: []byte(s)})
	}
	p.z.deliver(p.z.packet(z.Tag(), data(2, 1, 0, "one")))
	out := p.z.ask(wire.AppendOutgoingReset(nil, wire.OutgoingReset{ReqSeq: p.z.nextSeq(), LastTSN: tsn + 3}, []uint16{1}))
	if r := response(t, out...); r.Result != wire.ReConfigInProgress {
		t.Fatalf("result %v, want in progress", r.Result)
	}
	if !hasChunk(out[0], wire.ChunkSack) {
		t.Error("no SACK with the response") // Section 5.2.1: SHOULD
	}
	p.z.deliver(p.z.packet(z.Tag(), data(4, 1, 0, "after")))
	p.z.deliver(p.z.packet(z.Tag(), data(3, 1, 1, "two")))
	if len(p.z.got) != 2 {
		t.Fatalf("got %d messages before the gap is filled, want 2", len(p.z.got))
	}
	p.z.wantNoEvent(EventStreamsReset)
	p.z.outbox()
	p.z.deliver(p.z.packet(z.Tag(), data(1, 0, 0, "gap")))
	if r := response(t, p.z.outbox()...); r.Result != wire.ReConfigPerformed {
		t.Errorf("result %v, want performed", r.Result)
	}
	p.z.wantEvent(EventStreamsReset)
	p.z.read()
	if n := len(p.z.got); n != 4 || string(p.z.got[3].data) != "after" {
		t.Errorf("got %d messages", n)
	}
}

// exchanges are requests, each with what must hold after it.
var exchanges = []struct {
	name  string
	ask   func(p *pair) (uint32, error)
	check func(t *testing.T, p *pair)
}{
	{"outgoing", func(p *pair) (uint32, error) { return p.a.assoc.ResetStreams(p.now, []uint16{1, 3}) },
		func(t *testing.T, p *pair) { p.wantNumbers(p.a, 2, 0, 2, 0); p.wantNumbers(p.z, 2, 2, 2, 2) }},
	{"all outgoing", func(p *pair) (uint32, error) { return p.a.assoc.ResetStreams(p.now, nil) },
		func(t *testing.T, p *pair) { p.wantNumbers(p.a, 0, 0, 0, 0); p.wantNumbers(p.z, 2, 2, 2, 2) }},
	{"incoming", func(p *pair) (uint32, error) { return p.a.assoc.ResetIncoming(p.now, []uint16{0, 2}) },
		func(t *testing.T, p *pair) { p.wantNumbers(p.a, 2, 2, 2, 2); p.wantNumbers(p.z, 0, 2, 0, 2) }},
	{"all incoming", func(p *pair) (uint32, error) { return p.a.assoc.ResetIncoming(p.now, nil) },
		func(t *testing.T, p *pair) { p.wantNumbers(p.a, 2, 2, 2, 2); p.wantNumbers(p.z, 0, 0, 0, 0) }},
	{"association", func(p *pair) (uint32, error) { return p.a.assoc.ResetAssoc(p.now) },
		func(t *testing.T, p *pair) { p.wantNumbers(p.a, 0, 0, 0, 0); p.wantNumbers(p.z, 0, 0, 0, 0) }},
	{"add", func(p *pair) (uint32, error) { return p.a.assoc.AddStreams(p.now, 3, 5) },
		func(t *testing.T, p *pair) {
			for h, want := range map[*host][2]int{p.a: {13, 15}, p.z: {15, 13}} {
				if out, in := h.assoc.Streams(); out != want[0] || in != want[1] {
					t.Errorf("%s has %d and %d streams, want %v", h.name, out, in, want)
				}
			}
			p.a.send(12, 100)
			p.z.send(14, 100)
			p.wantNumbers(p.a, 2, 2, 2, 2)
		}},
}

// wantNumbers checks the numbers of the next messages of h, and that both ends
// agree by sending them.
func (p *pair) wantNumbers(h *host, want ...uint32) {
	p.t.Helper()
	p.drive()
	for sid, n := range want {
		if got := h.numberOf(uint16(sid)); got != n {
			p.t.Errorf("%s: next message of stream %d has number %d, want %d", h.name, sid, got, n)
		}
	}
}

// Every request is carried out once, whichever packets of its exchange are lost
// or come twice.
func TestReconfigLosesEveryPacket(t *testing.T) {
	for _, x := range exchanges {
		for lost := -1; lost < 8; lost++ {
			for _, again := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/lost=%d/again=%v", x.name, lost, again), func(t *testing.T) {
					p := connected(t, uint64(lost+300), &Config{RTOInitial: 300 * time.Millisecond, RTOMin: 100 * time.Millisecond})
					for _, h := range []*host{p.a, p.z} {
						for sid := range uint16(4) {
							h.send(sid, 1+100*int(sid))
							h.send(sid, 200)
						}
					}
					p.drive()
					p.lose(lost, again, wire.ChunkReConfig)
					id := p.a.must(x.ask(p))
					p.a.wantDone(id, nil)
					p.advance(2 * time.Second)
					x.check(t, p)
					p.drive()
					p.wantDelivered()
					if q := p.a.assoc.rc.Len() + p.z.assoc.rc.Len(); q != 0 {
						t.Errorf("%d requests are left", q)
					}
				})
			}
		}
	}
}

// RFC 6525, Section 5.2.1: a retransmission is answered with "the same RE-CONFIG
// chunk …, as it was earlier", and changes nothing. Other sequence numbers are
// refused.
func TestReconfigReplay(t *testing.T) {
	p := connected(t, 204)
	seq := p.z.nextSeq()
	req := wire.AppendAddOutgoing(nil, wire.AddStreams{ReqSeq: seq, Streams: 2})
	for range 3 {
		if r := response(t, p.z.ask(req)...); r.Result != wire.ReConfigPerformed || r.RespSeq != seq {
			t.Fatalf("response %+v", r)
		}
		if _, in := p.z.assoc.Streams(); in != 12 {
			t.Fatalf("%d incoming streams, want 12", in)
		}
	}
	for _, bad := range []uint32{seq - 1, seq + 2, seq + 1<<31} {
		if r := response(t, p.z.ask(wire.AppendTSNReset(nil, bad))...); r.Result != wire.ReConfigBadSequence {
			t.Errorf("sequence number %d: %v", int32(bad-seq), r.Result)
		}
	}
	// New requests make the old one stale.
	for i := range uint32(reconfig.MaxAnswers) {
		p.z.ask(wire.AppendAddOutgoing(nil, wire.AddStreams{ReqSeq: seq + 1 + i, Streams: 1}))
	}
	seq += reconfig.MaxAnswers - 1
	if r := response(t, p.z.ask(req)...); r.Result != wire.ReConfigBadSequence {
		t.Errorf("stale request: %v", r.Result)
	}
	// Two requests of one chunk are answered by one chunk, again and again.
	two := [][]byte{wire.AppendAddOutgoing(nil, wire.AddStreams{ReqSeq: seq + 2, Streams: 1}),
		wire.AppendAddIncoming(nil, wire.AddStreams{ReqSeq: seq + 3, Streams: 0})}
	for range 2 {
		list := reconfigs(p.z.ask(two...)...)
		if len(list) != 2 {
			t.Fatalf("%d responses, want 2", len(list))
		}
		for i, want := range []wire.ReConfigResult{wire.ReConfigPerformed, wire.ReConfigDenied} {
			if r, _ := wire.ParseReConfigResponse(list[i]); r.Result != want || r.RespSeq != seq+2+uint32(i) {
				t.Errorf("response %d: %+v", i, r)
			}
		}
	}
	if _, in := p.z.assoc.Streams(); in != 13+reconfig.MaxAnswers {
		t.Errorf("%d incoming streams", in)
	}
}

// Both ends ask for the same at the same time.
func TestReconfigCollisions(t *testing.T) {
	for i, x := range exchanges {
		t.Run(x.name, func(t *testing.T) {
			p := connected(t, uint64(220+i))
			for sid := range uint16(4) {
				p.a.send(sid, 100)
				p.z.send(sid, 100)
			}
			p.drive()
			ida := p.a.must(x.ask(p))
			p.a, p.z = p.z, p.a
			idz := p.a.must(x.ask(p))
			p.a, p.z = p.z, p.a
			p.a.wantDone(ida, nil)
			p.z.wantDone(idz, nil)
			p.a.send(1, 100)
			p.z.send(1, 100)
			p.drive()
			p.wantDelivered()
		})
	}
}

// The longest request goes into the smallest packet.
func TestReconfigFitsTheSmallestPacket(t *testing.T) {
	p := connected(t, 231, &Config{OutStreams: 500, MTU: pmtu.MinMTU})
	sids := make([]uint16, reconfig.MaxResetStreams)
	for i := range sids {
		sids[i] = uint16(i)
	}
	p.a.wantDone(p.a.must(p.a.assoc.ResetStreams(p.now, sids)), nil)
}

// RFC 6525, Section 5.1.1: the sender MUST "increment the appropriate error
// counts … possibly destroying the association"; the expiry after "in progress"
// does not count (Section 5.2.7, H2), but those that follow without an answer do.
func TestReconfigTimeouts(t *testing.T) {
	cfg := &Config{RTOMin: 100 * time.Millisecond, HBInterval: -1, AssocMaxRetrans: 4}
	p := connected(t, 232, cfg)
	id := p.a.must(p.a.assoc.AddStreams(p.now, 1, 0))
	p.net.drop = func(from *host, pkt []byte) bool { return true }
	p.a.wantDone(id, ErrUnreachable)
	p.a.wantState(Closed)

	p = connected(t, 233, cfg)
	p.a.must(p.a.assoc.AddStreams(p.now, 1, 0))
	seq := p.a.assoc.rc.NextSeq() - 1
	p.a.outbox()
	p.net.drop = func(from *host, pkt []byte) bool { return true }
	for range 20 {
		p.a.ask(wire.AppendReConfigResponse(nil, wire.ReConfigResponse{RespSeq: seq, Result: wire.ReConfigInProgress}))
		sent := len(p.a.sent)
		p.advance(150 * time.Millisecond)
		if n := len(p.a.sent) - sent; n != 1 {
			t.Fatalf("the request was sent again %d times, want once", n)
		}
	}
	p.a.wantState(Established)
	p.advance(time.Minute)
	p.a.wantState(Closed)
}

// A restart of the peer ends what was asked of it.
func TestReconfigAndRestart(t *testing.T) {
	p := connected(t, 234)
	p.net.drop = func(from *host, pkt []byte) bool { return hasChunk(pkt, wire.ChunkReConfig) }
	id := p.z.must(p.z.assoc.ResetStreams(p.now, nil))
	p.z.send(0, 10)
	p.advance(100 * time.Millisecond)
	p.net.drop = nil
	p.a.assoc = nil
	p.a.dial(p.z)
	p.z.wantDone(id, tx.ErrRestart)
	p.advance(time.Second)
	p.z.wantDone(p.z.must(p.z.assoc.ResetStreams(p.now, nil)), nil)
	p.a.wantDone(p.a.must(p.a.assoc.ResetStreams(p.now, nil)), nil)
}

// A shutdown waits for data behind a reset.
func TestResetThenShutdown(t *testing.T) {
	p := connected(t, 235)
	p.a.send(0, 1000)
	p.a.must(p.a.assoc.ResetStreams(p.now, []uint16{0}))
	p.a.send(0, 1000)
	p.a.assoc.Shutdown(p.now)
	p.advance(10 * time.Second)
	p.a.wantState(Closed)
	if p.a.assoc.Err() != nil {
		t.Error(p.a.assoc.Err())
	}
	p.wantDelivered()
}
