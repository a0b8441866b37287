package sctp

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Copies of messages are whole, of all lengths around those at which they are made
// otherwise.
func TestCopiesHoldWholeMessages(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, around := range []int{1, 256, copyAtOnce, 3 * copyAtOnce, 4 << 20} {
		for n := max(around-1, 1); n <= around+1; n++ {
			msg := make([]byte, n)
			for i := range msg {
				msg[i] = byte(rng.Uint32())
			}
			body, mem := copyMessage(msg)
			if !bytes.Equal(body, msg) {
				t.Errorf("%d bytes: the copy differs", n)
			}
			mem.Put()
		}
	}
}

// The memory of a copy is used again, for a message as long as the send buffer, too.
func TestCopiesAreRecycled(t *testing.T) {
	if RaceEnabled {
		t.Skip("pools forget at random under the race detector")
	}
	msg := make([]byte, 4<<20)
	if n := testing.AllocsPerRun(100, func() { _, mem := copyMessage(msg); mem.Put() }); n >= 1 {
		t.Errorf("%v allocations per copy, want 0", n)
	}
}
