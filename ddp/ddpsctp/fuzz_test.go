package ddpsctp

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weftstack/weft/ddp"
	"github.com/weftstack/weft/sctp"
)

func TestSegmentChunkGolden(t *testing.T) {
	// RFC 5043, Section 5.2.2: DDP-SSN, then the segment as RFC 5041 has it.
	w := newWire(t, 1, 4)
	pa, pb := open(t, w, nil)
	w.run()
	pa.send(t, "ab")
	m := w.a.queue[0]
	want := []byte{0, 1, 0x41, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'a', 'b'}
	if m.ppid != PPIDSegment || m.sid != 0 || !bytes.Equal(m.data, want) {
		t.Errorf("chunk on stream %d, PPID %d: % x, want % x", m.sid, m.ppid, m.data, want)
	}
	w.run()
	pb.session.Terminate()
	if m := w.b.queue[0]; m.ppid != PPIDControl || !bytes.Equal(m.data, []byte{0, 1, 0, 4}) {
		t.Errorf("terminate: PPID %d, % x", m.ppid, m.data)
	}
}

// FuzzAssociation gives an association arbitrary messages, while its consumer
// accepts, rejects and initiates sessions, and checks that nothing is left when
// it goes down.
func FuzzAssociation(f *testing.F) {
	f.Add([]byte{6, 0, 17, 0, 0, 0, 1, 3, 0, 16, 0, 1, 9, 3, 0, 17, 0, 2, 0, 4})
	f.Add([]byte{9, 1, 17, 0, 0, 0, 5, 0, 1, 0, 1, 200, 201, 4, 0, 17, 0, 0, 0, 2, 202})
	f.Fuzz(func(t *testing.T, script []byte) {
		w := newWire(t, 1, 4)
		a := w.a.assoc
		acc := a.acc
		acc.backlog = 3
		var sinks []*peerStream
		var next byte
		acc.onRequest = func(r *Request) {
			p := &peerStream{}
			sinks = append(sinks, p)
			switch next % 4 {
			case 0:
				r.Accept(p, p.bind, Enhanced{IRD: 1, ORD: 1}, []byte("yes"))
			case 1:
				r.Reject(nil)
			case 2:
				p.fail = ddp.ErrSequence
				r.Accept(p, p.bind, Enhanced{}, nil)
			}
		}
		for len(script) > 0 {
			n := script[0]
			script = script[1:]
			switch {
			case n >= 250: // acknowledge and drop what was sent
				for _, m := range w.a.queue {
					if m.owner != nil {
						m.owner.Released(nil)
					}
				}
				w.a.queue = nil
			case n >= 200:
				p := &peerStream{}
				if _, err := a.Initiate(p, p.bind, &Enhanced{}, nil); err == nil {
					sinks = append(sinks, p)
				} else if !errors.Is(err, ErrNoStream) {
					t.Fatal(err)
				}
			case n >= 190:
				for _, p := range sinks {
					if p.session != nil {
						p.session.Terminate()
					}
				}
			default:
				k := min(int(n), len(script))
				m := script[:k]
				script = script[k:]
				if len(m) < 3 {
					continue
				}
				next = m[2]
				a.Receive(&sctp.Piece{Stream: uint16(m[0] & 0x7f), PPID: uint32(m[1]), Data: bytes.Clone(m[2:]),
					Begin: true, End: true, More: m[0]&0x80 != 0})
			}
			if acc.pending < 0 || acc.pending > 3 {
				t.Fatalf("%d requests pending", acc.pending)
			}
		}
		a.endRun()
		gone := errors.New("gone")
		a.Down(gone, false)
		if a.Sessions() != 0 || acc.pending != 0 {
			t.Fatalf("%d sessions and %d requests left", a.Sessions(), acc.pending)
		}
	})
}
