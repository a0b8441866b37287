package datatype

import (
	"fmt"
	"testing"
)

// benchTypes are layouts of 64 KiB of data.
func benchTypes() map[string]*Type {
	num := must(Of[float64]())
	record := must(Struct([]int{1, 2}, []int{0, 8}, []*Type{must(Of[int32]()), num}))
	return map[string]*Type{
		"vector8":   must(Vector(8192, 1, 2, num)),
		"vector24":  must(Vector(65536/24, 3, 6, num)),
		"vector32":  must(Vector(2048, 4, 8, num)),
		"vector56":  must(Vector(65536/56, 7, 14, num)),
		"vector256": must(Vector(256, 32, 64, num)),
		"records":   must(Contiguous(65536/20, must(Resized(record, 0, 32)))),
	}
}

func BenchmarkPack(b *testing.B) {
	for name, t := range benchTypes() {
		mem, packed := make([]byte, t.Extent()), make([]byte, t.Size())
		b.Run(fmt.Sprintf("type=%s/way=pack", name), func(b *testing.B) {
			b.SetBytes(int64(t.Size()))
			b.ReportAllocs()
			for b.Loop() {
				t.Pack(packed, mem, 1)
			}
		})
		b.Run(fmt.Sprintf("type=%s/way=unpack", name), func(b *testing.B) {
			b.SetBytes(int64(t.Size()))
			b.ReportAllocs()
			for b.Loop() {
				t.Unpack(mem, packed, 1)
			}
		})
		b.Run(fmt.Sprintf("type=%s/way=runs", name), func(b *testing.B) {
			b.SetBytes(int64(t.Size()))
			b.ReportAllocs()
			sum := 0
			for b.Loop() {
				for _, n := range t.Runs(1) {
					sum += n
				}
			}
		})
	}
}
