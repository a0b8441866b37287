package prefetch

import (
	"testing"
	"unsafe"
)

// TestRangeReadsNothing asks for ranges of all lengths and places, the end of a
// page and memory that is not there among them: a prefetch never faults.
func TestRangeReadsNothing(t *testing.T) {
	mem := make([]byte, 3*4096)
	for off := range uintptr(130) {
		for n := range uintptr(200) {
			Range(unsafe.Pointer(&mem[off]), n)
		}
	}
	Range(unsafe.Pointer(&mem[len(mem)-1]), 1<<20)
	Range(nil, 1<<16)
	for i, b := range mem {
		if b != 0 {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
	if n := testing.AllocsPerRun(100, func() { Range(unsafe.Pointer(&mem[0]), 4096) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkScattered sums one word of each of many objects that are together
// larger than the cache, several of each object: fetched ahead, or as they come.
func BenchmarkScattered(b *testing.B) {
	const size, objects = 8 << 10, 32 << 10
	mem := make([]byte, size*objects)
	for i := range mem {
		mem[i] = byte(i)
	}
	for _, ahead := range []bool{false, true} {
		name := "ahead=false"
		if ahead {
			name = "ahead=true"
		}
		b.Run(name, func(b *testing.B) {
			sum, at := byte(0), 0
			for b.Loop() {
				at = (at*5 + 12345) & (objects - 1)
				o := mem[at*size:][:size]
				if ahead {
					Range(unsafe.Pointer(&o[0]), size/2)
				}
				// Each address depends on what was read before, as pointers do.
				for k := 0; k < size/2; k += 64 {
					sum += o[k+int(sum&7)]
				}
			}
			_ = sum
		})
	}
}
