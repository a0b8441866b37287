//go:build !race

package core

// raceEnabled tells that the race detector is off.
const raceEnabled = false
