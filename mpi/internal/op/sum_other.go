//go:build !amd64 || race

package op

// sumMost adds none: the compiler does as well.
func sumMost[T Number](_, _, _ []T) int { return 0 }
