package sctp_test

import "github.com/weftstack/weft/sctp/wire"

// strayPacket returns a packet with a DATA chunk for nobody.
func strayPacket() []byte {
	b := wire.AppendHeader(nil, wire.Header{SrcPort: 1, DstPort: 2, VTag: 0x12345678})
	b = wire.AppendData(b, wire.Data{TSN: 1, Begin: true, End: true, Payload: []byte("abcd")})
	wire.SetChecksum(b)
	return b
}
