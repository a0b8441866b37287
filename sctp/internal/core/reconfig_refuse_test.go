package core

import (
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/reconfig"
	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/internal/core/tx"
	"github.com/weftstack/weft/sctp/wire"
)

// RFC 6525, Sections 5.1.2, A4, and 5.2.3: the answer to an Incoming SSN Reset
// Request is an outgoing one with its number; "Nothing to do" if the streams are
// fresh or being reset; what is out of range is refused.
func TestIncomingResetAnswers(t *testing.T) {
	p := connected(t, 205)
	seq := p.z.nextSeq()
	if r := response(t, p.z.ask(wire.AppendIncomingReset(nil, seq, []uint16{1}))...); r.Result != wire.ReConfigNothingToDo {
		t.Errorf("fresh stream: %v", r.Result)
	}
	if r := response(t, p.z.ask(wire.AppendIncomingReset(nil, seq+1, []uint16{1, 99}))...); r.Result != wire.ReConfigWrongSSN {
		t.Errorf("stream 99: %v", r.Result)
	}
	p.z.send(1, 100)
	p.z.send(2, 100)
	p.drive()
	req := wire.AppendIncomingReset(nil, seq+2, []uint16{1})
	for range 2 { // and the replay
		list := reconfigs(p.z.ask(req)...)
		if len(list) != 1 {
			t.Fatalf("%d parameters", len(list))
		}
		x, err := wire.ParseOutgoingReset(list[0])
		if err != nil || x.RespSeq != seq+2 || x.Streams.Len() != 1 || x.Streams.At(0) != 1 {
			t.Fatalf("answer %+v, %v", x, err)
		}
		if want := uint32(p.z.assoc.tx.sb.NextTSN() - 1); x.LastTSN != want {
			t.Errorf("last assigned TSN %d, want %d", x.LastTSN, want)
		}
	}
	if r := response(t, p.z.ask(wire.AppendIncomingReset(nil, seq+3, []uint16{1}))...); r.Result != wire.ReConfigNothingToDo {
		t.Errorf("stream being reset: %v", r.Result)
	}
	// Another stream has to wait for that; a third request finds the place taken.
	if r := response(t, p.z.ask(wire.AppendIncomingReset(nil, seq+4, []uint16{1, 2}))...); r.Result != wire.ReConfigAlreadyRunning {
		t.Errorf("while another answer is outstanding: %v", r.Result)
	}
}

// RFC 6525, Section 5.2.1: an endpoint that does not wish to process a request
// "MUST send a corresponding response parameter"; 5.2.5 and 5.2.6: limits.
func TestReconfigDenied(t *testing.T) {
	deny := &Config{DenyReconfig: reconfig.Streams | reconfig.TSNs | reconfig.Add}
	p := connected(t, 206, &Config{}, deny)
	p.a.send(1, 10)
	p.z.send(1, 10)
	p.drive()
	for _, f := range []func() (uint32, error){
		func() (uint32, error) { return p.a.assoc.ResetStreams(p.now, []uint16{1}) },
		func() (uint32, error) { return p.a.assoc.ResetIncoming(p.now, []uint16{1}) },
		func() (uint32, error) { return p.a.assoc.ResetAssoc(p.now) },
		func() (uint32, error) { return p.a.assoc.AddStreams(p.now, 1, 0) },
		func() (uint32, error) { return p.a.assoc.AddStreams(p.now, 0, 1) },
	} {
		id, err := f()
		p.a.wantDone(p.a.must(id, err), requests.ErrDenied)
	}
	p.wantNumbers(p.a, 0, 1) // H3: nothing was reset, and the stream goes on
	p.wantDelivered()

	p = connected(t, 207, &Config{InStreams: 12}, &Config{InStreams: 12, MaxOutStreams: 11})
	if _, err := p.a.assoc.AddStreams(p.now, 0, 3); err != requests.ErrTooMany {
		t.Errorf("more incoming streams than we allow: %v", err)
	}
	if _, err := p.a.assoc.AddStreams(p.now, 0, 0); err != ErrParams {
		t.Errorf("no streams: %v", err)
	}
	p.a.wantDone(p.a.must(p.a.assoc.AddStreams(p.now, 3, 0)), requests.ErrDenied)
	p.a.wantDone(p.a.must(p.a.assoc.AddStreams(p.now, 0, 2)), requests.ErrDenied)
	p.a.wantDone(p.a.must(p.a.assoc.AddStreams(p.now, 2, 1)), nil)
}

// RFC 6525, Section 5.1.1: without RE-CONFIG in the peer's list, "the sender
// MUST NOT send any re-configuration request to the peer".
func TestReconfigNotNegotiated(t *testing.T) {
	for _, cfg := range [][]*Config{{{NoReconfig: true}, {}}, {{}, {NoReconfig: true}}} {
		p := connected(t, 208, cfg...)
		for _, h := range []*host{p.a, p.z} {
			if _, err := h.assoc.ResetStreams(p.now, nil); err != requests.ErrNotSupported {
				t.Errorf("%s: %v", h.name, err)
			}
			if out := h.ask(wire.AppendTSNReset(nil, h.nextSeq())); len(reconfigs(out...)) != 0 {
				t.Errorf("%s answered", h.name)
			}
		}
	}
	p := newPair(t, 209)
	p.a.dial(p.z)
	if _, err := p.a.assoc.ResetStreams(p.now, nil); err != requests.ErrNotSupported {
		t.Errorf("before the association: %v", err)
	}
}

// Requests of the user are bounded.
func TestReconfigLimits(t *testing.T) {
	p := connected(t, 230)
	if _, err := p.a.assoc.ResetStreams(p.now, []uint16{10}); err != tx.ErrStream {
		t.Errorf("no such stream: %v", err)
	}
	if _, err := p.a.assoc.ResetIncoming(p.now, []uint16{10}); err != tx.ErrStream {
		t.Errorf("no such incoming stream: %v", err)
	}
	var last uint32
	for range reconfig.MaxRequests {
		last = p.a.must(p.a.assoc.ResetStreams(p.now, []uint16{1}))
	}
	if _, err := p.a.assoc.AddStreams(p.now, 1, 0); err != requests.ErrBusy {
		t.Errorf("request beyond the limit: %v", err)
	}
	p.a.wantDone(last, nil)
	p.a.assoc.Shutdown(p.now)
	if _, err := p.a.assoc.AddStreams(p.now, 1, 0); err != ErrShutdown {
		t.Errorf("request while shutting down: %v", err)
	}
	p.advance(time.Minute)
	if _, err := p.a.assoc.AddStreams(p.now, 1, 0); err != ErrClosed {
		t.Errorf("request on a closed association: %v", err)
	}
}
