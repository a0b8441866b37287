// Package prefetch asks the processor to bring memory into its cache ahead of its
// use. Where memory is larger than the cache, fetching many lines at the same time
// takes little longer than waiting for one.
package prefetch

import "unsafe"

// LineSize is what a line of the cache is taken to be, in bytes.
const LineSize = 64

// Range asks for n bytes at p, and waits for none of them. It reads and changes
// nothing: p may point to memory that others are using. On processors that it has
// no instruction for it does nothing.
func Range(p unsafe.Pointer, n uintptr) {
	// From the beginning of the first line to the end of the last one.
	off := uintptr(p) & (LineSize - 1)
	lines(p, int((off+n+LineSize-1)/LineSize))
}
