//go:build race

package testenv

// Race is true if the test runs under the race detector.
const Race = true
