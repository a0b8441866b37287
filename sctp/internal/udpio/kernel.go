package udpio

import (
	"strconv"
	"strings"
)

// equalSegmentsCorrupt reports whether a Linux release corrupts batches of equal
// lengths under UDP_SEGMENT: 7.0 up to and including 7.1.4 do.
func equalSegmentsCorrupt(release string) bool {
	v := kernelVersion(release)
	lo, hi := [3]int{7, 0, 0}, [3]int{7, 1, 4}
	return !less(v, lo) && !less(hi, v)
}

// kernelVersion reads "6.18.44-generic" as 6, 18, 44; what it cannot read is 0.
func kernelVersion(release string) (v [3]int) {
	i := strings.IndexFunc(release, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if i >= 0 {
		release = release[:i]
	}
	for i, part := range strings.SplitN(release, ".", 4) {
		if i == len(v) {
			break
		}
		v[i], _ = strconv.Atoi(part)
	}
	return v
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
