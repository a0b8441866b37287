package units

import (
	"flag"
	"fmt"
	"io"
	"testing"
)

func TestParseBytes(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"300000", 300000, true}, {"30KB", 30000, true}, {"30KiB", 30720, true}, {"30k", 30720, true},
		{"1.5M", 3 << 19, true}, {"2 GiB", 2 << 30, true}, {"1TB", 1e12, true}, {"64b", 64, true},
		{"", 0, false}, {"-1", 0, false}, {"1.5", 0, false}, {"KiB", 0, false}, {"ten", 0, false}, {"NaN", 0, false},
		{"9e99", 0, false}, {"inf", 0, false}, {"30 KiB B", 0, false},
	} {
		got, err := ParseBytes(tt.in)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
	}
}

func TestBytesStringParsesBack(t *testing.T) {
	for _, v := range []Bytes{0, 1, 1000, 1024, 30 << 10, 5 << 20, 7 << 30, 1<<30 + 1} {
		var back Bytes
		if err := back.Set(v.String()); err != nil || back != v {
			t.Errorf("%d is written %q, read back as %d, %v", v, v, back, err)
		}
	}
}

func ExampleBytes() {
	size := Bytes(64 << 10)
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Var(&size, "size", "message size")
	fs.Parse([]string{"-size", "30KiB"})
	fmt.Println(int64(size), size)
	// Output: 30720 30KiB
}
