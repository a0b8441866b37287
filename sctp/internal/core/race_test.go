//go:build race

package core

// raceEnabled tells that the race detector is on; it makes pools forget at
// random, so that allocations cannot be counted.
const raceEnabled = true
