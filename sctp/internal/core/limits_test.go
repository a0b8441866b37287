package core

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

// The reason of an abort is cut, the user's and the peer's.
func TestAbortReasonIsBounded(t *testing.T) {
	long := bytes.Repeat([]byte("why? "), maxAbortReason)
	p := connected(t, 1)
	p.a.assoc.Abort(p.now, long)
	pkt := only(t, p.a.outbox())
	if len(pkt) > maxAbortReason+50 {
		t.Errorf("an ABORT of %d bytes", len(pkt))
	}
	q := connected(t, 2)
	q.z.deliver(q.z.packet(q.z.assoc.Tag(), wire.AppendAbort(nil, wire.Abort{Causes: wire.AppendUserAbort(nil, long)})))
	for _, err := range []error{p.a.assoc.Err(), q.z.assoc.Err()} {
		var e *AbortError
		if !errors.As(err, &e) || e.Reason != string(long[:maxAbortReason]) {
			t.Errorf("the end is %v", err)
		}
	}
}

// However much is missing and however large packets may be, a SACK has a bounded
// number of gap blocks, and one in the midst of a batch a bounded length.
func TestSackLengthIsBounded(t *testing.T) {
	cfg := &Config{MTU: MaxPacket, RecvBuffer: 64 << 20}
	p := connected(t, 3, cfg)
	first := uint32(p.z.assoc.rx.tsns.CumTSN()) + 1
	most, early := 0, 0
	for i := range uint32(2 * maxGapBlocks) {
		pkt := p.z.packet(p.z.assoc.Tag(), wire.AppendIData(nil, wire.Data{TSN: first + 1 + 2*i, MID: i + 1,
			Begin: true, End: true, Payload: []byte("x")}))
		p.z.assoc.HandlePacket(p.now, pkt)
		if i%1000 != 0 && i != 2*maxGapBlocks-1 {
			if i%1000 == 1 { // in the midst of a batch
				p.z.assoc.earlySack()
				if b, tx, ok := p.z.assoc.PollTransmit(p.now, nil, 1); ok && tx.Segs == 1 {
					early = max(early, len(b))
				}
			}
			continue
		}
		p.z.assoc.EndBatch(p.now)
		for _, b := range p.z.outbox() {
			for it := wire.NewChunks(b[wire.HeaderLen:]); it.Next(); {
				if it.Chunk().Type == wire.ChunkSack {
					x, err := wire.ParseSack(it.Chunk())
					if err != nil {
						t.Fatal(err)
					}
					most = max(most, x.Gaps.Len())
				}
			}
		}
	}
	if most != maxGapBlocks {
		t.Errorf("up to %d gap blocks, want %d", most, maxGapBlocks)
	}
	if early > maxEarlySack || early < maxEarlySack-100 {
		t.Errorf("up to %d bytes in the midst of a batch, want %d", early, maxEarlySack)
	}
}

// A peer that always says that a request of its own is on its way is not asked for
// ever.
func TestReconfigYieldsABoundedNumberOfTimes(t *testing.T) {
	p := connected(t, 4, &Config{HBInterval: -1})
	asked := 0
	p.net.drop = func(from *host, pkt []byte) bool {
		if from == p.a && hasChunk(pkt, wire.ChunkReConfig) {
			asked++
		}
		return true
	}
	id := p.a.must(p.a.assoc.AddStreams(p.now, 1, 0))
	for answered := 0; answered < 5*reconfig.MaxRetries; {
		p.advance(10 * time.Millisecond)
		if asked == answered {
			if p.a.assoc.rc.Len() == 0 {
				break
			}
			continue
		}
		answered = asked
		p.a.ask(wire.AppendReConfigResponse(nil, wire.ReConfigResponse{RespSeq: p.a.assoc.rc.NextSeq() - 1, Result: wire.ReConfigAlreadyRunning}))
	}
	if asked != 1+reconfig.MaxRetries {
		t.Errorf("asked %d times, want %d", asked, 1+reconfig.MaxRetries)
	}
	p.a.wantDone(id, requests.ErrDenied)
}

// A caller that does not poll learns of what matters, of a bounded number of events.
func TestEventsAreBounded(t *testing.T) {
	var q eventQueue
	for i := range 3 * maxEvents {
		q.push(Event{Kind: EventPeerError})
		if i > maxEvents {
			q.push(Event{Kind: EventRestart, Tag: uint32(i)})
		}
	}
	q.push(Event{Kind: EventDown})
	var kinds []EventKind
	restarted := uint32(0)
	for e, ok := q.pop(); ok; e, ok = q.pop() {
		kinds = append(kinds, e.Kind)
		if e.Kind == EventRestart {
			restarted = e.Tag
		}
	}
	if n := len(kinds); n != maxEvents+2 || kinds[n-1] != EventDown || restarted != 3*maxEvents-1 {
		t.Errorf("%d events, the last one %v, restart %d", n, kinds[n-1], restarted)
	}
}
