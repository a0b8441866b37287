package bench

import (
	"fmt"
	"math"
	"slices"
)

// Sample is the outcome of one experiment, repeated.
type Sample []float64

// Median returns the middle value, NaN of an empty sample.
func (s Sample) Median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Range returns the smallest and the largest value, NaN of an empty sample.
func (s Sample) Range() (low, high float64) {
	if len(s) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(s), slices.Max(s)
}

// String returns the median with the range behind it: "4.2 (3.9–5.1)".
func (s Sample) String() string {
	if len(s) == 0 {
		return "–"
	}
	low, high := s.Range()
	return fmt.Sprintf("%s (%s–%s)", Digits(s.Median()), Digits(low), Digits(high))
}

// Digits formats a value with three significant digits, and integers whole.
func Digits(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	case a >= 0.01:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// Jain returns the fairness index of R. Jain, D. Chiu and W. Hawe (1984) of
// shares of one resource: 1 if all are equal, 1/n if one has everything.
func Jain(shares ...float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return math.NaN()
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// Exponent returns the slope of the line that fits the points best on
// logarithmic axes: 0 if y does not depend on x, 1 if it grows in proportion.
func Exponent(x, y []float64) float64 {
	n := float64(len(x))
	var sx, sy, sxx, sxy float64
	for i := range x {
		a, b := math.Log(x[i]), math.Log(y[i])
		sx, sy, sxx, sxy = sx+a, sy+b, sxx+a*a, sxy+a*b
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
