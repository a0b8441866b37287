package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMedianAndRange(t *testing.T) {
	for _, tt := range []struct {
		s    Sample
		want float64
		text string
	}{
		{Sample{3, 1, 2}, 2, "2 (1–3)"}, {Sample{4, 1, 2, 3}, 2.5, "2.50 (1–4)"}, {Sample{0.5}, 0.5, "0.500 (0.500–0.500)"},
	} {
		if got := tt.s.Median(); got != tt.want {
			t.Errorf("median of %v = %v, want %v", []float64(tt.s), got, tt.want)
		}
		if got := tt.s.String(); got != tt.text {
			t.Errorf("text of %v = %q, want %q", []float64(tt.s), got, tt.text)
		}
	}
	if !math.IsNaN(Sample(nil).Median()) || Sample(nil).String() != "–" {
		t.Error("nothing has a median")
	}
}

func TestJain(t *testing.T) {
	if got := Jain(5, 5); got != 1 {
		t.Errorf("equal shares: %v, want 1", got)
	}
	if got := Jain(8, 0); got != 0.5 {
		t.Errorf("one of two has all: %v, want 0.5", got)
	}
}

func TestExponentOfPowers(t *testing.T) {
	x := []float64{1, 10, 100, 1000}
	for _, want := range []float64{0, 0.5, 1, 2} {
		var y []float64
		for _, v := range x {
			y = append(y, 7*math.Pow(v, want))
		}
		if got := Exponent(x, y); math.Abs(got-want) > 1e-9 {
			t.Errorf("exponent = %v, want %v", got, want)
		}
	}
}

func TestSectionIsReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	text := "# Title\n<!-- begin a -->\nold\n<!-- end a -->\nkept\n<!-- begin b -->\n<!-- end b -->\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"first\n\n", "second"} {
		if err := WriteSection(file, "a", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteSection(file, "b", []byte("new\n")); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(file)
	if want := "# Title\n<!-- begin a -->\nsecond\n<!-- end a -->\nkept\n<!-- begin b -->\nnew\n<!-- end b -->\n"; string(got) != want {
		t.Errorf("document:\n%s\nwant:\n%s", got, want)
	}
	if err := WriteSection(file, "c", nil); !errors.Is(err, ErrNoSection) {
		t.Errorf("a section that is not there: %v", err)
	}
}

func TestPlotIsWellFormed(t *testing.T) {
	p := Plot{Title: "a < b", X: "x", Y: "y", Curves: []Curve{{"one & two", []float64{1, 10, 1e5}, []float64{3, 3, 3}}, {"three", []float64{1}, []float64{0.02}}}}
	svg := p.SVG()
	d, circles := xml.NewDecoder(strings.NewReader(string(svg))), 0
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	if circles != 4 || strings.Contains(string(svg), "NaN") {
		t.Errorf("%d points drawn, want 4:\n%s", circles, svg)
	}
}

func TestOtherCPUIsWithinTheMachine(t *testing.T) {
	before, own, start := ReadSystemCPU(), CPUSeconds(), time.Now()
	x := 1.0
	for time.Since(start) < 30*time.Millisecond {
		x = math.Sqrt(x + 1)
	}
	if used := CPUSeconds() - own; used <= 0 || x == 0 {
		t.Errorf("used %v s of processor time", used)
	}
	if got := before.Others(CPUSeconds()-own, time.Since(start)); got < -1 {
		t.Errorf("others = %v", got)
	}
}

func TestProvenanceSaysWhenItWasNoisy(t *testing.T) {
	if s := Provenance(5, 0); !strings.Contains(s, "none disturbed") || !strings.Contains(s, "go1") {
		t.Error(s)
	}
	if s := Provenance(5, 2); !strings.Contains(s, "2 of which") {
		t.Error(s)
	}
}
