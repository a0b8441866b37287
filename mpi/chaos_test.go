package mpi

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/weftstack/weft/mpi/internal/job"
	"github.com/weftstack/weft/mpi/internal/p2p"
	"github.com/weftstack/weft/mpi/internal/transport"
)

// chaosLink is a link whose streams run at different, random speeds: the test
// decides when the next message of which stream arrives, and in which pieces.
// What is lost holds up its stream until it is sent again.
type chaosLink struct {
	to      *p2p.Peer // the sender as the receiver knows it
	rng     *rand.Rand
	loss    int // one of so many messages is lost; 0: none
	streams [][]chaosFrame
	stalled []int // by stream: steps until what was lost comes again
	waiting int
	arrived func(f *chaosFrame) // told of all that is delivered; may be nil
}

type chaosFrame struct {
	data []byte
	own  transport.Owner
}

func (l *chaosLink) Send(stream uint16, hdr, body []byte, own transport.Owner) error {
	if own == nil && len(body) > 0 && l.rng.IntN(4) == 0 {
		return transport.ErrFull
	}
	for int(stream) >= len(l.streams) {
		l.streams, l.stalled = append(l.streams, nil), append(l.stalled, 0)
	}
	data := append(append([]byte(nil), hdr...), body...)
	l.streams[stream] = append(l.streams[stream], chaosFrame{data, own})
	l.waiting++
	return nil
}

func (l *chaosLink) Flush()                         {}
func (l *chaosLink) CopyLimit(bool) int             { return 1000 }
func (l *chaosLink) Shutdown(context.Context) error { return nil }
func (l *chaosLink) Abort(string)                   {}

// step delivers the first message of a random stream, unless it is lost.
func (l *chaosLink) step(t *testing.T) {
	t.Helper()
	s, n := -1, 0
	for i := range l.streams {
		if l.stalled[i] > 0 {
			l.stalled[i]--
		} else if len(l.streams[i]) > 0 {
			if n++; l.rng.IntN(n) == 0 {
				s = i
			}
		}
	}
	switch {
	case s < 0:
	case l.loss > 0 && l.rng.IntN(l.loss) == 0:
		l.stalled[s] = 1 + l.rng.IntN(30)
	default:
		l.deliver(t, s)
	}
}

// deliver delivers the first message of stream s.
func (l *chaosLink) deliver(t *testing.T, s int) {
	t.Helper()
	fr := l.streams[s][0]
	l.streams[s] = l.streams[s][1:]
	l.waiting--
	f := &l.to.Parsers[s]
	for rest := fr.data; len(rest) > 0; {
		n := len(rest)
		if l.rng.IntN(2) == 0 {
			n = 1 + l.rng.IntN(n)
		}
		k, err := f.Parse(rest[:n])
		if err != nil {
			t.Fatalf("stream %d: %v", s, err)
		}
		rest = rest[k:]
	}
	if f.Busy {
		t.Fatalf("stream %d: message of %d bytes (%+v) has no end", s, len(fr.data), f.Envelope)
	}
	if fr.own != nil {
		fr.own.Released(nil)
	}
	if l.arrived != nil {
		l.arrived(&fr)
	}
}

// chaos is a job whose links are chaosLinks, driven by one goroutine.
type chaos struct {
	t      *testing.T
	rng    *rand.Rand
	worlds []*World
	links  []*chaosLink
	todo   []func() // what RDMA does in any order: see chaosBulk
}

func newChaos(t *testing.T, n int, rng *rand.Rand, opts ...Option) *chaos {
	t.Helper()
	o, err := buildOptions(TransportInproc, opts)
	if err != nil {
		t.Fatal(err)
	}
	k := &chaos{t: t, rng: rng}
	launcher := job.NewLocal(n, nil)
	for r := range n {
		k.worlds = append(k.worlds, newWorld(r, n, o, launcher))
	}
	for _, a := range k.worlds {
		for _, b := range k.worlds {
			if a != b {
				l := &chaosLink{to: b.eng.Peers[a.Rank()], rng: rng}
				k.links = append(k.links, l)
				a.eng.Peers[b.Rank()].Link = l
				a.eng.Peers[b.Rank()].Credit.Store(b.eng.Window)
			}
		}
	}
	return k
}

// link returns the link from rank a to rank b.
func (k *chaos) link(a, b int) *chaosLink {
	for _, l := range k.links {
		if l.to == k.worlds[b].eng.Peers[a] {
			return l
		}
	}
	k.t.Fatalf("no link from %d to %d", a, b)
	return nil
}

// step delivers one message and reports whether there was one.
func (k *chaos) step() bool {
	k.t.Helper()
	var busy []*chaosLink
	for _, l := range k.links {
		if l.waiting > 0 {
			busy = append(busy, l)
		}
	}
	if n := len(k.todo); n > 0 && (len(busy) == 0 || k.rng.IntN(3) == 0) {
		i := k.rng.IntN(n)
		f := k.todo[i]
		k.todo[i] = k.todo[n-1]
		k.todo = k.todo[:n-1]
		f()
		return true
	}
	if len(busy) == 0 {
		return false
	}
	busy[k.rng.IntN(len(busy))].step(k.t)
	return true
}

// checkEmpty checks that nothing is left behind.
func checkEmpty(t *testing.T, k *chaos) bool {
	t.Helper()
	for _, w := range k.worlds {
		if err := w.eng.CheckMessages(); err != nil {
			t.Errorf("rank %d: %v", w.Rank(), err)
			return false
		}
	}
	return true
}
