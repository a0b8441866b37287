package core

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/seq"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// Data goes both ways over a bad network while both ends reset and add streams
// at random: every request has an outcome, and messages of a stream arrive in
// order, once each.
func TestReconfigRandomScripts(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		ok := t.Run(seedName(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 11))
			cfg := lossyConfig(seed)
			p := newPair(quiet{t}, uint64(seed), cfg)
			p.connect()
			p.net.loss, p.net.dup, p.net.reorder = seed%5*40, seed%4*40, seed%3*100
			p.net.jitter = time.Duration(seed%4) * 4 * time.Millisecond
			pending := map[*host]map[uint32]bool{p.a: {}, p.z: {}}
			for range 60 {
				h := p.a
				if rng.IntN(2) == 0 {
					h = p.z
				}
				out, in := h.assoc.Streams()
				for range rng.IntN(4) {
					h.sendMsg(&tx.Message{SID: uint16(rng.IntN(out)), Unordered: rng.IntN(4) == 0}, 1+rng.IntN(4000))
				}
				var sids []uint16
				for range rng.IntN(4) {
					sids = append(sids, uint16(rng.IntN(min(in, out))))
				}
				var id uint32
				var err error
				switch rng.IntN(12) {
				case 0, 1, 2:
					id, err = h.assoc.ResetStreams(p.now, sids)
				case 3, 4, 5:
					id, err = h.assoc.ResetIncoming(p.now, sids)
				case 6:
					id, err = h.assoc.ResetAssoc(p.now)
				case 7, 8:
					id, err = h.assoc.AddStreams(p.now, uint16(rng.IntN(3)), uint16(rng.IntN(3)))
				}
				if err != nil && err != requests.ErrBusy && err != ErrParams {
					t.Fatalf("%s: %v; A %v, Z %v", h.name, err, p.a.assoc.Err(), p.z.assoc.Err())
				}
				if id != 0 {
					pending[h][id] = true
				}
				p.advance(time.Duration(rng.IntN(30)) * time.Millisecond)
			}
			p.drive()
			done := func() bool {
				for h, ids := range pending {
					h.flush()
					for _, e := range h.events {
						if e.Kind == EventRequestDone {
							delete(ids, e.Request)
						}
					}
					h.events = nil
				}
				return len(pending[p.a])+len(pending[p.z])+p.a.assoc.rc.Len()+p.z.assoc.rc.Len() == 0
			}
			if !p.driveUntil(time.Hour, done) {
				t.Fatalf("requests %v of A and %v of Z have no outcome", pending[p.a], pending[p.z])
			}
			p.drive()
			p.wantDelivered()
			ao, ai := p.a.assoc.Streams()
			if zo, zi := p.z.assoc.Streams(); ao != zi || ai != zo {
				t.Errorf("A has %d and %d streams, Z %d and %d", ao, ai, zo, zi)
			}
			for _, h := range []*host{p.a, p.z} {
				streams := private(h.assoc.tx.q, "streams")
				for sid := range streams.Len() {
					if streams.Index(sid).FieldByName("paused").Bool() || private(h.assoc.tx.q, "held").Bool() {
						t.Fatalf("%s: stream %d is still paused", h.name, sid)
					}
				}
			}
		})
		if !ok {
			return
		}
	}
}

// Partially reliable messages are abandoned around resets.
func TestReconfigWithAbandonedMessages(t *testing.T) {
	for seed := range 60 {
		ok := t.Run(seedName(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 12))
			p := newPair(quiet{t}, uint64(seed), lossyConfig(seed))
			p.connect()
			p.net.loss = 150
			for range 40 {
				for range rng.IntN(5) {
					b := &body{h: p.a}
					m := &tx.Message{SID: uint16(rng.IntN(3)), Body: make([]byte, 1+rng.IntN(6000)), Owner: b, Force: true}
					if rng.IntN(2) == 0 {
						m.Lifetime = clock.Time(1+rng.IntN(40)) * clock.Time(time.Millisecond)
					}
					if err := p.a.assoc.Send(p.now, m); err != nil {
						t.Fatal(err, p.a.assoc.Err(), p.z.assoc.Err())
					}
				}
				switch rng.IntN(5) {
				case 0:
					p.a.assoc.ResetStreams(p.now, []uint16{uint16(rng.IntN(3))})
				case 1:
					p.a.assoc.ResetAssoc(p.now)
				case 2:
					p.z.assoc.ResetIncoming(p.now, nil)
				}
				p.advance(time.Duration(rng.IntN(50)) * time.Millisecond)
			}
			p.net.loss = 0
			p.drive()
			p.advance(2 * time.Minute)
			p.a.send(1, 10)
			p.drive()
			n := len(p.z.got)
			p.a.send(0, 100)
			p.drive()
			if p.a.assoc.Err() != nil || p.z.assoc.Err() != nil || len(p.z.got) != n+1 {
				t.Fatalf("A: %v, Z: %v; %d messages", p.a.assoc.Err(), p.z.assoc.Err(), len(p.z.got)-n)
			}
		})
		if !ok {
			return
		}
	}
}

