//go:build race

package main

// raceEnabled tells that the race detector is on; sync.Pool then drops objects.
const raceEnabled = true
