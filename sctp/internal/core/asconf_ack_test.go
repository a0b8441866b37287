package core

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/requests"
	"github.com/weftstack/weft/sctp/wire"
)

// RFC 5061, Section 5.3, F0: an ASCONF-ACK for what was not sent aborts the
// association, an old one is ignored.
func TestIllegalAsconfAck(t *testing.T) {
	ack := func(p *pair, num uint32) {
		chunk := wire.AppendAsconfAck(nil, wire.AsconfAck{Seq: num})
		p.a.deliver(p.a.packet(p.a.assoc.Tag(), authed(&p.z.assoc.auth, chunk)))
	}
	p := newMobile(t, 550)
	next := p.a.assoc.asc.NextSeq()
	ack(p, next-1)
	ack(p, next-1<<31+1)
	p.a.wantState(Established)
	ack(p, next)
	p.a.wantState(Closed)
	var abort *AbortError
	if !errors.As(p.a.assoc.Err(), &abort) || abort.Cause != wire.CauseIllegalAsconfAck {
		t.Errorf("ended with %v", p.a.assoc.Err())
	}
	p = newMobile(t, 551)
	id := p.a.must(p.a.assoc.AddLocalAddr(extra[0]))
	p.a.outbox()
	ack(p, p.a.assoc.asc.NextSeq()+5)
	p.a.wantDone(id, p.a.assoc.Err())
	p.a.wantState(Closed)
}

// RFC 5061, Section 5.1, A7 and A8: what the responses mean; F3a, F3b and A9:
// what the peer does not understand is not asked again.
func TestAsconfOutcomes(t *testing.T) {
	for _, x := range []struct {
		name string
		resp func(ids []uint32) []byte
		ok   []bool
		err  error
	}{
		{"none", func([]uint32) []byte { return nil }, []bool{true, true, true}, nil},
		{"second fails", func(ids []uint32) []byte {
			return wire.AppendAsconfError(nil, wire.AsconfError{ID: ids[1], Causes: wire.AppendOutOfResource(nil)})
		}, []bool{true, false, false}, requests.ErrDenied},
		{"second fails, third succeeds", func(ids []uint32) []byte {
			b := wire.AppendAsconfError(nil, wire.AsconfError{ID: ids[1], Causes: wire.AppendOutOfResource(nil)})
			return wire.AppendAsconfSuccess(b, ids[2])
		}, []bool{true, false, true}, requests.ErrDenied},
		{"not understood", func(ids []uint32) []byte {
			c := wire.AppendUnrecognizedParams(nil, request(addIP, ids[0], "10.2.0.1"))
			return wire.AppendAsconfError(nil, wire.AsconfError{ID: ids[0], Causes: c})
		}, []bool{false, false, false}, requests.ErrNotSupported},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newMultihomed(t, 552, mobileConfig())
			p.connect()
			p.advance(3 * time.Second)
			p.a.outbox()
			id := p.a.must(p.a.assoc.ReplaceLocalAddr(p.a.local[0], extra[0]))
			p.a.outbox()
			var ids []uint32
			for i := range private(&p.a.assoc.asc, "changes").Len() {
				ids = append(ids, uint32(private(&p.a.assoc.asc, "changes."+strconv.Itoa(i)+".corr").Uint()))
			}
			chunk := wire.AppendAsconfAck(nil, wire.AsconfAck{Seq: p.a.assoc.asc.NextSeq() - 1, Params: x.resp(ids)})
			p.a.deliver(p.a.packet(p.a.assoc.Tag(), authed(&p.z.assoc.auth, chunk)))
			p.a.wantDone(id, x.err)
			if has := slices.Contains(p.a.assoc.local.InUse, extra[0]); has != x.ok[0] {
				t.Errorf("the new address is in use: %v", has)
			}
			if has := slices.Contains(p.a.assoc.local.InUse, p.a.local[0]); has == x.ok[2] {
				t.Errorf("the old address is in use: %v", has)
			}
			_, err := p.a.assoc.AddLocalAddr(extra[1])
			if (err == requests.ErrNotSupported) != (x.err == requests.ErrNotSupported) {
				t.Errorf("another addition: %v", err)
			}
		})
	}
	p := newMobile(t, 553)
	id := p.a.must(p.a.assoc.AddLocalAddr(extra[0]))
	chunk := p.a.assoc.asc.Chunk()
	p.a.outbox()
	cause := wire.AppendUnrecognizedChunk(nil, wire.Chunk{Type: wire.ChunkAsconf, Raw: chunk})
	p.a.deliver(p.a.packet(p.a.assoc.Tag(), wire.AppendOpError(nil, wire.OpError{Causes: cause})))
	p.a.wantDone(id, requests.ErrNotSupported)
	if _, err := p.a.assoc.AddLocalAddr(extra[0]); err != requests.ErrNotSupported {
		t.Errorf("once more: %v", err)
	}
}
