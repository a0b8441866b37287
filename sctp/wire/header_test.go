package wire

import (
	"bytes"
	"errors"
	"testing"
)

func TestHeader(t *testing.T) {
	// RFC 9260, Section 3.1; only the checksum is least significant byte first.
	b := []byte{
		0x13, 0x89, 0x13, 0x8a,
		0x12, 0x34, 0x56, 0x78,
		0x04, 0x03, 0x02, 0x01,
	}
	want := Header{SrcPort: 5001, DstPort: 5002, VTag: 0x12345678, Checksum: 0x01020304}
	got, err := ParseHeader(b)
	if err != nil || got != want {
		t.Errorf("ParseHeader = %+v, %v; want %+v", got, err, want)
	}
	if out := AppendHeader([]byte("x"), want); !bytes.Equal(out[1:], b) {
		t.Errorf("AppendHeader = %x, want %x", out[1:], b)
	}
	for n := range HeaderLen {
		if _, err := ParseHeader(b[:n]); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d bytes: err %v, want %v", n, err, ErrTruncated)
		}
	}
}
