package ddp

import "encoding/binary"

const (
	// MaxTrain and maxTrainBytes bound the segments of a Train, and their payload.
	MaxTrain      = 176
	maxTrainBytes = 256 << 10
	// MaxTrainFrame is the most that a frame of a Train has.
	MaxTrainFrame = Headroom + UntaggedHeaderLen
)

// Train is two segments or more of one message, which follow one another, and whose
// payload is one piece of memory, each but the last with the same part of it.
type Train struct {
	// Header is that of the first segment, with Last telling whether the last one ends
	// the message.
	Header Header
	// Body is the payload of all, and Unit that of each but the last.
	Body []byte
	Unit int
	// Owner, which may be a BatchOwner, is told when segments are done with, of as many
	// as there are. It is never nil.
	Owner Owner
	// Urgent asks the lower layer to have the peer acknowledge the last one at once.
	Urgent bool
}

// TrainChannel is a Channel that takes many segments at once.
type TrainChannel interface {
	Channel
	// SendTrain hands over the segments of t, all of them or none, as Send does. t is not
	// kept.
	SendTrain(t *Train) error
}

// Segments returns how many segments there are.
func (t *Train) Segments() int { return (len(t.Body)-1)/t.Unit + 1 }

// Frames appends the headers of all segments to b, each behind Headroom bytes, which are
// what first is for the first segment and one more for each that follows.
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

// HasTrain reports whether NextTrain would make a train.
func (m *Message) HasTrain(mulpdu int) bool {
	body, _ := m.train(mulpdu, 2)
	return body != nil
}

// train returns the payload of the next train of up to most segments and of each of
// these, nil if there is none.
func (m *Message) train(mulpdu, most int) (body []byte, unit int) {
	unit = mulpdu - m.Header.Len()
	inFrame := frameRoom(m.Header.Len()) // what Next copies
	if m.Copy || most < 2 || unit <= inFrame || int64(m.Len-m.done) <= int64(unit) {
		return nil, 0
	}
	b := m.rest()
	b = b[:min(uint64(len(b)), uint64(m.Len-m.done))]
	if n := min(most, MaxTrain, max(maxTrainBytes/unit, 2)); len(b) > n*unit {
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

// NextTrain is Next for as many segments as make a train, up to most. It returns how many
// there are: 0, with t unchanged, if Next has to make the next segment.
func (m *Message) NextTrain(mulpdu, most int, t *Train) (n int, last bool) {
	body, unit := m.train(mulpdu, most)
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
