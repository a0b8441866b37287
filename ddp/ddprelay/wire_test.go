package ddprelay

import (
	"bytes"
	"strings"
	"testing"
)

// The messages as they are on the wire: version and kind, a reserved byte, streams, tag, tag of the sender, reason.
func TestMessages(t *testing.T) {
	for _, c := range []struct {
		m    message
		want []byte
	}{
		{message{kind: open, streams: 1024, own: 0x01020304}, []byte{0x11, 0, 4, 0, 0, 0, 0, 0, 1, 2, 3, 4}},
		{message{kind: opened, streams: 3, tag: 1, own: 2}, []byte{0x12, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2}},
		{message{kind: ready, tag: 7}, []byte{0x13, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0}},
		{message{kind: abort, tag: 7, reason: "no"}, []byte{0x14, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 'n', 'o'}},
		{message{kind: unknown, tag: 7}, []byte{0x15, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0}},
		{message{kind: ping, tag: 7}, []byte{0x16, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0}},
	} {
		b := appendMessage(nil, &c.m)
		if !bytes.Equal(b, c.want) {
			t.Errorf("%+v is % x, want % x", c.m, b, c.want)
		}
		if m, err := parseMessage(b); err != nil || m != c.m {
			t.Errorf("% x is %+v, %v, want %+v", b, m, err, c.m)
		}
		for n := range b {
			if m, err := parseMessage(b[:n]); err == nil && (c.m.kind != abort || n < messageLen) {
				t.Errorf("% x is %+v", b[:n], m)
			}
		}
		if _, err := parseMessage(append(b, 0)); err == nil && c.m.kind != abort {
			t.Errorf("% x is too long, but taken", b)
		}
	}
	long := appendMessage(nil, &message{kind: abort, tag: 1, reason: strings.Repeat("x", 1000)})
	if m, err := parseMessage(long); err != nil || len(m.reason) != maxReason {
		t.Errorf("reason of %d bytes, %v, want %d", len(m.reason), err, maxReason)
	}
	for name, b := range map[string][]byte{
		"version":          {0x21, 0, 4, 0, 0, 0, 0, 0, 1, 2, 3, 4},
		"kind 0":           {0x10, 0, 4, 0, 0, 0, 0, 1, 1, 2, 3, 4},
		"kind 7":           {0x17, 0, 4, 0, 0, 0, 0, 1, 1, 2, 3, 4},
		"open with a tag":  {0x11, 0, 4, 0, 0, 0, 0, 1, 1, 2, 3, 4},
		"open without own": {0x11, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"open of nothing":  {0x11, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4},
		"opened for none":  {0x12, 0, 4, 0, 0, 0, 0, 0, 1, 2, 3, 4},
		"ping for none":    {0x16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	} {
		if m, err := parseMessage(b); err == nil {
			t.Errorf("%s: taken as %+v", name, m)
		}
	}
}

// FuzzMessage checks that what is taken is written as it was read.
func FuzzMessage(f *testing.F) {
	f.Add([]byte{0x11, 0, 4, 0, 0, 0, 0, 0, 1, 2, 3, 4})
	f.Add([]byte{0x14, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 'n', 'o'})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseMessage(b)
		if err != nil {
			return
		}
		b[1] = 0 // reserved
		if again := appendMessage(nil, &m); !bytes.Equal(again, b) {
			t.Errorf("% x became % x", b, again)
		}
	})
}
