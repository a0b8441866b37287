package bench

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Size of plots, in pixels.
const (
	plotWidth  = 720
	plotHeight = 440
	plotLeft   = 80
	plotRight  = 20
	plotTop    = 40
	plotBottom = 60
)

// plotAxis maps values to a logarithmic axis.
type plotAxis struct {
	lo, hi   float64 // logarithms
	from, to float64 // pixels
}

func (a plotAxis) at(v float64) float64 {
	return a.from + (math.Log2(v)-a.lo)/max(a.hi-a.lo, 1e-9)*(a.to-a.from)
}

// svg draws the first column by message size, both logarithmic. Sizes and
// values of 0 have no place there.
func (r *result) svg(t *test) []byte {
	x := plotAxis{math.Inf(1), math.Inf(-1), plotLeft, plotWidth - plotRight}
	y := plotAxis{math.Inf(1), math.Inf(-1), plotHeight - plotBottom, plotTop}
	type point struct{ x, y float64 }
	var points []point
	for _, row := range r.Rows {
		p := point{float64(row.Size), row.Values[0]}
		if p.x <= 0 || p.y <= 0 {
			continue
		}
		points = append(points, p)
		x.lo, x.hi = min(x.lo, math.Log2(p.x)), max(x.hi, math.Log2(p.x))
		y.lo, y.hi = min(y.lo, math.Floor(math.Log2(p.y))), max(y.hi, math.Ceil(math.Log2(p.y)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="22" font-size="15">%s</text>`+"\n",
		plotLeft, html.EscapeString(fmt.Sprintf("%s, %d ranks, %s", t.title, r.Ranks, r.how())))
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">message size (bytes)</text>`+"\n",
		(plotLeft+plotWidth-plotRight)/2, plotHeight-14)
	fmt.Fprintf(&b, `<text transform="translate(18 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", plotHeight/2,
		html.EscapeString(r.Columns[0]))
	if len(points) > 0 {
		for e := math.Ceil(x.lo); e <= x.hi; e += max(1, math.Ceil((x.hi-x.lo)/10)) {
			at := x.at(math.Exp2(e))
			plotLine(&b, at, plotTop, at, plotHeight-plotBottom)
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at, plotHeight-plotBottom+18,
				sizeLabel(int(math.Exp2(e))))
		}
		for e := y.lo; e <= y.hi; e += max(1, math.Ceil((y.hi-y.lo)/10)) {
			at := y.at(math.Exp2(e))
			plotLine(&b, plotLeft, at, plotWidth-plotRight, at)
			fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%.6g</text>`+"\n", plotLeft-6, at+4, math.Exp2(e))
		}
		b.WriteString(`<polyline fill="none" stroke="#0055aa" stroke-width="2" points="`)
		for _, p := range points {
			fmt.Fprintf(&b, "%.1f,%.1f ", x.at(p.x), y.at(p.y))
		}
		b.WriteString("\"/>\n")
		for _, p := range points {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="#0055aa"/>`+"\n", x.at(p.x), y.at(p.y))
		}
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func sizeLabel(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%dM", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%dK", n>>10)
	}
	return fmt.Sprint(n)
}

func plotLine(b *strings.Builder, x1, y1, x2, y2 float64) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", x1, y1, x2, y2)
}
