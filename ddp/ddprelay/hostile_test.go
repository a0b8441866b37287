package ddprelay

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weftstack/weft/ddp/ddpsctp"
	"github.com/weftstack/weft/internal/relaytest"
)

// What a process of the job may send that does not keep to the protocol is counted, costs it its association at most,
// and reaches nobody else's.
func TestHostilePeer(t *testing.T) {
	world(t, func(t *testing.T, w *relaytest.World) {
		a, b := newHost(t, w, 1, 1, nil), newHost(t, w, 2, 1, nil)
		defer a.close()
		defer b.close()
		good := initiate(t, a.dial(b))
		time.Sleep(time.Second)
		b.Endpoint.mu.Lock()
		var tag, peerTag uint32
		for _, as := range b.tags {
			tag, peerTag = as.tag, as.peerTag
		}
		b.Endpoint.mu.Unlock()

		x := newSpeaker(t, w, 2, b)
		defer x.process.Close()
		// The tag of another process's association is of no use.
		x.send(0, ddpsctp.PPIDSegment, session(tag, 0, 1, make([]byte, 100)...))
		x.send(0, ddpsctp.PPIDControl, session(tag, 3, 0, 0, 1))
		x.message(message{kind: abort, tag: tag, reason: "go"})
		x.message(message{kind: unknown, tag: peerTag})
		x.message(message{kind: ping, tag: tag})
		x.message(message{kind: opened, streams: 8, tag: tag, own: 5})
		if m := x.want(unknown); m.tag != tag {
			t.Errorf("%+v", m)
		}
		if n := b.Stats().Unknown; n != 4 {
			t.Errorf("%d messages for unknown associations, want 4", n)
		}
		// Malformed ones.
		x.send(0, 99, []byte("text"))
		x.send(0, ddpsctp.PPIDSegment, []byte{1, 2, 3})
		x.send(0, ppidAssociation, []byte{0x11, 0, 0})
		x.send(3, ppidAssociation, appendMessage(nil, &message{kind: open, streams: 8, own: 7}))
		x.send(0, ppidAssociation, make([]byte, 100_000))
		x.send(0, ddpsctp.PPIDSegment, make([]byte, 3*maxPartial))
		time.Sleep(time.Second)
		if n := b.Stats().Malformed; n != 6 {
			t.Errorf("%d malformed messages, want 6", n)
		}
		// The wrong lane.
		x.message(message{kind: open, streams: 8, own: 7})
		own := x.want(opened).own
		x.send(1, ddpsctp.PPIDControl, session(own, 0, 0, 0, 1))
		if m := x.want(abort); m.tag != 7 || b.Stats().Violations != 1 {
			t.Errorf("%+v, %+v", m, b.Stats())
		}
		// Segments of a session that there is not.
		x.message(message{kind: open, streams: 8, own: 8})
		own = x.want(opened).own
		x.send(0, ddpsctp.PPIDSegment, session(own, 0, 1, make([]byte, 100)...))
		x.send(1, ddpsctp.PPIDSegment, session(own, 9, 1, make([]byte, 100)...)) // a stream that there is not
		time.Sleep(time.Second)
		if n := b.Stats().Dropped; n != 2 {
			t.Errorf("%d messages dropped, want 2", n)
		}
		// Noise.
		rng := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			buf := make([]byte, 1+rng.IntN(60))
			for i := range buf {
				buf[i] = byte(rng.Uint32() & rng.Uint32() >> 8)
			}
			ppid := []uint32{ppidAssociation, ddpsctp.PPIDControl, ddpsctp.PPIDSegment}[rng.IntN(3)]
			switch {
			case ppid == ppidAssociation:
				buf[0] = version<<4 | buf[0]&15
			case len(buf) >= prefixLen && rng.IntN(4) > 0:
				copy(buf, session(own, uint16(rng.IntN(8)), 0)[:prefixLen])
			}
			x.send(uint16(rng.IntN(2)), ppid, buf)
		}
		time.Sleep(time.Minute)

		var o owner
		good.send(t, &o, 100, 1000)
		time.Sleep(time.Second)
		got, _, _, lost := b.accepted()[0].state()
		if n, err := o.state(); n != 100 || got != 100 || err != nil || lost != nil {
			t.Errorf("of another process %d segments came, %d released, errors %v, %v", got, n, err, lost)
		}
		if _, _, _, lost := good.state(); lost != nil {
			t.Errorf("the session of another process ended: %v", lost)
		}
		if n := b.process.Stats().RecvHeld; n != 0 {
			t.Errorf("%d bytes are held", n)
		}
	})
}
