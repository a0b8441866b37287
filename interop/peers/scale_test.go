package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestScaleDrawsEveryCurve(t *testing.T) {
	tl, dir := built(t), t.TempDir()
	var b bytes.Buffer
	s := &settings{time: 10 * time.Millisecond, write: true}
	if err := scaleTo(t.Context(), s, tl, &b, 100, dir); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"of 100 associations", "| associations | ", "| streams | ", "| queue pairs | ", "| outstanding TSNs | ", "handshakes per second"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for _, name := range []string{"scale-cpu.svg", "scale-memory.svg"} {
		if svg, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Contains(svg, []byte("<polyline")) || bytes.Contains(svg, []byte("NaN")) {
			t.Errorf("%s: %v\n%s", name, err, svg)
		}
	}
}

func TestBenchmarkLinesAreRead(t *testing.T) {
	const out = "BenchmarkSendAck/outstanding=10000/rack=true-2 \t 1 \t 9 ns/op\t 65.6 MB/s\t 152.4 ns/TSN\t 0 B/op\n"
	m := tsnLine.FindStringSubmatch(out)
	if len(m) != 3 || m[1] != "10000" || m[2] != "152.4" {
		t.Errorf("read %q", m)
	}
}

func TestTens(t *testing.T) {
	if got := tens(1000); len(got) != 4 || got[3] != 1000 {
		t.Errorf("steps %v, want 1 to 1000", got)
	}
	c := curve{x: []float64{1, 10}, y: []float64{3, 30}}
	if c.text(10) != "30" || c.text(5) != "" || c.describe() != "n^1.00" {
		t.Errorf("%q, %q, %q", c.text(10), c.text(5), c.describe())
	}
}
