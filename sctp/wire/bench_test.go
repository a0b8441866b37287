package wire

import (
	"fmt"
	"testing"
)

func BenchmarkChecksum(b *testing.B) {
	for _, n := range []int{28, 92, 1472, 8972, 65507} {
		b.Run(fmt.Sprintf("size=%d", n), func(b *testing.B) {
			pkt := make([]byte, n)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				sinkSum = Checksum(pkt)
			}
		})
	}
}

// dataPacket is a full packet as bulk transfer sends it.
func dataPacket(sack bool) []byte {
	pkt := AppendHeader(nil, Header{SrcPort: 1, DstPort: 2, VTag: 3})
	if sack {
		pkt = AppendSack(pkt, 1, 1<<20, []GapBlock{{2, 3}, {5, 9}}, nil)
	}
	return AppendData(pkt, Data{TSN: 1, Payload: make([]byte, 1472-len(pkt)-DataHeaderLen)})
}

func BenchmarkParse(b *testing.B) {
	tiny := AppendHeader(nil, Header{})
	for range 50 {
		tiny = AppendData(tiny, Data{Payload: make([]byte, 12)})
	}
	for _, bb := range []struct {
		name string
		pkt  []byte
	}{
		{"chunks=data", dataPacket(false)},
		{"chunks=sack+data", dataPacket(true)},
		{"chunks=50data", tiny},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				parseAll(bb.pkt)
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	buf := make([]byte, 0, 2048)
	payload := make([]byte, 1440)
	gaps := []GapBlock{{2, 3}, {5, 9}}
	b.Run("chunk=data", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sinkInt = len(AppendData(buf, Data{TSN: 1, SID: 2, Begin: true, End: true, Payload: payload}))
		}
	})
	b.Run("chunk=dataheader", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sinkInt = len(AppendDataHeader(buf, Data{TSN: 1, SID: 2, Begin: true, End: true}, len(payload)))
		}
	})
	b.Run("chunk=sack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sinkInt = len(AppendSack(buf, 1, 1<<20, gaps, nil))
		}
	})
}

func BenchmarkDescribe(b *testing.B) {
	pkt := dataPacket(true)
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		sinkInt = len(AppendDescription(buf, pkt))
	}
}
