// Package replylimit bounds the replies to packets of unknown origin.
package replylimit

import (
	"sync"

	"github.com/weftstack/weft/sctp/internal/core/clock"
)

// Replies to packets of unknown origin are limited, so that a transport is of
// no use as an amplifier or for scanning: each may be three times as long as
// what caused it, UDP payload counted.
const (
	factor = 3
	// rate bounds the ABORTs and SHUTDOWN COMPLETEs per second that answer packets
	// out of the blue, whether or not anybody listens at their port: all that belongs to
	// no association and is not of a handshake with a listener.
	rate  = 1000
	burst = 100
)

// bucket is a token bucket.
type bucket struct {
	level, rate, burst float64
	at                 clock.Time
}

func (b *bucket) take(now clock.Time, n float64) bool {
	if b.at == 0 {
		b.level = b.burst
	} else {
		b.level = min(b.level+b.rate*float64(now-b.at)/1e9, b.burst)
	}
	b.at = now
	if b.level < n {
		return false
	}
	b.level -= n
	return true
}

// Limit decides about replies to packets that belong to no association.
type Limit struct {
	mu      sync.Mutex
	packets bucket
}

// Allow reports whether a reply of so many bytes may answer a packet.
// handshake tells that a listener answers an INIT or a COOKIE ECHO.
func (r *Limit) Allow(now clock.Time, packet, reply int, handshake bool) bool {
	if reply > factor*packet {
		return false
	}
	if handshake {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.packets.rate == 0 {
		r.packets = bucket{rate: rate, burst: burst}
	}
	return r.packets.take(now, 1)
}
