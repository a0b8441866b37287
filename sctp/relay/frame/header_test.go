package frame

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

var header = Header{
	Hops: 5, Stream: 0x1234, Job: 0x56789a, Attempt: 0xbc,
	From: Address{1, 2, 3}, To: Address{4, 5, 6}, Incarnation: 0x01020304, Seq: 0xfffffffe,
}

func samples() []Frame {
	with := func(t Type, flags Flags, set func(*Frame)) Frame {
		f := Frame{Header: header}
		f.Type, f.Flags = t, flags
		if set != nil {
			set(&f)
		}
		return f
	}
	return []Frame{
		with(Data, First|Last|AckNow, func(f *Frame) { f.PPID, f.Payload = 51, []byte("whole") }),
		with(Data, Unordered, func(f *Frame) { f.Payload = []byte("middle") }),
		with(Single, Fresh, func(f *Frame) { f.PPID, f.Payload = 1<<32-1, []byte{0} }),
		with(Cut, 0, nil),
		with(Ack, Resend|ResendSingle, func(f *Frame) { f.PeerIncarnation, f.Window, f.SingleNext = 1, 2, 3 }),
		with(Probe, Fresh, func(f *Frame) { f.SingleNext = 9 }),
		with(Refuse, 0, func(f *Frame) { f.Reason = Loop }),
		{Header: Header{Type: Ping}},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, want := range samples() {
		b := Append(nil, &want)
		var got Frame
		if err := Parse(b, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Parse(%x) = %+v, %v, want %+v", b, got, err, want)
		}
	}
}

// The first bytes are those of docs/gateway-protocol.md.
func TestGolden(t *testing.T) {
	f := samples()[0]
	want := []byte{
		0x11, 5<<5 | 1 | 2 | 16, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc,
		0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xfe,
		0, 0, 0, 51, 'w', 'h', 'o', 'l', 'e',
	}
	if got := Append(nil, &f); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	var f Frame
	for _, s := range samples() {
		b := Append(nil, &s)
		for n := range b {
			if s.Type <= Single && n > len(b)-len(s.Payload) {
				break // a shorter payload is a payload
			}
			if err := Parse(b[:n], &f); err == nil {
				t.Errorf("type %d cut to %d of %d bytes was accepted", s.Type, n, len(b))
			}
		}
		if s.Type > Single {
			if err := Parse(append(b, 0), &f); !errors.Is(err, ErrShort) {
				t.Errorf("type %d with a byte too many: %v", s.Type, err)
			}
		}
		b[0] = 2<<4 | b[0]&15
		var v VersionError
		if err := Parse(b, &f); !errors.As(err, &v) || v != 2 {
			t.Errorf("version 2: %v", err)
		}
	}
	for _, b := range [][]byte{nil, {0x11}, {0x10, 0}, {0x1f, 0}, make([]byte, MaxSize+1)} {
		if err := Parse(b, &f); err == nil {
			t.Errorf("Parse(%x) accepted", b[:min(len(b), 4)])
		}
	}
}

func TestSet(t *testing.T) {
	f := samples()[0]
	b := Append(nil, &f)
	SetHops(b, 2)
	SetAttempt(b, 7, true)
	var got Frame
	if err := Parse(b, &got); err != nil || got.Hops != 2 || got.Attempt != 7 || got.Flags != First|Last|AckNow|Fresh {
		t.Errorf("after SetHops and SetAttempt: %+v, %v", got, err)
	}
	SetAttempt(b, 8, false)
	if _ = Parse(b, &got); got.Flags != First|Last|AckNow || got.Hops != 2 {
		t.Errorf("after SetAttempt: flags %x, hops %d", got.Flags, got.Hops)
	}
	a := samples()[4]
	b = Append(nil, &a)
	SetWindow(b, 77)
	if _ = Parse(b, &got); got.Window != 77 || got.SingleNext != 3 || got.PeerIncarnation != 1 {
		t.Errorf("after SetWindow: %+v", got)
	}
}

// What a bulk transfer sends beside its payload stays within 2 %.
func TestHeaderShare(t *testing.T) {
	const packet, message = 1440, 64 << 10 // MTU 1500 less IP, UDP, SCTP and I-DATA headers
	headers, left := 0, message
	for first := true; left > 0; first = false {
		h := HeaderSize
		if first {
			h = Overhead
		}
		left -= min(left, packet-h)
		headers += h
	}
	if share := float64(headers) / float64(headers+message); share > 0.02 {
		t.Errorf("%d bytes of headers are %.2f %% of what is sent", headers, 100*share)
	}
}

func TestCodecDoesNotAllocate(t *testing.T) {
	s := samples()
	buf := make([]byte, 0, 256)
	var f Frame
	if n := testing.AllocsPerRun(100, func() {
		for i := range s {
			if err := Parse(Append(buf, &s[i]), &f); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
