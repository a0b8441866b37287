package rconn

import (
	"bytes"
	"testing"
)

// FuzzHeader checks that what parses as a header is one that put makes, and asks for
// no more than there is.
func FuzzHeader(f *testing.F) {
	f.Add([]byte{0, 0, 0, 5, 0, 0, 0, 0})
	f.Add([]byte{flagData, 0, 1, 0, 0, 0, 0, 0, 'a'})
	f.Add([]byte{flagData | flagMore, 0, 255, 255, 0, 0, 0, 0, 'a', 'b'})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := parseHeader(b)
		if !ok {
			return
		}
		if len(b) < headerLen || h.flags&flagData == 0 && (h.flags != 0 || len(b) > headerLen) {
			t.Fatalf("% x is taken for %+v", b, h)
		}
		var again [headerLen]byte
		h.put(again[:])
		if again[0] != b[0] || again[2] != b[2] || again[3] != b[3] {
			t.Errorf("% x became % x", b[:headerLen], again)
		}
	})
}

// FuzzCard checks that the private data of a request is taken only within the limits.
func FuzzCard(f *testing.F) {
	f.Add(card{DefaultBuffers, DefaultSize}.append(nil))
	f.Add(card{MaxBuffers, MaxSize}.append(nil))
	f.Add(card{MaxBuffers + 1, MinSize - 1}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := parseCard(b)
		if !ok {
			return
		}
		if c.buffers < 1 || c.buffers > MaxBuffers || c.size < MinSize || c.size > MaxSize {
			t.Fatalf("% x is taken for %+v", b, c)
		}
		want := bytes.Clone(b)
		want[3], want[6], want[7] = 0, 0, 0
		if again := c.append(nil); !bytes.Equal(again, want) {
			t.Errorf("% x became % x", b, again)
		}
	})
}
