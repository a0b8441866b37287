package wire

import "testing"

// overCRC32c runs f with each way to compute it that this processor has.
func overCRC32c[T interface {
	Run(string, func(T)) bool
	*testing.T | *testing.B
}](t T, f func(T)) {
	fold, fold32, words := hasFold, hasFold32, hasWords
	defer func() { hasFold, hasFold32, hasWords = fold, fold32, words }()
	if fold {
		t.Run("by=64", f)
	}
	hasFold = false
	if fold32 {
		t.Run("by=32", f)
	}
	hasFold32 = false
	if words {
		t.Run("by=8short", f)
	}
	hasWords = false
	t.Run("by=8", f)
}
