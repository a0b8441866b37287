package bench

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// Plot is a diagram with logarithmic axes.
type Plot struct {
	Title, X, Y string // captions
	Curves      []Curve
}

// Curve is a row of points, by rising X. All values are positive.
type Curve struct {
	Name string
	X, Y []float64
}

// Measures of a diagram in pixels.
const (
	plotWidth, plotHeight = 640, 400
	plotLeft, plotRight   = 70, 20
	plotTop, plotBottom   = 40, 50
)

// colours of the curves; they are distinct with red-green colour blindness, too.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"}

// axis maps values to pixels, from one power of ten to another.
type axis struct {
	low, high  int // exponents
	start, end float64
}

func newAxis(values [][]float64, start, end float64) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, vs := range values {
		for _, v := range vs {
			low, high = min(low, math.Log10(v)), max(high, math.Log10(v))
		}
	}
	a := axis{int(math.Floor(low + 1e-9)), int(math.Ceil(high - 1e-9)), start, end}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	return a
}

func (a axis) at(v float64) float64 {
	return a.start + (a.end-a.start)*(math.Log10(v)-float64(a.low))/float64(a.high-a.low)
}

// SVG draws the diagram.
func (p *Plot) SVG() []byte {
	var xs, ys [][]float64
	for _, c := range p.Curves {
		xs, ys = append(xs, c.X), append(ys, c.Y)
	}
	x := newAxis(xs, plotLeft, plotWidth-plotRight)
	y := newAxis(ys, plotHeight-plotBottom, plotTop)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	text := func(x, y float64, anchor, more, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor, more, html.EscapeString(s))
	}
	line := func(x1, y1, x2, y2 float64, colour string) {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
	}
	text(plotWidth/2, 20, "middle", ` font-size="14"`, p.Title)
	text((plotLeft+plotWidth-plotRight)/2, plotHeight-10, "middle", "", p.X)
	text(16, plotHeight/2, "middle", fmt.Sprintf(` transform="rotate(-90 16 %d)"`, plotHeight/2), p.Y)
	for e := x.low; e <= x.high; e++ {
		v := math.Pow10(e)
		line(x.at(v), y.start, x.at(v), y.end, "#ddd")
		text(x.at(v), y.start+16, "middle", "", tick(v))
	}
	for e := y.low; e <= y.high; e++ {
		v := math.Pow10(e)
		line(x.start, y.at(v), x.end, y.at(v), "#ddd")
		text(x.start-6, y.at(v)+4, "end", "", tick(v))
	}
	for i, c := range p.Curves {
		colour := colours[i%len(colours)]
		fmt.Fprintf(&b, `<polyline fill="none" stroke-width="2" stroke="%s" points="`, colour)
		for k := range c.X {
			fmt.Fprintf(&b, "%.1f,%.1f ", x.at(c.X[k]), y.at(c.Y[k]))
		}
		fmt.Fprint(&b, `"/>`+"\n")
		for k := range c.X {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x.at(c.X[k]), y.at(c.Y[k]), colour)
		}
		text(plotLeft+12, plotTop+16+16*float64(i), "start", fmt.Sprintf(` fill="%s"`, colour), c.Name)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// tick labels a power of ten.
func tick(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%g", v)
}
