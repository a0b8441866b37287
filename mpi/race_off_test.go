//go:build !race

package mpi

// raceEnabled tells that the race detector is on; sync.Pool then drops objects.
const raceEnabled = false
