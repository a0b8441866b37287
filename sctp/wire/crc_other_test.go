//go:build !amd64

package wire

import "testing"

// overCRC32c runs f with the one way to compute it.
func overCRC32c[T interface {
	Run(string, func(T)) bool
	*testing.T | *testing.B
}](t T, f func(T)) {
	t.Run("by=8", f)
}
