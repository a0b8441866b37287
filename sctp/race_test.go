//go:build race

package sctp

// RaceEnabled tells that the race detector is on; it makes pools forget at random.
const RaceEnabled = true
