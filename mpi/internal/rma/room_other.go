//go:build !unix

package rma

// Room reports whether the system has n bytes of memory for the process, as far as that can be found out: here it cannot.
func Room(int) bool { return true }
