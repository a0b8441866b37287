package sctp

import "github.com/weftstack/weft/sctp/internal/core/clock"

// maxRetiredTags bounds the tags of former associations that a transport
// remembers. A busy server forgets the oldest early.
const maxRetiredTags = 1 << 16

// retiredTags are the local tags of associations that are gone, for as long as a
// state cookie may be alive that would set one up again, with the same tags and
// TSNs: RFC 9260, Section 5.3.1, "A new Verification Tag value MUST be used each
// time the endpoint tears down and then reestablishes an association to the same
// peer endpoint". Its demux guards it.
type retiredTags struct {
	until map[uint32]clock.Time
	queue []uint32 // of a ring once it is full
	next  int      // the oldest of the ring
}

// add retires a tag until a time.
func (r *retiredTags) add(tag uint32, until clock.Time) {
	if r.until == nil {
		r.until = map[uint32]clock.Time{}
	}
	if _, known := r.until[tag]; known {
		r.until[tag] = until
		return
	}
	r.until[tag] = until
	if len(r.queue) < maxRetiredTags {
		r.queue = append(r.queue, tag)
		return
	}
	delete(r.until, r.queue[r.next])
	r.queue[r.next] = tag
	r.next = (r.next + 1) % len(r.queue)
}

// has reports whether a tag is retired now.
func (r *retiredTags) has(tag uint32, now clock.Time) bool {
	until, ok := r.until[tag]
	return ok && now < until
}