// A peer that sends RE-CONFIG chunks at random, many with the right sequence
// number, makes nothing grow and breaks nothing that is ours.
func TestReconfigHostilePeer(t *testing.T) {
	for seed := range 100 {
		ok := t.Run(seedName(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 13))
			p := newPair(quiet{t}, uint64(seed))
			p.connect()
			for range 100 {
				var params []byte
				for range 1 + rng.IntN(2) {
					num := p.z.nextSeq() + uint32(rng.IntN(3))
					tsn := uint32(p.z.assoc.rx.tsns.CumTSN()) + uint32(rng.IntN(2000)) - 1000
					var sids []uint16
					for range rng.IntN(300) {
						sids = append(sids, uint16(rng.IntN(11)))
					}
					switch rng.IntN(6) {
					case 0:
						params = wire.AppendOutgoingReset(params, wire.OutgoingReset{ReqSeq: num, RespSeq: num, LastTSN: tsn}, sids)
					case 1:
						params = wire.AppendIncomingReset(params, num, sids)
					case 2:
						params = wire.AppendTSNReset(params, num)
					case 3:
						params = wire.AppendAddOutgoing(params, wire.AddStreams{ReqSeq: num, Streams: uint16(rng.Uint32())})
					case 4:
						params = wire.AppendAddIncoming(params, wire.AddStreams{ReqSeq: num, Streams: uint16(rng.Uint32())})
					case 5:
						params = wire.AppendReConfigResponse(params, wire.ReConfigResponse{RespSeq: p.z.assoc.rc.NextSeq() - uint32(rng.IntN(3)),
							Result: wire.ReConfigResult(rng.IntN(8)), HasTSNs: rng.IntN(2) == 0, SenderNextTSN: tsn, ReceiverNextTSN: rng.Uint32()})
					}
				}
				if rng.IntN(10) == 0 {
					params[rng.IntN(len(params))] ^= byte(1 << rng.IntN(8))
				}
				n := 0
				for _, x := range reconfigs(p.z.ask(params)...) {
					n += len(x.Raw)
				}
				if n > 1000+len(params) {
					t.Fatalf("%d bytes in answer to %d", n, len(params))
				}
				if rng.IntN(4) == 0 {
					p.z.send(uint16(rng.IntN(10)), 1+rng.IntN(3000))
				}
				switch rng.IntN(20) {
				case 0:
					p.z.assoc.ResetStreams(p.now, []uint16{1})
				case 1:
					p.z.assoc.AddStreams(p.now, 1, 1)
				}
				if q := p.z.assoc.rc.Len(); q > reconfig.MaxRequests+1 {
					t.Fatalf("%d requests are queued", q)
				}
				if _, in := p.z.assoc.Streams(); in > DefaultInStreams {
					t.Fatalf("%d incoming streams", in)
				}
				if p.z.assoc.State() != Established {
					t.Fatalf("%v: %v", p.z.assoc.State(), p.z.assoc.Err())
				}
				p.checkAssoc(p.z.assoc)
			}
		})
		if !ok {
			return
		}
	}
}

// What is malformed is ignored (RFC 6525, Section 3.1).
func TestReconfigMalformed(t *testing.T) {
	p := connected(t, 240)
	num := p.z.nextSeq()
	good := wire.AppendAddOutgoing(nil, wire.AddStreams{ReqSeq: num, Streams: 1})
	short := append([]byte(nil), good...)
	binary.BigEndian.PutUint16(short[2:], 11)
	for _, params := range [][]byte{
		short, good[:11],
		wire.AppendParam(nil, wire.ParamIPv4, []byte{1, 2, 3, 4}),
		wire.AppendParam(nil, wire.ParamOutgoingReset, make([]byte, 13)),
		wire.AppendParam(nil, wire.ParamReConfigResponse, make([]byte, 9)),
	} {
		if out := p.z.ask(params); len(out) != 0 {
			t.Errorf("% x was answered", params)
		}
	}
	// What is well-formed and no allowed combination is a protocol violation.
	for _, params := range [][]byte{append(append([]byte(nil), good...), wire.AppendTSNReset(nil, num+1)...),
		append(append(append([]byte(nil), good...), good...), good...)} {
		if out := p.z.ask(params); len(out) != 1 || !hasChunk(out[0], wire.ChunkError) || hasChunk(out[0], wire.ChunkReConfig) {
			t.Errorf("% x was answered with %d packets", params, len(out))
		}
	}
	if p.z.nextSeq() != num {
		t.Error("a sequence number was used up")
	}
	// A reset that would wait for TSNs beyond any window.
	far := wire.OutgoingReset{ReqSeq: num, LastTSN: uint32(p.z.assoc.rx.tsns.CumTSN()) + seq.MaxWindow + 1}
	if r := response(t, p.z.ask(wire.AppendOutgoingReset(nil, far, nil))...); r.Result != wire.ReConfigDenied {
		t.Errorf("far away: %v", r.Result)
	}
	if r := response(t, p.z.ask(wire.AppendOutgoingReset(nil, wire.OutgoingReset{ReqSeq: num + 1}, []uint16{3, 10}))...); r.Result != wire.ReConfigWrongSSN {
		t.Errorf("no such stream: %v", r.Result)
	}
}
