package core

import (
	"math/rand/v2"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// random is the only source of chance in an association or listener: a
// cryptographic generator with the caller's seed.
type random struct{ src *rand.ChaCha8 }

func newRandom(seed [32]byte) random { return random{rand.NewChaCha8(seed)} }

func (r random) uint64() uint64 { return r.src.Uint64() }

// tag returns a number from 1 to 2^32-1 (RFC 9260, Section 5.3.1).
func (r random) tag() uint32 {
	for {
		if t := uint32(r.src.Uint64()); t != 0 {
			return t
		}
	}
}

// seed returns a seed for another generator.
func (r random) seed() (s [32]byte) {
	r.src.Read(s[:])
	return s
}

// jitter returns a time between -d/2 and d/2.
func (r random) jitter(d clock.Time) clock.Time {
	if d <= 1 {
		return 0
	}
	return clock.Time(r.src.Uint64()%uint64(d)) - d/2
}
