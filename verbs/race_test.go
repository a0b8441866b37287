//go:build race

package verbs

// raceEnabled tells that the race detector is on: it makes pools forget.
const raceEnabled = true
