package core

import (
	"bytes"
	"testing"
	"time"

	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// RFC 9260, Section 5.1.5, steps 1 to 4, at the listener.
func TestListenerChecksCookie(t *testing.T) {
	p := newPair(t, 20)
	p.z.listen()
	p.a.dial(p.z)
	r := p.z.listener.HandlePacket(p.now, p.z.to(only(t, p.a.outbox())), nil)
	p.a.deliver(p.a.to(r.Reply))
	echo := only(t, p.a.outbox())
	h, _ := wire.ParseHeader(echo)
	try := func(name string, pkt *Packet, l *Listener, now clock.Time) Result {
		t.Helper()
		r := l.HandlePacket(now, pkt, nil)
		if r.New != nil {
			t.Errorf("%s: an association was made", name)
		}
		return r
	}
	edit := func(f func(b []byte)) *Packet {
		b := bytes.Clone(echo)
		f(b)
		wire.SetChecksum(b)
		return p.z.to(b)
	}
	for _, x := range []struct {
		name string
		pkt  *Packet
	}{
		{"forged cookie", edit(func(b []byte) { b[40] ^= 1 })},
		{"wrong tag", edit(func(b []byte) { b[7] ^= 1 })},
		{"wrong source port", edit(func(b []byte) { b[1] ^= 1 })},
	} {
		if r := try(x.name, x.pkt, p.z.listener, p.now); len(r.Reply) > 0 || r.Drop != DropCookie {
			t.Errorf("%s: %v, reply %x", x.name, r.Drop, r.Reply)
		}
	}
	late := p.now + clock.Time(DefaultCookieLife) + clock.Time(3*time.Millisecond)
	rs := try("expired cookie", p.z.to(echo), p.z.listener, late)
	wantChunks(t, rs.Reply, wire.ChunkError)
	hs, _ := wire.ParseHeader(rs.Reply)
	if hs.VTag != p.a.assoc.Tag() || hs.SrcPort != h.DstPort {
		t.Errorf("stale cookie answered with %s", wire.Describe(rs.Reply))
	}
	it := wire.NewChunks(rs.Reply[wire.HeaderLen:])
	it.Next()
	e, _ := wire.ParseOpError(it.Chunk())
	cs := wire.NewCauses(e.Causes)
	cs.Next()
	if usec, err := wire.ParseStaleCookie(cs.Cause()); err != nil || usec != 3000 {
		t.Errorf("staleness %d, %v, want 3000 µs", usec, err)
	}
	if r := p.z.listener.HandlePacket(p.now, p.z.to(echo), nil); r.New == nil {
		t.Errorf("the genuine cookie: %v", r.Drop)
	}
}
