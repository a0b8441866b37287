package core

import (
	"testing"

	"github.com/weftstack/weft/sctp/wire"
)

// RFC 9260, Section 10, ICMP6 and ICMP8: Protocol Unreachable ends an association that
// waits for the INIT ACK, if it is about its INIT.
func TestProtocolUnreachable(t *testing.T) {
	quote := func(vtag, tag uint32) []byte {
		b := wire.AppendHeader(nil, wire.Header{SrcPort: portA, DstPort: portZ, VTag: vtag})
		return wire.AppendInit(b, wire.Init{Tag: tag, RWND: 9999, OutStreams: 1, InStreams: 1})
	}
	for _, tc := range []struct {
		name   string
		up     bool // the association
		quoted func(a *Assoc) []byte
		want   bool
	}{
		{"INIT", false, func(a *Assoc) []byte { return quote(0, a.Tag()) }, true},
		{"just enough of it", false, func(a *Assoc) []byte { return quote(0, a.Tag())[:20] }, true},
		{"too short", false, func(a *Assoc) []byte { return quote(0, a.Tag())[:19] }, false},
		{"nothing", false, func(*Assoc) []byte { return nil }, false},
		{"INIT of another", false, func(a *Assoc) []byte { return quote(0, a.Tag()+1) }, false},
		{"INIT with a tag", false, func(a *Assoc) []byte { return quote(1, a.Tag()) }, false},
		{"another chunk", false, func(a *Assoc) []byte {
			b := quote(0, a.Tag())
			b[wire.HeaderLen] = byte(wire.ChunkInitAck)
			return b
		}, false},
		{"INIT, answered", true, func(a *Assoc) []byte { return quote(0, a.Tag()) }, false},
		{"the peer's tag", true, func(a *Assoc) []byte { return quote(a.PeerTag(), a.Tag()) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPair(t, 91, nil)
			if tc.up {
				p.connect()
			} else {
				p.a.dial(p.z)
			}
			a := p.a.assoc
			quoted := tc.quoted(a)
			if got := a.ProtocolUnreachable(quoted); got != tc.want || (a.State() == Closed) != tc.want {
				t.Errorf("%v, state %v", got, a.State())
			}
			if !tc.want {
				return
			}
			if e := p.a.wantEvent(EventDown); e.Err == nil {
				t.Error("no error")
			}
			if a.ProtocolUnreachable(quoted) {
				t.Error("it ended twice")
			}
		})
	}
}
