//go:build amd64 || arm64

package prefetch

import "unsafe"

// lines asks for n lines, from that of p on.
//
//go:noescape
func lines(p unsafe.Pointer, n int)
