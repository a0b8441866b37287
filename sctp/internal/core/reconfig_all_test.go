package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/wire"
)

// "If no stream numbers are listed in the parameter, then all incoming streams
// MUST be reset to 0".
func TestResetAllOutgoingStreams(t *testing.T) {
	p := connected(t, 201)
	for sid := range uint16(5) {
		p.a.send(sid, 100)
	}
	id := p.a.must(p.a.assoc.ResetStreams(p.now, nil))
	p.a.wantDone(id, nil)
	if e := p.z.wantEvent(EventStreamsReset); len(e.Streams) != 0 {
		t.Errorf("streams reset: %v, want all", e.Streams)
	}
	for sid := range uint16(6) {
		if n := p.a.numberOf(sid); n != 0 {
			t.Errorf("stream %d continues with %d", sid, n)
		}
	}
	p.wantDelivered()
}

// RFC 6525, Section 5.2.4: G1, the TSN to use next is 2^31 beyond; G2, ours go
// on; and what comes late from before the reset does no harm.
func TestResetAssociation(t *testing.T) {
	p := connected(t, 210, &Config{NoInterleaving: true})
	for range 20 {
		p.a.send(3, 500)
		p.z.send(4, 500)
	}
	var inFlight []flying
	p.net.drop = func(from *host, pkt []byte) bool { return false }
	before, zBefore := p.a.assoc.tx.sb.NextTSN(), p.z.assoc.tx.sb.NextTSN()
	p.a.flush()
	p.z.flush()
	inFlight = append(inFlight, p.wire...)
	id := p.a.must(p.a.assoc.ResetAssoc(p.now))
	p.a.send(3, 500)
	p.a.wantDone(id, nil)
	sent := p.a.assoc.tx.sb.NextTSN()
	if d := sent.Sub(before); d > -1<<30 {
		t.Errorf("TSNs moved by %d, want about 2^31", d)
	}
	if d := p.z.assoc.tx.sb.NextTSN().Sub(zBefore); d < 0 || d > 100 {
		t.Errorf("the peer's TSNs moved by %d", d)
	}
	for _, h := range []*host{p.a, p.z} {
		h.wantEvent(EventStreamsReset)
		h.wantEvent(EventOutStreamsReset)
	}
	for _, f := range inFlight {
		f.to.deliver(&f.p)
	}
	p.z.deliver(p.z.packet(p.z.assoc.Tag(), wire.AppendForwardTSN(nil, uint32(before), nil)))
	p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendSack(nil, uint32(before), 5000, nil, nil)))
	p.a.send(3, 500)
	p.drive()
	p.wantDelivered()
	p.a.wantState(Established)
	p.z.wantState(Established)
}

// RFC 6525, Section 5.1.4: "Only one SSN/TSN Reset Request SHOULD be sent within
// 30 seconds".
func TestResetAssociationWaits(t *testing.T) {
	p := connected(t, 211)
	p.a.wantDone(p.a.must(p.a.assoc.ResetAssoc(p.now)), nil)
	at := p.now
	p.a.wantDone(p.a.must(p.a.assoc.ResetAssoc(p.now)), nil)
	if d := p.now - at; d < reconfig.MSL-clock.Time(time.Second) || d > reconfig.MSL+clock.Time(time.Second) {
		t.Errorf("the second reset came after %v", time.Duration(d))
	}
	p.a.send(0, 10)
	p.drive()
	p.wantDelivered()
}

// The answer to an SSN/TSN reset waits until the answering end has sent what it
// began, so that nothing is lost.
func TestResetAssociationLosesNothing(t *testing.T) {
	p := connected(t, 212)
	for range 30 {
		p.a.send(1, 3000)
		p.z.send(2, 3000)
	}
	p.a.flush()
	p.z.flush()
	p.net.loss = 200
	id := p.a.must(p.a.assoc.ResetAssoc(p.now))
	p.a.send(1, 3000)
	p.z.send(2, 3000)
	p.a.wantDone(id, nil)
	p.drive()
	p.wantDelivered()
}
