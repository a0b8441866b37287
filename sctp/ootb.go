package sctp

import (
	"encoding/binary"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/clock"
	"github.com/weftstack/weft/sctp/wire"
)

// listenGrace is how long after its sockets were opened a transport does not answer INITs
// to ports on which nothing listens: Listen may be about to be called, and the peer tries
// again after a second. It is refused then if nothing listens still.
const listenGrace = clock.Time(2 * time.Second)

// reflected reports whether packet d says that it has the tag of its receiver's peer: an
// ABORT or SHUTDOWN COMPLETE with the T bit (RFC 9260, Section 8.5.1, B and C).
func reflected(d []byte) bool {
	if len(d) < wire.HeaderLen+wire.ChunkHeaderLen || d[wire.HeaderLen+1]&1 == 0 {
		return false
	}
	t := wire.ChunkType(d[wire.HeaderLen])
	return t == wire.ChunkAbort || t == wire.ChunkShutdownComplete
}

// outOfTheBlue handles the packet s.pkt when no association has its verification tag. It
// returns the association that is to handle the packet after all, if any, or otherwise the
// association that the packet made, which is to be finished. s.mu is locked.
func (s *socket) outOfTheBlue(now clock.Time) (existing *Association, made touched) {
	t := s.t
	d := s.pkt.Data
	k := peerKey{remote: s.pkt.Remote, local: binary.BigEndian.Uint16(d[2:]), peer: binary.BigEndian.Uint16(d)}
	a := t.demux.byPeer(k)
	if reflected(d) {
		a = t.demux.byPeerTag(k, binary.BigEndian.Uint32(d[4:]))
	}
	if a != nil {
		// An INIT (tag 0), a packet with the tag of the peer (reflected, RFC
		// 9260, Section 8.5.1), or one of an earlier life of the association.
		// COOKIE ECHO carries the tag of the restarted one. All of them the
		// association knows how to handle.
		return a, made
	}
	e := t.demux.endpoint(k.local)
	var r core.Result
	var opened *Association
	listening := e != nil && e.accepts()
	if s.direct && !listening {
		// It may be for another process: all of them see all packets, and those that
		// connect take ports at random.
		t.count.ootb.Add(1)
		return nil, made
	}
	if e == nil && now-t.opened < listenGrace && len(d) > wire.HeaderLen && wire.ChunkType(d[wire.HeaderLen]) == wire.ChunkInit {
		t.count.ootb.Add(1)
		return nil, made
	}
	if listening {
		if !e.roomFor(d) {
			t.count.suppressed.Add(1)
			return nil, made
		}
		e.hsMu.Lock()
		r = e.listener.HandlePacket(now, &s.pkt, s.reply[:0])
		opened, e.made = e.made, nil
		e.hsMu.Unlock()
	} else {
		var cfg *core.Config
		if e != nil {
			cfg = &e.core
		}
		r.Answer = core.HandleOOTB(cfg, &s.pkt, s.reply[:0])
	}
	switch r.Drop {
	case core.DropNone:
	case core.DropShort, core.DropChecksum, core.DropMalformed:
		t.count.bad.Add(1)
	default:
		t.count.ootb.Add(1)
	}
	if len(r.Reply) > 0 {
		if r.OOTB {
			t.count.ootb.Add(1)
		}
		if t.replies.Allow(now, len(d), len(r.Reply), !r.OOTB) {
			b := batchBufs.Get().(*batchBuf)
			b.tx = core.Transmit{Tuple: s.pkt.Tuple, SegSize: len(r.Reply), Segs: 1}
			t.send(r.Reply, b)
			batchBufs.Put(b)
		} else {
			t.count.suppressed.Add(1)
		}
	}
	switch {
	case r.New != nil:
		return e.adopt(now, opened)
	case r.ForTag != 0:
		return t.demux.byTag(r.ForTag), made
	}
	return nil, made
}
