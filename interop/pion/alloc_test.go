package sctp

import (
	"testing"
)

// Sending and receiving allocates nothing once the pools are filled, of small messages and of such as take
// several packets.
func TestSteadyStateAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has the pools drop what they hold")
	}
	for _, size := range []int{64, 16 << 10} {
		a, b := pair(t, false)
		s, err := a.OpenStream(1, PayloadTypeWebRTCBinary)
		if err != nil {
			t.Fatal(err)
		}
		msg, buf := make([]byte, size), make([]byte, size)
		if _, err := s.Write(msg); err != nil {
			t.Fatal(err)
		}
		r, err := b.AcceptStream()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(buf); err != nil {
			t.Fatal(err)
		}
		round := func() { // there and back
			if _, err := s.Write(msg); err != nil {
				t.Fatal(err)
			}
			if n, err := r.Read(buf); err != nil || n != size {
				t.Fatal(n, err)
			}
			if _, err := r.Write(buf); err != nil {
				t.Fatal(err)
			}
			if n, err := s.Read(buf); err != nil || n != size {
				t.Fatal(n, err)
			}
		}
		for range 1000 {
			round()
		}
		// The average is over all goroutines. A collection in between empties the pools: less than one.
		if n := testing.AllocsPerRun(2000, round); n >= 1 {
			t.Errorf("%d bytes there and back allocate %v times", size, n)
		}
	}
}
