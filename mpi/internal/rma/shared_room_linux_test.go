package rma

import (
	"math"
	"testing"
)

// TestSharedRoom asks whether there is room for a byte, and for more than any file system has.
func TestSharedRoom(t *testing.T) {
	dir := t.TempDir()
	if !hasRoom(dir, 1) || uint64(math.MaxInt) > 1<<60 && hasRoom(dir, math.MaxInt) {
		t.Errorf("room for a byte %v, for 8 EiB %v", hasRoom(dir, 1), hasRoom(dir, math.MaxInt))
	}
	if !hasRoom("/nowhere", 1) {
		t.Error("a directory that is not there has no room")
	}
}
