package dcep

import (
	"bytes"
	"errors"
	"testing"
)

// The layout of RFC 8832, Section 5.1, Figure 1.
func TestOpenGolden(t *testing.T) {
	o := Open{Type: LifetimeLimited | Unordered, Priority: 0x0102, Reliability: 0x03040506,
		Label: []byte("chat"), Protocol: []byte("v1")}
	want := []byte("\x03\x82\x01\x02\x03\x04\x05\x06\x00\x04\x00\x02chatv1")
	got, err := AppendOpen(nil, &o)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("AppendOpen = % x, %v; want % x", got, err, want)
	}
	var p Open
	if err := ParseOpen(got, &p); err != nil {
		t.Fatal(err)
	}
	if p.Type != o.Type || p.Priority != o.Priority || p.Reliability != o.Reliability ||
		string(p.Label) != "chat" || string(p.Protocol) != "v1" {
		t.Errorf("ParseOpen = %+v", p)
	}
	if got := AppendAck(nil); !bytes.Equal(got, []byte{2}) {
		t.Errorf("AppendAck = % x", got)
	}
}

// Section 5.1: for reliable channels the parameter is 0 and ignored.
func TestReliabilityParameterOfReliableChannels(t *testing.T) {
	b, _ := AppendOpen(nil, &Open{Reliability: 7})
	if !bytes.Equal(b[4:8], make([]byte, 4)) {
		t.Errorf("sent % x", b)
	}
	b[7] = 9
	var o Open
	if err := ParseOpen(b, &o); err != nil || o.Reliability != 0 {
		t.Errorf("ParseOpen = %+v, %v", o, err)
	}
}

func TestMalformed(t *testing.T) {
	for _, x := range []struct {
		name string
		b    string
		want error
	}{
		{"empty", "", ErrType},
		{"reserved type", "\x00", ErrType},
		{"acknowledgement", "\x02", ErrType},
		{"short header", "\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", ErrLength},
		{"short label", "\x03\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00x", ErrLength},
		{"short protocol", "\x03\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x02xy", ErrLength},
		{"longer than it says", "\x03\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00xy", ErrLength},
		{"channel type 3", "\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", ErrChannelType},
		{"channel type 0x7f", "\x03\x7f\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", ErrChannelType},
	} {
		t.Run(x.name, func(t *testing.T) {
			var o Open
			if err := ParseOpen([]byte(x.b), &o); !errors.Is(err, x.want) {
				t.Errorf("ParseOpen: %v, want %v", err, x.want)
			}
		})
	}
	for b, want := range map[string]error{"": ErrType, "\x00": ErrType, "\x01": ErrType, "\x04": ErrType} {
		if _, err := TypeOf([]byte(b)); !errors.Is(err, want) {
			t.Errorf("TypeOf(% x): %v, want %v", b, err, want)
		}
	}
	for _, b := range []string{"\x02", "\x02\x00\x00\x00"} { // the second is pion's
		if got, err := TypeOf([]byte(b)); got != TypeAck || err != nil {
			t.Errorf("TypeOf(% x) = %v, %v, want an acknowledgement", b, got, err)
		}
	}
}

func TestLongestOpen(t *testing.T) {
	o := Open{Label: make([]byte, MaxString), Protocol: make([]byte, MaxString)}
	b, err := AppendOpen(nil, &o)
	if err != nil || len(b) != MaxLen {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	var p Open
	if err := ParseOpen(b, &p); err != nil || len(p.Label) != MaxString || len(p.Protocol) != MaxString {
		t.Errorf("ParseOpen: %v", err)
	}
	o.Protocol = make([]byte, MaxString+1)
	if _, err := AppendOpen(nil, &o); !errors.Is(err, ErrLength) {
		t.Errorf("AppendOpen of a protocol that is too long: %v", err)
	}
	if _, err := AppendOpen(nil, &Open{Type: 3}); !errors.Is(err, ErrChannelType) {
		t.Errorf("AppendOpen of an unknown type: %v", err)
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	b, _ := AppendOpen(nil, &Open{Label: []byte("label"), Protocol: []byte("protocol")})
	var o Open
	if n := testing.AllocsPerRun(100, func() {
		if ParseOpen(b, &o) != nil {
			t.Fatal("not parsed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
