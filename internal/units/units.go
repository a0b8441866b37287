// Package units reads and writes quantities as people type them on a command
// line.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// suffixes of a number of bytes, longest first where one ends another. Powers of
// ten have a plain B, powers of two an iB; a single letter means a power of two,
// as in the tools of this field.
var suffixes = []struct {
	text string
	unit float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40},
	{"b", 1},
}

// Bytes is a number of bytes that a flag can set: "300000", "30KB", "30KiB",
// "1.5M".
type Bytes int64

// Set parses s. It implements flag.Value.
func (b *Bytes) Set(s string) error {
	v, err := ParseBytes(s)
	if err == nil {
		*b = Bytes(v)
	}
	return err
}

// String formats the number exactly, with the largest suffix that divides it.
func (b Bytes) String() string {
	for _, s := range []struct {
		text string
		unit Bytes
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if b != 0 && b%s.unit == 0 {
			return fmt.Sprintf("%d%s", b/s.unit, s.text)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// ParseBytes parses a number of bytes. The result is not negative and the
// number must be whole.
func ParseBytes(s string) (int64, error) {
	number, unit := strings.ToLower(strings.TrimSpace(s)), 1.0
	for _, suffix := range suffixes {
		if rest, ok := strings.CutSuffix(number, suffix.text); ok {
			number, unit = strings.TrimSpace(rest), suffix.unit
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if v *= unit; err != nil || !(v >= 0) || v >= 1<<62 || v != math.Trunc(v) {
		return 0, fmt.Errorf("%q is not a number of bytes (write 300000, 30KB or 30KiB)", s)
	}
	return int64(v), nil
}

// ParseRate parses bits per second: 1gbit, 100mbit, 64kbit, 1000000.
func ParseRate(s string) (float64, error) {
	number, unit := strings.ToLower(s), 1.0
	for _, suffix := range []struct {
		text string
		unit float64
	}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}} {
		if rest, ok := strings.CutSuffix(number, suffix.text); ok {
			number, unit = rest, suffix.unit
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if v *= unit; err != nil || !(v >= 0 && v <= 1e13) {
		return 0, fmt.Errorf("rate %q: want bits per second, such as 1gbit or 100mbit", s)
	}
	return v, nil
}
