package wire_test

import (
	"fmt"
	"net/netip"

	"github.com/weftstack/weft/sctp/wire"
)

// A packet is a common header and chunks; the checksum comes last.
func Example_build() {
	pkt := make([]byte, 0, 1472)
	pkt = wire.AppendHeader(pkt, wire.Header{SrcPort: 5001, DstPort: 5002, VTag: 0x1a2b3c4d})
	pkt = wire.AppendSack(pkt, 41, 131072, []wire.GapBlock{{Start: 2, End: 3}}, nil)
	pkt = wire.AppendData(pkt, wire.Data{
		TSN: 7, SID: 1, SSN: 3, PPID: 46, Begin: true, End: true, Payload: []byte("hello"),
	})
	wire.SetChecksum(pkt)
	fmt.Println(wire.Describe(pkt))
	// Output:
	// 5001>5002 tag=1a2b3c4d: SACK cum=41 rwnd=131072 gap=2-3; DATA BE tsn=7 sid=1 ssn=3 ppid=46 len=5
}

// Reading goes from the header over the chunks to what each of them holds.
func Example_read() {
	pkt := wire.AppendHeader(nil, wire.Header{SrcPort: 5001, DstPort: 5002})
	params := wire.AppendAddr(nil, netip.MustParseAddr("192.0.2.1"))
	params = wire.AppendSupportedExtensions(params, wire.ChunkIData, wire.ChunkReConfig)
	pkt = wire.AppendInit(pkt, wire.Init{Tag: 99, RWND: 65536, OutStreams: 10, InStreams: 10, Params: params})
	wire.SetChecksum(pkt)

	if _, err := wire.ParseHeader(pkt); err != nil || !wire.VerifyChecksum(pkt) {
		return // drop and count
	}
	it := wire.NewChunks(pkt[wire.HeaderLen:])
	for it.Next() {
		c := it.Chunk()
		switch c.Type {
		case wire.ChunkInit:
			x, err := wire.ParseInit(c)
			if err != nil {
				return
			}
			fmt.Println("INIT with tag", x.Tag)
			params := wire.NewParams(x.Params)
			for params.Next() {
				switch p := params.Param(); p.Type {
				case wire.ParamIPv4, wire.ParamIPv6:
					a, err := wire.ParseAddr(p)
					fmt.Println("address", a, err)
				case wire.ParamSupportedExtensions:
					ext, err := wire.ParseSupportedExtensions(p)
					fmt.Println("interleaving", ext.Contains(wire.ChunkIData), err)
				}
			}
		default:
			if !c.Type.Known() && c.Type.StopsPacket() {
				return
			}
		}
	}
	fmt.Println("rest", it.Err())
	// Output:
	// INIT with tag 99
	// address 192.0.2.1 <nil>
	// interleaving true <nil>
	// rest <nil>
}

func ExampleNewCauses() {
	abort := wire.Abort{Causes: wire.AppendUserAbort(nil, []byte("rank 3 exited"))}
	it := wire.NewCauses(abort.Causes)
	for it.Next() {
		c := it.Cause()
		fmt.Println(c.Code)
		if c.Code == wire.CauseUserAbort {
			reason, _ := wire.ParseUserAbort(c)
			fmt.Printf("%s\n", reason)
		}
	}
	// Output:
	// user-initiated abort
	// rank 3 exited
}

// A chunk with parameters can be built where it will be sent.
func ExampleBeginChunk() {
	var b []byte
	at := len(b)
	b = wire.BeginChunk(b, wire.ChunkReConfig, 0)
	b = wire.AppendTSNReset(b, 7)
	b = wire.EndChunk(b, at)
	fmt.Printf("% x\n", b)
	// Output:
	// 82 00 00 0c 00 0f 00 08 00 00 00 07
}
