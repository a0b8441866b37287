package wire

import "testing"

// overCRC32c runs f with each way to compute it that this processor has.
func overCRC32c[T interface {
	Run(string, func(T)) bool
	*testing.T | *testing.B
}](t T, f func(T)) {
	fold, fold32 := hasFold, hasFold32
	defer func() { hasFold, hasFold32 = fold, fold32 }()
	if fold {
		t.Run("by=64", f)
	}
	hasFold = false
	if fold32 {
		t.Run("by=32", f)
	}
	hasFold32 = false
	t.Run("by=8", f)
}
