//go:build !linux

package testenv

import "testing"

// OwnNetwork skips the test: only Linux gives a goroutine a network of its own.
func OwnNetwork(t testing.TB) {
	t.Helper()
	Lacking(t, "network namespaces are Linux's")
}
