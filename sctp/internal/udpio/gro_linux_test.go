package udpio

import (
	"bytes"
	"testing"
)

// coalesces reports whether the kernel hands batches to s in one piece.
func (s *side) coalesces() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.Conn.(*conn)
	if n := c.dominant.open; n != nil {
		return n.on
	}
	return c.on
}

// Short datagrams turn GRO off, the first long one turns it on again, and the next
// time more are needed.
func TestShortDatagramsTurnGROOff(t *testing.T) {
	for _, connected := range []bool{false, true} {
		a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
		if !b.Info().GRO || !a.Info().GSO {
			t.Skip("no segmentation offload")
		}
		if connected {
			makeDominant(t, a, b)
		} else {
			b.Conn.(*conn).dominant.after = 0
		}
		after := groOffAfter
		for round := range 3 {
			for i := range after + peerSocketAfter {
				if i < after-peerSocketAfter && !b.coalesces() {
					t.Fatalf("connected %v, round %d: off after %d short datagrams", connected, round, i)
				}
				a.numbered(b, i, 1)
				b.datagrams(1)
			}
			if b.coalesces() {
				t.Fatalf("connected %v, round %d: still on after %d short datagrams", connected, round, after+peerSocketAfter)
			}
			b.mu.Lock()
			n, err := b.TryRead(b.bufs, b.metas) // none of before is left
			b.mu.Unlock()
			if n != 0 || err != nil {
				t.Fatalf("%d batches, %v", n, err)
			}
			batch := pattern(10*1000 + 5)
			for i := range 3 {
				if err := a.Write(batch, &Meta{Remote: b.LocalAddr(), SegSize: 1000}); err != nil {
					t.Fatal(err)
				}
				got, _ := b.datagrams(11)
				if len(got) != 11 || !bytes.Equal(bytes.Join(got, nil), batch) {
					t.Fatalf("connected %v, round %d: batch %d arrived as %d datagrams", connected, round, i, len(got))
				}
				if !b.coalesces() {
					t.Fatalf("connected %v, round %d: off after a batch", connected, round)
				}
			}
			after *= groOffBackoff
		}
		if n := b.Info().Drops; n > 0 {
			t.Errorf("connected %v: %d dropped", connected, n)
		}
	}
}

// A batch that came before GRO was turned off is read without its size: it must not
// be taken for one datagram.
func TestBatchesFromBeforeAreDropped(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", Options{}), listen(t, "127.0.0.1:0", Options{})
	if !b.Info().GRO || !a.Info().GSO {
		t.Skip("no segmentation offload")
	}
	if err := a.Write(pattern(5*1000), &Meta{Remote: b.LocalAddr(), SegSize: 1000}); err != nil {
		t.Fatal(err)
	}
	b.arrived()
	b.mu.Lock()
	b.Conn.(*conn).setGRO(false)
	n, err := b.TryRead(b.bufs, b.metas)
	b.mu.Unlock()
	if n != 0 || err != nil {
		t.Fatalf("%d batches, %v, the first of %d bytes in segments of %d", n, err, len(b.bufs[0].B), b.metas[0].SegSize)
	}
	if n := b.Info().Drops; n != 1 {
		t.Errorf("%d dropped", n)
	}
	// What comes later is what it is.
	if err := a.Write(pattern(5*1000), &Meta{Remote: b.LocalAddr(), SegSize: 1000}); err != nil {
		t.Fatal(err)
	}
	if got, _ := b.datagrams(5); len(got) != 5 || len(got[0]) != 1000 {
		t.Errorf("%d datagrams, the first of %d bytes", len(got), len(got[0]))
	}
}

// The number of short datagrams that turn GRO off has a limit.
func TestGROSwitchLimit(t *testing.T) {
	b := listen(t, "127.0.0.1:0", Options{})
	if !b.Info().GRO {
		t.Skip("no GRO")
	}
	s := &b.Conn.(*conn).source
	for range 40 {
		s.setGRO(false)
		s.maybeMerged = false
		b.bufs[0].B = b.bufs[0].B[:longDatagram]
		if s.noteSizes(b.bufs[:1]) || !s.on {
			t.Fatalf("a long datagram is dropped, or leaves it off: %+v", s.groSwitch)
		}
	}
	if s.after != maxGROOffAfter {
		t.Errorf("patience %d, want %d", s.after, maxGROOffAfter)
	}
}
