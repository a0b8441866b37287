package interop

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/golden"
	"github.com/weftstack/weft/internal/testenv"
	"github.com/weftstack/weft/sctp/wire"
)

// TestVectorsDecode has an independent decoder read the golden vectors of
// package wire, parameters and causes in chunks that our encoders build: every
// chunk must have the type that its name says, no packet may be malformed, and
// every CRC32c must be right.
func TestVectorsDecode(t *testing.T) {
	bounded(t)
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		testenv.Lacking(t, "tshark not found: install Debian's tshark")
	}
	vectors := golden.Read(t, "../sctp/wire/testdata/golden.txt")
	// A classic capture file, microseconds, link type raw IP.
	capture := []byte{
		0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 101,
	}
	for _, v := range vectors {
		pkt := wire.AppendHeader(nil, wire.Header{SrcPort: 5001, DstPort: 5002, VTag: 1})
		pkt = append(pkt, chunkOf(v)...)
		wire.SetChecksum(pkt)
		capture = appendRecord(capture, pkt)
	}
	file := filepath.Join(t.TempDir(), "vectors.pcap")
	if err := os.WriteFile(file, capture, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := command(t, tshark, "-r", file, "-o", "sctp.checksum:crc-32c", "-T", "fields", "-E", "separator=;",
		"-e", "sctp.checksum.status", "-e", "sctp.chunk_type", "-e", "_ws.malformed", "-e", "_ws.expert.message").Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(vectors) {
		t.Fatalf("tshark reads %d packets, want %d", len(lines), len(vectors))
	}
	for i, v := range vectors {
		f := strings.SplitN(strings.TrimSpace(lines[i]), ";", 4)
		if v.Name == "unrecognized" && len(f) == 4 {
			// The decoder wants the parameter inside to be padded within the
			// length of the outer one. RFC 9260, Section 3.3.3.1.2, has it
			// copied with type, length and value, so its padding is the outer
			// one's.
			f[2], f[3] = "", ""
		}
		if len(f) != 4 || f[0] != "1" || f[2] != "" {
			t.Errorf("%s %s: %q, want checksum status 1 and nothing malformed", v.Kind, v.Name, lines[i])
			continue
		}
		// The type of a chunk inside an error cause comes second.
		types := strings.Split(f[1], ",")
		if want := wire.ChunkType(chunkOf(v)[0]); types[0] != numeral(want) {
			t.Errorf("%s %s: chunk type %s, want %s", v.Kind, v.Name, f[1], numeral(want))
		}
		if f[3] != "" && f[3] != "Zero Advertised Receiver Window Credit" {
			t.Errorf("%s %s: the decoder remarks: %s", v.Kind, v.Name, f[3])
		}
	}
}

func numeral(t wire.ChunkType) string { return strconv.Itoa(int(t)) }

// chunkOf returns the vector if it is a chunk, and otherwise a chunk in which
// the parameter or cause may stand.
func chunkOf(v golden.Vector) []byte {
	switch v.Kind {
	case "chunk":
		return v.Bytes
	case "cause":
		return wire.AppendOpError(nil, wire.OpError{Causes: v.Bytes})
	}
	switch wire.ParamType(binary.BigEndian.Uint16(v.Bytes)) {
	case wire.ParamHeartbeatInfo:
		it := wire.NewParams(v.Bytes)
		it.Next()
		return wire.AppendHeartbeat(nil, wire.Heartbeat{Info: it.Param().Value})
	case wire.ParamOutgoingReset, wire.ParamIncomingReset, wire.ParamTSNReset, wire.ParamReConfigResponse,
		wire.ParamAddOutgoing, wire.ParamAddIncoming:
		return wire.AppendReConfig(nil, wire.ReConfig{Params: v.Bytes})
	case wire.ParamAddIP, wire.ParamDeleteIP, wire.ParamSetPrimary:
		return wire.AppendAsconf(nil, wire.Asconf{Seq: 1, Params: v.Bytes})
	case wire.ParamErrorCause, wire.ParamSuccess:
		return wire.AppendAsconfAck(nil, wire.AsconfAck{Seq: 1, Params: v.Bytes})
	}
	return wire.AppendInit(nil, wire.Init{Tag: 1, RWND: 65536, OutStreams: 1, InStreams: 1, Params: v.Bytes})
}

// appendRecord appends an SCTP packet in an IPv4 packet to a capture file.
func appendRecord(b, pkt []byte) []byte {
	const ipHeader, protoSCTP = 20, 132
	n := uint32(ipHeader + len(pkt))
	b = append(b, make([]byte, 8)...) // time
	b = binary.BigEndian.AppendUint32(b, n)
	b = binary.BigEndian.AppendUint32(b, n)
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = append(b, 0, 0, 0, 0, 64, protoSCTP, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1)
	return append(b, pkt...)
}
