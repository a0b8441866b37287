package ddp

import "encoding/binary"

const (
	// MaxTrain bounds the number of segments of a Train, maxBatchBytes their payload.
	MaxTrain      = 176
	maxBatchBytes = 256 << 10
	// MaxTrainFrame is the size of the longest frame of a Train in bytes.
	MaxTrainFrame = Headroom + UntaggedHeaderLen
)

// Train is a batch of two or more consecutive segments of one message, for segmentation
// offload: their payload is contiguous in memory, and all but the last have the same size.
type Train struct {
	// Header is the header of the first segment, except that Last says whether the last
	// segment ends the message.
	Header Header
	// Body is the payload of all segments, Unit the size of each but the last in bytes.
	Body []byte
	Unit int
	// Owner is called once for each segment that is released, or with their number if it
	// is a BatchOwner. It is never nil.
	Owner Owner
	// Urgent requests an immediate acknowledgement of the last segment.
	Urgent bool
}

// TrainChannel is a Channel that sends a batch of segments in one call.
type TrainChannel interface {
	Channel
	// SendTrain sends all segments of t, or none if it returns an error, like Send. It
	// does not keep t.
	SendTrain(t *Train) error
}

// Segments returns the number of segments.
func (t *Train) Segments() int { return (len(t.Body)-1)/t.Unit + 1 }

// Frames appends the headers of all segments to b. Each is preceded by Headroom bytes with
// the sequence number of the lower layer: first, first+1, …
func (t *Train) Frames(b []byte, first uint16) []byte {
	h := t.Header
	h.Last = false
	at := len(b)
	b = AppendHeader(append(b, make([]byte, Headroom)...), &h)
	size, n := len(b)-at, t.Segments()
	for i := 1; i < n; i++ {
		b = append(b, b[at:at+size]...)
	}
	all := b[at:]
	for i := range n {
		f := all[i*size:][:size]
		binary.BigEndian.PutUint16(f, first+uint16(i))
		if h.Tagged {
			binary.BigEndian.PutUint64(f[size-8:], h.TO+uint64(i*t.Unit))
		} else {
			binary.BigEndian.PutUint32(f[size-4:], h.MO+uint32(i*t.Unit))
		}
	}
	if t.Header.Last {
		all[(n-1)*size+Headroom] |= bitLast
	}
	return b
}

// HasTrain reports whether NextTrain would return a batch.
func (m *Message) HasTrain(mulpdu int) bool {
	body, _ := m.batch(mulpdu, 2)
	return body != nil
}

// batch returns the payload of the next batch of up to most segments and the size of each
// segment; body is nil if the next segments do not make a batch.
func (m *Message) batch(mulpdu, most int) (body []byte, unit int) {
	unit = mulpdu - m.Header.Len()
	inFrame := frameRoom(m.Header.Len()) // what Next copies
	if m.Copy || most < 2 || unit <= inFrame || int64(m.Len-m.done) <= int64(unit) {
		return nil, 0
	}
	b := m.rest()
	b = b[:min(uint64(len(b)), uint64(m.Len-m.done))]
	if n := min(most, MaxTrain, max(maxBatchBytes/unit, 2)); len(b) > n*unit {
		b = b[:n*unit]
	}
	if over := len(b) % unit; over <= inFrame || uint64(len(b)) < uint64(m.Len-m.done) {
		b = b[:len(b)-over] // a few bytes, or some that go together with what follows
	}
	if len(b) <= unit {
		return nil, 0
	}
	return b, unit
}

// NextTrain cuts the next batch of up to most segments into t, and returns their number and
// whether they end the message. It returns 0 and leaves t unchanged if the next segment has
// to be cut by Next.
func (m *Message) NextTrain(mulpdu, most int, t *Train) (n int, last bool) {
	body, unit := m.batch(mulpdu, most)
	if body == nil {
		return 0, false
	}
	h := &m.Header
	last = uint64(len(body)) == uint64(m.Len-m.done)
	h.Last = last
	*t = Train{Header: *h, Body: body, Unit: unit, Owner: m.Owner}
	if m.Snapshots != nil {
		c := m.Snapshots.take(body, t.Segments(), m.Credit)
		t.Body, t.Owner = c.b[:len(body)], c
	}
	h.advance(len(body))
	m.off += len(body)
	m.done += uint32(len(body))
	return t.Segments(), last
}
