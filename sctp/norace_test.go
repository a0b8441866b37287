//go:build !race

package sctp

// RaceEnabled tells that the race detector is off.
const RaceEnabled = false
