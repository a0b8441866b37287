package ddpmpa

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/weftstack/weft/ddp"
)

// Sizes of FPDUs (RFC 5044, Sections 4.1 to 4.3).
const (
	lengthLen = 2
	crcLen    = 4
	markerLen = 4
	// MarkerInterval is how far markers are apart in the TCP stream.
	MarkerInterval = 512
	// perMarker is how much else fits between two markers.
	perMarker = MarkerInterval - markerLen
	// MaxULPDU is the largest ULPDU that its length field can tell of.
	MaxULPDU = 1<<16 - 1
	// MaxMULPDU is the largest ULPDU that may be sent (RFC 5044, Section 3).
	MaxMULPDU = 64768
	// MaxFPDU is the size of the largest FPDU, with markers.
	MaxFPDU = 66080
	// minMULPDU is the least MULPDU (RFC 5044, Section 4.5).
	minMULPDU = 128
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// MULPDU returns the size of the largest ULPDU that fits a TCP segment of emss
// octets (RFC 5044, Section 4.5), from 128 to MaxMULPDU.
func MULPDU(emss int, markers bool) int {
	emss = min(max(emss, 0), MaxULPDU)
	n := emss - (lengthLen + crcLen + emss%4)
	if markers {
		n -= markerLen * ((emss + MarkerInterval - 1) / MarkerInterval)
	}
	return min(max(n, minMULPDU), MaxMULPDU)
}

// framing is the state of one direction: what both sides must know alike.
type framing struct {
	markers, crc bool
	pos          int // in the stream, modulo MarkerInterval
}

// size returns the size on the wire of an FPDU at the current position, and
// how much of that is a marker in front of it.
func (f *framing) size(ulpdu int) (total, lead int) {
	rest := (lengthLen+ulpdu+3)&^3 + crcLen
	if !f.markers {
		return rest, 0
	}
	if f.pos == 0 {
		lead = markerLen
	}
	total = lead + rest
	if first := MarkerInterval - (f.pos + lead); rest > first {
		total += markerLen * ((rest - first + perMarker - 1) / perMarker)
	}
	return total, lead
}

// Framer makes FPDUs. The zero Framer makes them without markers and CRCs.
type Framer struct{ f framing }

// NewFramer returns a Framer for a connection that enters full operation.
func NewFramer(markers, crc bool) *Framer {
	return &Framer{framing{markers: markers, crc: crc}}
}

// Append appends to b the FPDU with the ULPDU that is header and body
// together, at most MaxULPDU octets.
func (fr *Framer) Append(b, header, body []byte) []byte {
	f := &fr.f
	n := len(header) + len(body)
	total, lead := f.size(n)
	start := len(b)
	b = append(b, 0, 0, 0, 0)[:start+lead] // a marker that points to nothing
	fpdu := len(b)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	var pad [3]byte
	if !f.markers {
		b = append(append(b, header...), body...)
		b = append(b, pad[:-(lengthLen+n)&3]...)
	} else {
		for _, p := range [...][]byte{header, body, pad[:-(lengthLen+n)&3]} {
			b = f.interleave(b, p, start, fpdu)
		}
		b = f.mark(b, start, fpdu)
	}
	var sum uint32
	if f.crc {
		sum = crc32.Checksum(b[start:], castagnoli)
	}
	// As iSCSI sends it: the least significant octet first.
	b = binary.LittleEndian.AppendUint32(b, sum)
	f.pos = (f.pos + total) % MarkerInterval
	return b
}

// mark appends a marker if one is due. b[start:] is what follows f.pos.
func (f *framing) mark(b []byte, start, fpdu int) []byte {
	if (f.pos+len(b)-start)%MarkerInterval != 0 {
		return b
	}
	return binary.BigEndian.AppendUint32(b, uint32(uint16(len(b)-fpdu)))
}

// interleave appends p, and markers where they are due.
func (f *framing) interleave(b, p []byte, start, fpdu int) []byte {
	for len(p) > 0 {
		b = f.mark(b, start, fpdu)
		n := min(len(p), MarkerInterval-(f.pos+len(b)-start)%MarkerInterval)
		b, p = append(b, p[:n]...), p[n:]
	}
	return b
}

// Deframer takes FPDUs apart. It keeps nothing of the stream but a position:
// the caller holds what is not complete yet, at most MaxFPDU octets. The zero
// Deframer expects neither markers nor CRCs.
type Deframer struct {
	f     framing
	fault ddp.Fault
	bare  []byte // the last ULPDU without the markers that were in it
}

// NewDeframer returns a Deframer for a connection that enters full operation.
func NewDeframer(markers, crc bool) *Deframer {
	return &Deframer{f: framing{markers: markers, crc: crc}}
}

// Next takes the first FPDU off b. n is its size on the wire, 0 if b does not
// hold all of it yet. ulpdu aliases b or the Deframer, and is valid until the
// next call. The error is FaultCRC or FaultMarker, and then the same forever:
// RFC 5044, Section 8: "it MUST NOT pass or deliver any additional FPDUs".
func (d *Deframer) Next(b []byte) (ulpdu []byte, n int, err error) {
	if d.fault != 0 {
		return nil, 0, d.fault
	}
	lead := 0
	if d.f.markers && d.f.pos == 0 {
		lead = markerLen
	}
	if len(b) < lead+lengthLen {
		return nil, 0, nil
	}
	// FPDUs and markers come in multiples of 4 octets, so no marker is inside
	// the length field.
	size := int(binary.BigEndian.Uint16(b[lead:]))
	total, _ := d.f.size(size)
	if len(b) < total {
		return nil, 0, nil
	}
	b = b[:total]
	body := b[:total-crcLen]
	if d.f.crc && crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[total-crcLen:]) {
		d.fault = FaultCRC
		return nil, 0, d.fault
	}
	if total == lead+(lengthLen+size+3)&^3+crcLen { // no marker but that in front
		if lead > 0 && pointer(b) != 0 {
			d.fault = FaultMarker
			return nil, 0, d.fault
		}
		ulpdu = b[lead+lengthLen : lead+lengthLen+size]
	} else if ulpdu = d.unmark(body, lead, size); ulpdu == nil {
		d.fault = FaultMarker
		return nil, 0, d.fault
	}
	d.f.pos = (d.f.pos + total) % MarkerInterval
	return ulpdu, total, nil
}

// pointer returns the FPDUPTR of a marker. The two lowest bits count as zero
// (RFC 5044, Section 4.2).
func pointer(marker []byte) uint16 { return binary.BigEndian.Uint16(marker[2:]) &^ 3 }

// unmark checks and takes out the markers. It returns nil if one of them does
// not point to the start of this FPDU.
func (d *Deframer) unmark(b []byte, lead, size int) []byte {
	if lead > 0 && pointer(b) != 0 {
		return nil
	}
	out := d.bare[:0]
	for at := lead; at < len(b); {
		into := (d.f.pos + at) % MarkerInterval
		if into == 0 {
			if pointer(b[at:]) != uint16(at-lead) {
				return nil
			}
			at += markerLen
			into = markerLen
		}
		n := min(len(b)-at, MarkerInterval-into)
		out = append(out, b[at:at+n]...)
		at += n
	}
	d.bare = out
	return out[lengthLen : lengthLen+size : lengthLen+size]
}
