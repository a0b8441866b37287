package main

import (
	"bytes"
	"strings"
)

// maxMissing bounds the sequence numbers that a tracker remembers as missing: 8 bytes each in a map, some 2 MiB in
// all.
const maxMissing = 1 << 16

// A messageFormat is how test messages of a kind are made: a sequence number, and then bytes cut from a pattern,
// beginning at the sequence number modulo its period. The period is prime, so that a message put together from
// parts of others does not look right. The page makes and checks the same messages.
type messageFormat struct {
	header  int // bytes of the sequence number; a shorter message has the low ones
	bits    int // of the number in each of these
	period  uint32
	pattern []byte
}

var (
	binaryFormat = messageFormat{header: 4, bits: 8, period: 251, pattern: makePattern(0, 251)}
	textFormat   = messageFormat{header: 8, bits: 4, period: 23, pattern: makePattern('a', 23)} // hexadecimal digits, then letters
)

func makePattern(first byte, period int) []byte {
	b := make([]byte, maxMessage+period)
	for i := range b {
		b[i] = first + byte(i%period)
	}
	return b
}

func formatOf(text bool) *messageFormat {
	if text {
		return &textFormat
	}
	return &binaryFormat
}

const hexDigits = "0123456789abcdef"

// fill makes b test message number seq.
func (f *messageFormat) fill(b []byte, seq uint32) {
	n := min(len(b), f.header)
	for i := range n {
		v := byte(seq >> (f.bits * (n - 1 - i)))
		if f.bits == 4 {
			v = hexDigits[v&0xf]
		}
		b[i] = v
	}
	copy(b[n:], f.pattern[seq%f.period:])
}

// sequence returns the number of message b: of those that end in the bytes that b has of it, the nearest to next.
// ok is false if they are no number.
func (f *messageFormat) sequence(b []byte, next uint32) (seq uint32, ok bool) {
	n := min(len(b), f.header)
	for _, c := range b[:n] {
		if f.bits == 4 {
			digit := strings.IndexByte(hexDigits, c)
			if digit < 0 {
				return 0, false
			}
			c = byte(digit)
		}
		seq = seq<<f.bits | uint32(c)
	}
	shift := 32 - f.bits*n
	diff := int32((seq-next)<<shift) >> shift // keeps the sign
	return next + uint32(diff), true
}

// right tells whether b is message number seq.
func (f *messageFormat) right(b []byte, seq uint32) bool {
	rest := b[min(len(b), f.header):]
	return bytes.Equal(rest, f.pattern[seq%f.period:][:len(rest)])
}

// A tracker checks the test messages that arrive on a channel. It is not safe for concurrent use.
type tracker struct {
	report
	next    uint32 // sequence number that follows the highest seen
	missing map[uint32]struct{}
}

// report counts what a tracker has seen of a channel.
type report struct {
	Messages uint64 `json:"messages"` // received, all counted
	Bytes    uint64 `json:"bytes"`
	Text     uint64 `json:"text"`    // of Messages, those that were text
	Late     uint64 `json:"late"`    // arrived after a message with a higher number
	Doubled  uint64 `json:"doubled"` // arrived before
	Corrupt  uint64 `json:"corrupt"` // content differs from what the sender wrote
	Missing  uint64 `json:"missing"` // skipped, and not arrived since
}

// add takes a message that has arrived. Empty messages are counted only: they have no number.
func (t *tracker) add(b []byte, text bool) {
	t.Messages++
	t.Bytes += uint64(len(b))
	if text {
		t.Text++
	}
	if len(b) == 0 {
		return
	}
	f := formatOf(text)
	seq, ok := f.sequence(b, t.next)
	if !ok {
		t.Corrupt++
		return
	}
	switch ahead := int32(seq - t.next); {
	case ahead >= 0:
		t.skip(t.next, seq)
		t.next = seq + 1
	default:
		if _, ok := t.missing[seq]; ok {
			delete(t.missing, seq)
			t.Missing--
			t.Late++
		} else {
			t.Doubled++
		}
	}
	if !f.right(b, seq) {
		t.Corrupt++
	}
}

// skip notes that the messages from first up to before end have not arrived. Beyond maxMissing they are counted
// only, and would count as doubled if they came after all.
func (t *tracker) skip(first, end uint32) {
	t.Missing += uint64(end - first)
	for s := first; s != end && len(t.missing) < maxMissing; s++ {
		if t.missing == nil {
			t.missing = make(map[uint32]struct{})
		}
		t.missing[s] = struct{}{}
	}
}
